package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// Guard returns conn as the host's multiplexer is to read it, from an agent that
// may be in the hands of what runs in the sandbox. The library answers a ping
// with a goroutine, keeps what is sent on streams that nobody asked for, and lets
// half a frame hold up the stream's reader beyond any deadline of that. No agent
// pings or opens a stream, so each of these ends the connection.
func Guard(conn net.Conn) *Guarded { return &Guarded{Conn: conn, patience: framePatience} }

// framePatience is how long a frame may take from its first byte to its last.
// The library gives who sends one as long.
const framePatience = 30 * time.Second

// Guarded is a connection that ends with the first frame that no honest agent
// sends. Read is for one goroutine, which the library's receiver is.
type Guarded struct {
	net.Conn
	patience time.Duration

	header [muxHeader]byte
	have   int    // bytes of the header that came
	body   uint32 // bytes of the body that are to come
	timed  bool   // the frame that is under way has a deadline
	fault  atomic.Pointer[error]
}

// Fault is why the connection was ended, or nil. It wraps [ErrFrame].
func (g *Guarded) Fault() error {
	if err := g.fault.Load(); err != nil {
		return *err
	}
	return nil
}

// Read reads what belongs to frames that an agent may send, and no byte of any
// other.
func (g *Guarded) Read(p []byte) (int, error) {
	n, err := g.Conn.Read(p)
	if g.timed && errors.Is(err, os.ErrDeadlineExceeded) {
		return 0, g.refuse("a frame without an end")
	}
	ended, bad := g.look(p[:n])
	if bad != nil {
		return 0, bad
	}
	under := g.have > 0 || g.body > 0
	switch {
	case err != nil:
	case under && (ended || !g.timed):
		err = g.SetReadDeadline(time.Now().Add(g.patience))
	case !under && g.timed:
		err = g.SetReadDeadline(time.Time{})
	}
	g.timed = under
	return n, err
}

// look goes through bytes that came, and reports whether a frame ended in them.
func (g *Guarded) look(b []byte) (ended bool, err error) {
	for len(b) > 0 {
		if g.body == 0 {
			n := copy(g.header[g.have:], b)
			b, g.have = b[n:], g.have+n
			if g.have < muxHeader {
				return ended, nil
			}
			if err := g.check(); err != nil {
				return ended, err
			}
			g.have = 0
		}
		n := min(uint64(g.body), uint64(len(b)))
		b, g.body = b[n:], g.body-uint32(n)
		ended = ended || g.body == 0
	}
	return ended, nil
}

// check judges a header, and notes how long the frame's body is.
func (g *Guarded) check() error {
	kind, flags := g.header[1], binary.BigEndian.Uint16(g.header[2:])
	switch {
	case kind == muxTypePing:
		return g.refuse("a ping")
	case flags&muxFlagSYN != 0:
		return g.refuse("a stream of the agent's own")
	case kind == muxTypeData:
		g.body = binary.BigEndian.Uint32(g.header[8:])
	}
	return nil
}

func (g *Guarded) refuse(what string) error {
	err := fmt.Errorf("%w: %s", ErrFrame, what)
	g.fault.Store(&err)
	return err
}

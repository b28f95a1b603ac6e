package wire

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/yamux"
)

// MuxConfig is how both sides set up the multiplexer. It returns a fresh value
// each time, since the library keeps a pointer to it.
func MuxConfig() *yamux.Config {
	c := yamux.DefaultConfig()
	// A connection is a local socket or a relay's pipe: it does not go silent,
	// it breaks. A keep-alive would end sandboxes that are short of CPU.
	c.EnableKeepAlive = false
	c.ConnectionWriteTimeout = 30 * time.Second
	c.MaxStreamWindowSize = 1 << 20
	c.AcceptBacklog = 256
	c.StreamOpenTimeout = 0
	c.LogOutput = io.Discard
	return c
}

// Join returns conn as the multiplexer is to have it: what belongs together
// leaves in one write. The library writes the opening of a stream, a frame's
// header and its body one by one, and each of them wakes the other side, to wait
// again.
//
//   - A header is held back until its body comes.
//   - The frame that opens a stream, and the one that accepts it, are held back
//     until the next frame comes. Who opens a stream writes at once. Who accepts
//     one may have nothing to say for long: [Joiner.Flush] then lets it go, which
//     must not be forgotten, since it widens the other side's window.
func Join(conn net.Conn) *Joiner { return &Joiner{Conn: conn} }

// Joiner is a connection that writes what belongs together at once. Write is for
// one goroutine, which the library's sender is; Flush is for any. Closing it
// closes the connection.
type Joiner struct {
	net.Conn

	mu    sync.Mutex
	held  []byte // complete frames, and behind them the header of one whose body comes next
	body  bool   // the body comes next
	parts [2][]byte
}

// The library's header: version, type, flags, stream and length. Only a data
// header is followed by a body, of that length.
const (
	muxHeader     = 12
	muxTypeData   = 0
	muxTypeWindow = 1
	muxTypePing   = 2
	muxFlagSYN    = 1
	muxFlagACK    = 2
)

// mostHeld bounds what waits for company.
const mostHeld = 64 * muxHeader

// Write takes a header, or the body that the last one announced.
func (j *Joiner) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.body && len(p) == muxHeader {
		size, flags := binary.BigEndian.Uint32(p[8:]), binary.BigEndian.Uint16(p[2:])
		switch {
		case p[1] == muxTypeData && size > 0:
			j.held, j.body = append(j.held, p...), true
			return len(p), nil
		case p[1] == muxTypeWindow && (flags == muxFlagSYN || flags == muxFlagACK) && len(j.held) < mostHeld:
			j.held = append(j.held, p...)
			return len(p), nil
		}
	}
	return j.flush(p)
}

// flush writes what is held and p behind it, and counts the bytes of p.
func (j *Joiner) flush(p []byte) (int, error) {
	held := len(j.held)
	if held == 0 {
		return j.Conn.Write(p)
	}
	j.parts = [2][]byte{j.held, p}
	buffers := net.Buffers(j.parts[:])
	n, err := buffers.WriteTo(j.Conn)
	j.held, j.body, j.parts = j.held[:0], false, [2][]byte{}
	return max(0, int(n)-held), err
}

// Flush lets go of frames that wait for the next one. Where it fails, so does
// the next Write.
func (j *Joiner) Flush() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.body && len(j.held) > 0 {
		_, _ = j.flush(nil)
	}
}

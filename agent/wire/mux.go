package wire

import (
	"encoding/binary"
	"io"
	"net"
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

// Join returns conn as the multiplexer is to have it: header and body of a frame
// leave in one write. The library writes them one by one, which wakes the other
// side for the header alone, to wait again. Only one goroutine may write, as the
// library's sender does.
func Join(conn net.Conn) net.Conn { return &joiner{Conn: conn} }

// joiner holds a header back until its body comes.
type joiner struct {
	net.Conn
	header []byte // held back, nil without
	room   [muxHeader]byte
	parts  [2][]byte
}

// The library's header: version, type, two bytes of flags, stream and length.
// Only a data header is followed by a body, of that length.
const (
	muxHeader   = 12
	muxTypeData = 0
)

// Write holds a header back that announces a body, and sends it with that.
func (j *joiner) Write(p []byte) (int, error) {
	if j.header == nil {
		if len(p) != muxHeader || p[1] != muxTypeData || binary.BigEndian.Uint32(p[8:]) == 0 {
			return j.Conn.Write(p)
		}
		j.header = append(j.room[:0], p...)
		return len(p), nil
	}
	j.parts = [2][]byte{j.header, p}
	buffers := net.Buffers(j.parts[:])
	n, err := buffers.WriteTo(j.Conn)
	j.header, j.parts = nil, [2][]byte{}
	return max(0, int(n)-muxHeader), err
}

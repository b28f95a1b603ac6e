package wire

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"testing/iotest"
	"time"
)

// header is one of the multiplexer's.
func header(kind, flags byte, stream byte, length uint32) []byte {
	return []byte{0, kind, 0, flags, 0, 0, 0, stream, byte(length >> 24), byte(length >> 16), byte(length >> 8), byte(length)}
}

// readConn reads from a reader.
type readConn struct {
	net.Conn
	r io.Reader
}

func (c readConn) Read(p []byte) (int, error)      { return c.r.Read(p) }
func (c readConn) SetReadDeadline(time.Time) error { return nil }

// TestGuard passes on every byte of what an agent sends, however it is cut, and
// none of a frame that no agent does.
func TestGuard(t *testing.T) {
	t.Parallel()
	fine := bytes.Join([][]byte{
		header(muxTypeWindow, muxFlagACK, 1, 1<<20), header(muxTypeData, 0, 1, 30), bytes.Repeat(header(muxTypePing, muxFlagSYN, 0, 1), 3)[:30],
		header(muxTypeData, 4, 1, 0), header(3, 0, 0, 0),
	}, nil)
	for name, bad := range map[string][]byte{
		"nothing more":   nil,
		"a ping":         header(muxTypePing, muxFlagSYN, 0, 1),
		"a ping's reply": header(muxTypePing, muxFlagACK, 0, 1),
		"a stream":       header(muxTypeWindow, muxFlagSYN, 2, 0),
		"data of one":    header(muxTypeData, muxFlagSYN|muxFlagACK, 2, 1<<18),
	} {
		for cut, by := range map[string]func(io.Reader) io.Reader{"whole": func(r io.Reader) io.Reader { return r }, "by bytes": iotest.OneByteReader} {
			for _, before := range [][]byte{nil, fine} {
				g := Guard(readConn{r: by(bytes.NewReader(append(bytes.Clone(before), bad...)))})
				got, err := io.ReadAll(g)
				if bad == nil && (err != nil || !bytes.Equal(got, before) || g.Fault() != nil) {
					t.Errorf("%s, %s: %d bytes of %d, %v, %v", name, cut, len(got), len(before), err, g.Fault())
				}
				if bad != nil && (!errors.Is(err, ErrFrame) || !errors.Is(g.Fault(), ErrFrame) || len(got) >= len(before)+muxHeader) {
					t.Errorf("%s, %s: %d bytes of %d, %v, %v", name, cut, len(got), len(before), err, g.Fault())
				}
			}
		}
	}
}

// TestGuardHalfFrame ends a connection whose other side stops in a frame, and
// none that is silent between two.
func TestGuardHalfFrame(t *testing.T) {
	t.Parallel()
	for name, half := range map[string][]byte{
		"in a header": header(muxTypeData, 0, 1, 8)[:5],
		"in a body":   append(header(muxTypeData, 0, 1, 8), 1, 2, 3),
		"in another":  bytes.Join([][]byte{header(muxTypeData, 0, 1, 2), {1, 2}, header(muxTypeData, 0, 1, 2)}, nil),
	} {
		near, far := net.Pipe()
		g := Guard(near)
		g.patience = 10 * time.Millisecond
		go func() { _, _ = far.Write(half) }()
		if _, err := io.ReadAll(g); !errors.Is(err, ErrFrame) || g.Fault() == nil {
			t.Errorf("%s: %v", name, err)
		}
		_ = far.Close()
	}
	near, far := socketPair(t)
	g := Guard(near)
	g.patience = time.Millisecond
	whole := append(header(muxTypeData, 0, 1, 2), 1, 2)
	for range 2 {
		for _, part := range [][]byte{whole[:13], whole[13:]} {
			if _, err := far.Write(part); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := io.ReadFull(g, make([]byte, len(whole))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond) // longer than a frame may take: there is none
	}
}

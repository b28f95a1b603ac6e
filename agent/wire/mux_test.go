package wire

import (
	"bytes"
	"io"
	"net"
	"path/filepath"
	"sync"
	"testing"

	"github.com/hashicorp/yamux"
)

// counted counts the writes on a connection.
type counted struct {
	net.Conn
	mu     sync.Mutex
	writes [][]byte
}

func (c *counted) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writes = append(c.writes, bytes.Clone(p))
	return c.Conn.Write(p)
}

// socketPair returns both ends of a Unix socket.
func socketPair(t *testing.T) (a, b net.Conn) {
	t.Helper()
	ln, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if a, err = net.Dial("unix", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if b, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close(); _ = b.Close() })
	return a, b
}

func TestJoinKeepsEveryByte(t *testing.T) {
	t.Parallel()
	a, b := socketPair(t)
	near, err := yamux.Client(Join(a), MuxConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	far, err := yamux.Server(Join(b), MuxConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	go func() {
		for {
			s, err := far.AcceptStream()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(s, s); _ = s.Close() }()
		}
	}()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			s, err := near.OpenStream()
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			// Lengths around the header's own, and beyond a window.
			for _, n := range []int{1, 11, 12, 13, 4096, 100_000, 3 << 20} {
				want := bytes.Repeat([]byte{byte(i), 0, 1, byte(n)}, n/4+1)[:n]
				go func() { _, _ = s.Write(want) }()
				got := make([]byte, n)
				if _, err := io.ReadFull(s, got); err != nil || !bytes.Equal(got, want) {
					t.Errorf("stream %d: %d bytes came back changed (%v)", i, n, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestJoinSendsHeaderAndBodyTogether(t *testing.T) {
	t.Parallel()
	a, b := socketPair(t)
	j := Join(a)
	header := []byte{0, muxTypeData, 0, 0, 0, 0, 0, 1, 0, 0, 0, 5}
	for _, p := range [][]byte{header, []byte("hello")} {
		if n, err := j.Write(p); err != nil || n != len(p) {
			t.Fatalf("write of %d bytes: %d, %v", len(p), n, err)
		}
	}
	buf := make([]byte, 64)
	if n, err := b.Read(buf); err != nil || !bytes.Equal(buf[:n], append(header, "hello"...)) {
		t.Errorf("first read: %q, %v", buf[:n], err)
	}
}

func TestJoinHoldsNothingElseBack(t *testing.T) {
	t.Parallel()
	a, _ := socketPair(t)
	c := &counted{Conn: a}
	j := Join(c)
	for _, p := range [][]byte{
		{0, 1, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0},           // a window update counts, and has no body
		{0, 1, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0},           // one that ends a stream
		{0, muxTypeData, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0}, // an empty data frame
		{0, 2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9},           // a ping
	} {
		if _, err := j.Write(p); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.writes) != 4 {
		t.Errorf("%d writes went out of 4", len(c.writes))
	}
}

// What opens or accepts a stream leaves with the next frame, whatever that is.
func TestJoinSendsAnOpeningWithWhatFollows(t *testing.T) {
	t.Parallel()
	for name, opening := range map[string][]byte{
		"open": {0, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0}, "accept": {0, 1, 0, 2, 0, 0, 0, 1, 0, 12, 0, 0},
	} {
		for next, frames := range map[string][][]byte{
			"data":  {{0, muxTypeData, 0, 0, 0, 0, 0, 1, 0, 0, 0, 5}, []byte("hello")},
			"close": {{0, 1, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0}},
		} {
			a, b := socketPair(t)
			j := Join(a)
			want := bytes.Clone(opening)
			for _, p := range append([][]byte{opening}, frames...) {
				if n, err := j.Write(p); err != nil || n != len(p) {
					t.Fatalf("%s, %s: write of %d bytes: %d, %v", name, next, len(p), n, err)
				}
			}
			for _, p := range frames {
				want = append(want, p...)
			}
			buf := make([]byte, 64)
			if n, err := b.Read(buf); err != nil || !bytes.Equal(buf[:n], want) {
				t.Errorf("%s, %s: first read: %q, %v; want %q", name, next, buf[:n], err, want)
			}
		}
	}
}

func TestJoinFlushes(t *testing.T) {
	t.Parallel()
	a, b := socketPair(t)
	j := Join(a)
	accept := []byte{0, 1, 0, 2, 0, 0, 0, 1, 0, 12, 0, 0}
	if _, err := j.Write(accept); err != nil {
		t.Fatal(err)
	}
	j.Flush()
	j.Flush() // nothing is left
	buf := make([]byte, 64)
	if n, err := b.Read(buf); err != nil || !bytes.Equal(buf[:n], accept) {
		t.Errorf("after a flush: %q, %v", buf[:n], err)
	}
	// A header waits for its body, also across a flush.
	header := []byte{0, muxTypeData, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1}
	if _, err := j.Write(header); err != nil {
		t.Fatal(err)
	}
	j.Flush()
	if _, err := j.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if n, err := b.Read(buf); err != nil || !bytes.Equal(buf[:n], append(header, 'x')) {
		t.Errorf("a header was let go without its body: %q, %v", buf[:n], err)
	}
}

func TestJoinReportsABrokenConnection(t *testing.T) {
	t.Parallel()
	a, b := socketPair(t)
	_, _ = a.Close(), b.Close()
	j := Join(a)
	if _, err := j.Write([]byte{0, muxTypeData, 0, 0, 0, 0, 0, 1, 0, 0, 0, 5}); err != nil {
		t.Fatalf("a header that is held back cannot fail: %v", err)
	}
	if n, err := j.Write([]byte("hello")); err == nil || n != 0 {
		t.Errorf("body: %d, %v; want an error", n, err)
	}
}

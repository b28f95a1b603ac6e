//go:build linux

package pid1

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/track"
	"github.com/caisson-dev/caisson/agent/wire"
)

// budget is what an observation may still take.
type budget struct {
	until time.Time // zero is for ever
	bytes int64
	gone  atomic.Bool // so is the client
}

func newBudget(req *wire.Observe) *budget {
	b := &budget{bytes: 1 << 62}
	if req.TimeMS > 0 {
		b.until = time.Now().Add(time.Duration(req.TimeMS) * time.Millisecond)
	}
	if req.Bytes > 0 {
		b.bytes = req.Bytes
	}
	return b
}

// over reports whether nothing more is to be looked at or read.
func (b *budget) over() bool { return b.gone.Load() || !b.until.IsZero() && time.Now().After(b.until) }

// listen hands out the client's rounds of wants, and notes when it is gone.
func (b *budget) listen(r *wire.Reader) <-chan []uint64 {
	rounds := make(chan []uint64, 1)
	go func() {
		defer close(rounds)
		for {
			wants, err := readWants(r)
			if err != nil {
				b.gone.Store(true)
				return
			}
			if rounds <- wants; len(wants) == 0 {
				return // its last word
			}
		}
	}()
	return rounds
}

// sendContent writes one answer of wire.Observe: a file's content and its hash.
// An error is one of out; what is not read is an answer.
func sendContent(out *bufio.Writer, t *track.Tracker, path string, hashOnly bool, b *budget) error {
	unread := func() error {
		_, err := out.Write([]byte{0, wire.ContentUnread})
		return err
	}
	if b.over() {
		return unread()
	}
	f, err := t.Open(path)
	if err != nil {
		return unread()
	}
	defer f.Close()
	in := sparse{f: f}
	if st, err := f.Stat(); err != nil || st.Size() > b.bytes {
		return unread() // what cannot be finished is not begun
	}
	h := sha256.New()
	buf := make([]byte, 64<<10)
	for {
		n, err := in.Read(buf)
		if b.bytes -= int64(n); b.bytes < 0 || b.over() {
			return unread()
		}
		h.Write(buf[:n])
		if n > 0 && !hashOnly {
			if _, err := out.Write(binary.AppendUvarint(nil, uint64(n))); err != nil {
				return err
			}
			if _, err := out.Write(buf[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			_, err = out.Write(h.Sum([]byte{0, wire.ContentOK}))
			return err
		}
		if err != nil {
			return unread()
		}
	}
}

// sparse reads a file without reading its holes: there are zeros in them, and
// reading would fill the sandbox's memory with those.
type sparse struct {
	f    *os.File
	at   int64
	end  int64 // of the piece that at is in
	hole bool  // it is one
	read int64 // bytes that were read from the file
}

func (s *sparse) Read(p []byte) (int, error) {
	if s.at >= s.end {
		if err := s.next(); err != nil {
			return 0, err
		}
	}
	p = p[:min(int64(len(p)), s.end-s.at)]
	n := len(p)
	var err error
	if s.hole {
		clear(p)
	} else if n, err = s.f.ReadAt(p, s.at); n > 0 {
		err = nil // what follows is met by the next call
		s.read += int64(n)
	}
	s.at += int64(n)
	return n, err
}

// next finds the piece that begins at at. Its error at the end is [io.EOF].
func (s *sparse) next() error {
	st, err := s.f.Stat()
	if err != nil {
		return err
	}
	if s.at >= st.Size() {
		return io.EOF
	}
	data, err := s.f.Seek(s.at, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO):
		s.end, s.hole = st.Size(), true
	case err != nil: // this file system does not say
		s.end, s.hole = st.Size(), false
	case data > s.at:
		s.end, s.hole = data, true
	default:
		s.hole = false
		if s.end, err = s.f.Seek(s.at, unix.SEEK_HOLE); err != nil {
			s.end = st.Size()
		}
	}
	return nil
}

//go:build linux

package pid1

import (
	"sync"
	"time"

	"github.com/caisson-dev/caisson/agent/wire"
)

// outputKeep bounds the bytes of one stream that wait for their client.
const outputKeep = 512 << 10

// outputs holds both streams of an exec between its pipes and its clients.
type outputs struct {
	drop bool // push out the oldest instead of making the writer wait
	hold bool // but not what a reader is still to have

	mu      sync.Mutex
	changed sync.Cond // something below has
	streams [2]stream
	end     *wire.End // set once, after the last byte
	closed  bool      // nobody will read any more: writers must not wait

	readers map[*[2]int64]bool // how far those are that output is held for
	met     bool               // there was one, or none came in time
	reads   int                // counts frames that readers took
}

// holdPatience is how long a writer waits for readers that take nothing.
const holdPatience = time.Minute

// stream is a window on the bytes of one output: [base, base+held). The bytes
// lie in a ring that grows up to outputKeep and is then used again and again:
// a flood of output makes no garbage.
type stream struct {
	base  int64
	ring  []byte
	start int // of base in the ring
	held  int
}

// firstRing is the least room that a stream with any output has.
const firstRing = 4 << 10

func (s *stream) total() int64 { return s.base + int64(s.held) }

// discard forgets everything before offset.
func (s *stream) discard(offset int64) {
	n := int(min(offset-s.base, int64(s.held)))
	if n <= 0 {
		return
	}
	s.base += int64(n)
	s.held -= n
	s.start = (s.start + n) % len(s.ring)
	if s.held == 0 {
		s.start = 0 // whole frames again
	}
}

// store adds p, for which there is room below outputKeep.
func (s *stream) store(p []byte) {
	if need := s.held + len(p); need > len(s.ring) {
		grown := make([]byte, min(outputKeep, max(firstRing, 2*len(s.ring), need)))
		n := copy(grown, s.view(s.base, s.held))
		copy(grown[n:s.held], s.ring)
		s.ring, s.start = grown, 0
	}
	end := (s.start + s.held) % len(s.ring)
	n := copy(s.ring[end:], p)
	copy(s.ring, p[n:])
	s.held += len(p)
}

// view returns bytes from offset on, which is in the window: as many as lie
// together, and at most limit. They are valid until the next change.
func (s *stream) view(offset int64, limit int) []byte {
	if s.held == 0 {
		return nil
	}
	skip := int(offset - s.base)
	from := (s.start + skip) % len(s.ring)
	return s.ring[from:min(len(s.ring), from+min(limit, s.held-skip))]
}

func newOutputs(drop, hold bool) *outputs {
	o := &outputs{drop: drop, hold: hold, readers: map[*[2]int64]bool{}}
	o.changed.L = &o.mu
	return o
}

// write appends p to stream i, and waits while the stream is full. Once the end
// is set, what still comes from others that hold the pipe is thrown away.
func (o *outputs) write(i int, p []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := &o.streams[i]
	w := waiting{patience: holdPatience}
	defer w.stop()
	for len(p) > 0 {
		room := outputKeep - s.held
		old := s.total() - int64(outputKeep) + int64(min(len(p), outputKeep)) // what is before has to go
		switch {
		case o.end != nil:
			return
		case o.closed:
			s.base = s.total() + int64(len(p))
			s.ring, s.start, s.held = nil, 0, 0
			return
		case o.drop && room < len(p) && !o.awaitsLocked(i, old, &w):
			s.discard(old)
			room = outputKeep - s.held
		case room == 0:
			o.changed.Wait()
			continue
		}
		n := min(room, len(p))
		s.store(p[:n])
		p = p[n:]
		o.changed.Broadcast()
	}
}

// ack lets go of what a client has delivered. With drop set, output stays
// readable until newer output needs its place.
func (o *outputs) ack(a wire.Ack) {
	if o.drop {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.streams[0].discard(a.Stdout)
	o.streams[1].discard(a.Stderr)
	o.changed.Broadcast()
}

// finish sets the last word. Nothing is written after it.
func (o *outputs) finish(end *wire.End) {
	o.mu.Lock()
	defer o.mu.Unlock()
	end.Stdout, end.Stderr = o.streams[0].total(), o.streams[1].total()
	o.end = end
	o.changed.Broadcast()
}

// abandon lets the writer of an exec that has no client go on.
func (o *outputs) abandon() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.changed.Broadcast()
}

// wake makes every reader look at its own state again.
func (o *outputs) wake() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.changed.Broadcast()
}

func (o *outputs) totals() (stdout, stderr int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.streams[0].total(), o.streams[1].total()
}

var outputTypes = [2]wire.Type{wire.TypeStdout, wire.TypeStderr}

// chunkSize is how much of an output goes into one frame.
const chunkSize = 64 << 10

// next waits for output beyond the offsets at, and appends one frame of it to
// dst; at moves on. Once all of it is out it returns the end. Where there is
// nothing to send it returns with neither when gone says so.
func (o *outputs) next(dst []byte, at *[2]int64, gone func() bool) (frame []byte, end *wire.End) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		for i := range o.streams {
			s := &o.streams[i]
			if at[i] < s.base {
				at[i] = s.base // it was dropped; the offset tells the client
			}
			if at[i] >= s.total() {
				continue
			}
			from := s.view(at[i], chunkSize)
			dst = wire.AppendOutput(dst, outputTypes[i], at[i], from)
			at[i] += int64(len(from))
			o.reads++
			if o.hold {
				o.changed.Broadcast()
			}
			return dst, nil
		}
		if o.end != nil {
			return nil, o.end
		}
		if gone() {
			return nil, nil
		}
		o.changed.Wait()
	}
}

//go:build linux

package pid1

import (
	"sync"

	"github.com/caisson-dev/caisson/agent/wire"
)

// outputKeep bounds the bytes of one stream that wait for their client.
const outputKeep = 512 << 10

// outputs holds both streams of an exec between its pipes and its clients.
type outputs struct {
	drop bool // push out the oldest instead of making the writer wait

	mu      sync.Mutex
	changed sync.Cond // something below has
	streams [2]stream
	end     *wire.End // set once, after the last byte
	closed  bool      // nobody will read any more: writers must not wait
}

// stream is a window on the bytes of one output: [base, base+len(data)).
type stream struct {
	base int64
	data []byte
}

func (s *stream) total() int64 { return s.base + int64(len(s.data)) }

// discard forgets everything before offset.
func (s *stream) discard(offset int64) {
	n := min(offset-s.base, int64(len(s.data)))
	if n <= 0 {
		return
	}
	s.base += n
	s.data = s.data[n:]
	if len(s.data) == 0 {
		s.data = nil
	}
}

func newOutputs(drop bool) *outputs {
	o := &outputs{drop: drop}
	o.changed.L = &o.mu
	return o
}

// write appends p to stream i, and waits while the stream is full. Once the end
// is set, what still comes from others that hold the pipe is thrown away.
func (o *outputs) write(i int, p []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := &o.streams[i]
	for len(p) > 0 {
		room := outputKeep - len(s.data)
		switch {
		case o.end != nil:
			return
		case o.closed:
			s.base = s.total() + int64(len(p))
			s.data = nil
			return
		case o.drop && room < len(p):
			s.discard(s.total() - int64(outputKeep) + int64(min(len(p), outputKeep)))
			room = outputKeep - len(s.data)
		case room == 0:
			o.changed.Wait()
			continue
		}
		n := min(room, len(p))
		s.data = append(s.data, p[:n]...)
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
			from := s.data[at[i]-s.base:]
			from = from[:min(len(from), chunkSize)]
			dst = wire.AppendOutput(dst, outputTypes[i], at[i], from)
			at[i] += int64(len(from))
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

//go:build linux

package pid1

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestStreamIsAWindow compares a stream with the plainest window there is,
// over stores, discards and views of many sizes.
func TestStreamIsAWindow(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		var s stream
		var base int64
		var want []byte
		next := byte(0)
		for step := range 400 {
			if room := outputKeep - s.held; r.IntN(3) > 0 && room > 0 {
				p := make([]byte, 1+r.IntN(min(room, 1<<(1+r.IntN(17)))))
				for i := range p {
					p[i], next = next, next+1
				}
				s.store(p)
				want = append(want, p...)
			} else if n := r.IntN(len(want) + 2); true {
				s.discard(base + int64(n) - 1)
				if n = max(0, n-1); n <= len(want) {
					want, base = want[n:], base+int64(n)
				}
			}
			if s.base != base || s.total() != base+int64(len(want)) || len(s.ring) > outputKeep {
				t.Fatalf("seed %d, step %d: window [%d, %d) in a ring of %d, want [%d, %d)",
					seed, step, s.base, s.total(), len(s.ring), base, base+int64(len(want)))
			}
			if got := readAll(&s, 1+r.IntN(chunkSize)); !bytes.Equal(got, want) {
				t.Fatalf("seed %d, step %d: other bytes than were stored", seed, step)
			}
		}
	}
}

// readAll joins views of at most limit bytes.
func readAll(s *stream, limit int) []byte {
	var all []byte
	for at := s.base; at < s.total(); {
		v := s.view(at, limit)
		all = append(all, v...)
		at += int64(len(v))
	}
	return all
}

// TestStreamMakesNoGarbage: a flood runs through one ring.
func TestStreamMakesNoGarbage(t *testing.T) {
	var s stream
	block := make([]byte, 64<<10)
	cycle := func() {
		for s.held+len(block) <= outputKeep {
			s.store(block)
		}
		s.discard(s.total() - 1000)
	}
	cycle()
	if n := testing.AllocsPerRun(20, cycle); n != 0 {
		t.Errorf("%v allocations for each window of output", n)
	}
}

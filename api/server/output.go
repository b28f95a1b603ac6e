package server

import (
	"fmt"
	"sync"
	"unicode/utf8"

	"github.com/caisson-dev/caisson/api/wire"
)

// output writes both streams of an exec as events. Each event's id says how far
// both streams are then, for who wants to go on from there.
type output struct {
	e *events

	mu sync.Mutex
	at [2]int64 // that was sent
}

// outputStream is one stream of an [output].
type outputStream struct {
	out  *output
	i    int
	name string
	rest []byte // of a character whose end has not come
}

func (o *output) stdout() *outputStream { return &outputStream{out: o, name: wire.EventStdout} }
func (o *output) stderr() *outputStream { return &outputStream{out: o, i: 1, name: wire.EventStderr} }

// Write implements [io.Writer].
func (s *outputStream) Write(p []byte) (int, error) {
	b := append(s.rest, p...)
	cut := whole(b)
	s.rest = append([]byte(nil), b[cut:]...)
	if err := s.send(b[:cut]); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Skip implements [sandbox.Skipper].
func (s *outputStream) Skip(n int64) {
	s.flush()
	s.out.mu.Lock()
	defer s.out.mu.Unlock()
	s.out.at[s.i] += n
}

// flush sends what waits for the rest of a character.
func (s *outputStream) flush() {
	_ = s.send(s.rest) // the next write tells
	s.rest = nil
}

func (s *outputStream) send(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	s.out.mu.Lock()
	defer s.out.mu.Unlock()
	piece := wire.Output{Offset: s.out.at[s.i], Base64: b}
	if utf8.Valid(b) {
		text := string(b)
		piece.Text, piece.Base64 = &text, nil
	}
	s.out.at[s.i] += int64(len(b))
	return s.out.e.send(s.name, fmt.Sprintf("%d-%d", s.out.at[0], s.out.at[1]), piece)
}

// whole is the length of b without a character that is cut off at its end.
func whole(b []byte) int {
	for n := 1; n <= min(len(b), utf8.UTFMax-1); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-n:]) {
				return len(b) - n
			}
			break
		}
	}
	return len(b)
}

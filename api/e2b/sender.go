package e2b

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"connectrpc.com/connect"
)

// keepAliveHeader says how many seconds a stream may be silent.
const keepAliveHeader = "Keepalive-Ping-Interval"

// sender writes to a stream, from any goroutine.
type sender[T any] struct {
	stream  *connect.ServerStream[T]
	flusher *flusher // may be nil
	done    chan struct{}
	pinger  sync.WaitGroup

	mu sync.Mutex
}

func (s *sender[T]) send(v *T) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stream.Send(v)
}

// end is send of the last message, which nothing but the answer's end comes after.
func (s *sender[T]) end(v *T) error {
	if s.flusher != nil {
		s.flusher.last.Store(true)
	}
	return s.send(v)
}

// keepAlive has v sent as often as a client asks for, until the stream ends.
func (s *sender[T]) keepAlive(h http.Header, v *T) {
	seconds, err := strconv.Atoi(h.Get(keepAliveHeader))
	if err != nil || seconds < 1 {
		seconds = 90
	}
	s.done = make(chan struct{})
	s.pinger.Go(func() {
		t := time.NewTicker(time.Duration(min(seconds, 3600)) * time.Second)
		defer t.Stop()
		for {
			select {
			case <-s.done:
				return
			case <-t.C:
				if s.send(v) != nil {
					return // its client is gone, which who follows meets too
				}
			}
		}
	})
}

// stop waits until nothing more is sent.
func (s *sender[T]) stop() {
	if s.done != nil {
		close(s.done)
	}
	s.pinger.Wait()
}

package functions

import (
	"sync"

	"github.com/caisson-dev/caisson/sandbox"
)

// startLog is what a process has started since somebody last took it.
type startLog struct {
	mu   sync.Mutex
	list []sandbox.Start
}

// add adds a start, or how one ended.
func (l *startLog) add(s sandbox.Start) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, old := range l.list {
		if old.PID == s.PID && old.At == s.At {
			l.list[i] = s
			return
		}
	}
	if s.Ended == 0 { // else it was taken before
		l.list = append(l.list, s)
	}
}

func (l *startLog) take() []sandbox.Start {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.list
	l.list = nil
	return list
}

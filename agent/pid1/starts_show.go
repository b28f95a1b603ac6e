//go:build linux

package pid1

import (
	"strings"

	"github.com/caisson-dev/caisson/agent/wire"
)

// What a list shows of starts: of each so many bytes of its words, and of all execs.
const (
	shownText = 256
	listText  = 1 << 20
)

// numberLocked gives a start its number, and remembers for lists what it is.
func (w *watched) numberLocked(t *wire.Start) {
	w.count++
	t.N = w.count
	if t.N > mostFollowed || w.done {
		return
	}
	// Its texts may be parts of long ones.
	one := wire.Start{N: t.N, PID: t.PID, Parent: t.Parent, AtUS: t.AtUS, Path: cloned(t.Path), Cut: t.Cut, Asks: t.Asks}
	left := shownText
	for _, a := range t.Argv {
		if left -= len(a); left < 0 {
			one.Cut = true
			break
		}
		one.Argv = append(one.Argv, cloned(a))
	}
	w.shown = append(w.shown, one)
}

func cloned(n wire.Name) wire.Name { return wire.Name(strings.Clone(string(n))) }

// shownLocked is what is remembered of start n; nil is nothing.
func (w *watched) shownLocked(n uint64) *wire.Start {
	if n == 0 || n > uint64(len(w.shown)) {
		return nil
	}
	return &w.shown[n-1]
}

func (w *watched) showPassedLocked(n uint64) {
	if t := w.shownLocked(n); t != nil {
		t.Asks = false
	}
}

func (w *watched) showRefusedLocked(n uint64, why string) {
	if t := w.shownLocked(n); t != nil {
		t.Asks, t.Refused = false, why
	}
}

// endLocked tells how start n ended, and remembers it.
func (w *watched) endLocked(n uint64, end *wire.StartEnd) {
	if t := w.shownLocked(n); t != nil {
		t.End = end
	}
	w.queueLocked(&wire.Start{N: n, End: end})
}

// repeatLocked tells a judge what was told to the one before it, as far as it is
// remembered, behind a start without a number.
func (w *watched) repeatLocked() {
	rest := w.queue
	w.queue, w.size = []*wire.Start{{}}, 0
	for i := range w.shown {
		t := w.shown[i]
		if t.Asks {
			continue // its judge has gone: it is refused, and told then
		}
		end := t.End
		t.End = nil
		w.queue = append(w.queue, &t)
		if end != nil {
			w.queue = append(w.queue, &wire.Start{N: t.N, End: end})
		}
	}
	for _, t := range rest {
		if t.N > mostFollowed {
			w.queue = append(w.queue, t)
		}
	}
	w.ready = true
}

// judgedOf finds an exec that runs and whose starts are seen, and tells what it was
// given; nil is none.
func (a *Agent) judgedOf(id string) (*watched, *wire.Start) {
	a.mu.Lock()
	defer a.mu.Unlock()
	ex := a.execs[id]
	if ex == nil || ex.ended || ex.watched == nil {
		return nil, nil
	}
	given := (&begin{env: ex.req.Env}).told()
	return ex.watched, &wire.Start{Env: given.Env, Cut: given.Cut}
}

// come notes that one judge more waits for the place of another, or one less.
func (w *watched) come(more int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.coming += more
	w.changed.Broadcast()
}

// list shows what was started, as far as its texts have room.
func (w *watched) list(room *int) (starts []wire.Start, leftOut int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.shown {
		if *room -= textOf(&w.shown[i]) + len(w.shown[i].Refused); *room < 0 {
			break
		}
		starts = append(starts, w.shown[i])
	}
	return starts, int(w.count) - len(starts)
}

package manager

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestCleanedNext has who is clean be taken before who is being cleaned, the youngest of
// them first, and each once.
func TestCleanedNext(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	close(over)
	at := func(place string, done chan struct{}) *waiting {
		return &waiting{place: place, done: done, over: time.NewTimer(time.Hour)}
	}
	old, young, dirty, other := at("a", over), at("a", over), at("a", make(chan struct{})), at("b", over)
	p := &cleaned{idle: []*waiting{old, young, dirty, other}}
	for i, want := range []*waiting{young, old, dirty, nil} {
		if got, _ := p.next("a"); got != want {
			t.Errorf("%d: %+v", i, got)
		}
	}
	if len(p.idle) != 1 || p.idle[0] != other {
		t.Errorf("%d are left", len(p.idle))
	}
}

// TestCleanedMaking has no more be made at once for a place than are to be: who comes
// then waits until there is one, or less being made, or nobody wants it any more.
func TestCleanedMaking(t *testing.T) {
	t.Parallel()
	p := &cleaned{}
	next := func(place string) (*waiting, <-chan struct{}) {
		t.Helper()
		w, changed := p.next(place)
		if w == nil && changed != nil {
			select {
			case <-changed:
				t.Error("it is to look again already")
			default:
			}
		}
		return w, changed
	}
	for _, place := range []string{"a", "b"} {
		for range cleanedMaking {
			if w, changed := next(place); w != nil || changed != nil {
				t.Fatalf("%v, %v", w, changed)
			}
		}
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := p.take(canceled, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("who waits no more: %v", err)
	}
	if s, made, err := p.take(canceled, ""); s != nil || made == nil || err != nil {
		t.Errorf("what has a sandbox of its own: %v, %v", s, err)
	}
	_, changed := next("a")
	left := &waiting{place: "a", done: make(chan struct{})}
	p.keep(left)
	<-changed
	if w, _ := next("a"); w != left {
		t.Errorf("what another has left: %v", w)
	}
	_, changed = next("a")
	p.made("a")
	<-changed
	if w, changed := next("a"); w != nil || changed != nil {
		t.Errorf("where there is room: %v, %v", w, changed)
	}
	for _, place := range []string{"a", "b"} {
		for range cleanedMaking {
			p.made(place)
		}
	}
	if len(p.making) != 0 {
		t.Errorf("%v are being made", p.making)
	}
}

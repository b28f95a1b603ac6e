package manager

import (
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
		if got := p.next("a"); got != want {
			t.Errorf("%d: %+v", i, got)
		}
	}
	if len(p.idle) != 1 || p.idle[0] != other {
		t.Errorf("%d are left", len(p.idle))
	}
}

package service

import (
	"testing"

	"github.com/caisson-dev/caisson/sandbox"
)

// Of those in line the owner who has least is let in before the others, whoever came
// first; then who was let in the longest ago. Each owner's stay in their order.
func TestFirsts(t *testing.T) {
	t.Parallel()
	q := newQuotas()
	enter := func(owner, name string) *waiter { return q.enter(owner, wish{session: name}) }
	let := func(w *waiter) {
		release := q.of(w.owner).take(boxKey(w.wish.session, ""), sandbox.Limits{}, w.wish, func() {})
		q.letInto(w, release)
	}
	order := func() (names string) {
		for _, w := range q.firsts() {
			names += w.wish.session + " "
		}
		return names
	}
	a1, a2, a3 := enter("ann", "a1"), enter("ann", "a2"), enter("ann", "a3")
	let(a1)
	let(a2)
	b1 := enter("bob", "b1")
	enter("bob", "b2")
	if got := order(); got != "b1 a3 " {
		t.Errorf("bob has nothing: %q", got)
	}
	let(b1)
	if got := order(); got != "b2 a3 " {
		t.Errorf("bob has less: %q", got)
	}
	a1.let()
	if got := order(); got != "a3 b2 " {
		t.Errorf("both have one, and ann's was longer ago: %q", got)
	}
	q.leave(a3)
	if got := order(); got != "b2 " {
		t.Errorf("ann has left: %q", got)
	}
}

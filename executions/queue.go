package executions

import (
	"cmp"
	"slices"

	"github.com/caisson-dev/caisson/sandbox"
)

// queue holds what waits, by owner: each owner has its turn, and within an owner
// the oldest is the first. Its zero value is empty.
type queue struct {
	turns []string // owners with something that waits; the next one first
	waits map[string][]sandbox.QueuedExecution
}

func (q *queue) add(e sandbox.QueuedExecution) {
	if q.waits == nil {
		q.waits = map[string][]sandbox.QueuedExecution{}
	}
	if len(q.waits[e.Owner]) == 0 {
		q.turns = append(q.turns, e.Owner)
	}
	// One that could not begin comes again, before those that came after it.
	list := q.waits[e.Owner]
	at, _ := slices.BinarySearchFunc(list, e.Seq, func(x sandbox.QueuedExecution, seq int64) int { return cmp.Compare(x.Seq, seq) })
	q.waits[e.Owner] = slices.Insert(list, at, e)
}

// next takes the first one of the first owner who may have one, and puts that
// owner behind the others.
func (q *queue) next(may func(owner string) bool) (e sandbox.QueuedExecution, ok bool) {
	at := slices.IndexFunc(q.turns, may)
	if at < 0 {
		return e, false
	}
	owner := q.turns[at]
	list := q.waits[owner]
	e, q.waits[owner] = list[0], list[1:]
	q.turns = slices.Delete(q.turns, at, at+1)
	if len(list) == 1 {
		delete(q.waits, owner)
	} else {
		q.turns = append(q.turns, owner)
	}
	return e, true
}

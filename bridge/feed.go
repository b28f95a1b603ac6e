package bridge

import (
	"context"
	"iter"

	"github.com/caisson-dev/caisson/internal/feed"
	"github.com/caisson-dev/caisson/sandbox"
)

// Feed hands changes to subscribers as they are recorded: at the end of an exec,
// and while it runs, a few times a second, if anybody listens. The zero value is
// ready. It is safe for concurrent use. Its owner closes it.
type Feed struct{ feed feed.Feed[sandbox.ChangeNews] }

// Subscribe returns the changes from now on, until the loop is left, ctx is done,
// or the feed is closed and all that waits was read. A subscriber that is slow
// loses the newest, and the next that it gets says how many: one without a path,
// where the feed ends before another change. Nobody waits for it.
func (f *Feed) Subscribe(ctx context.Context) iter.Seq[sandbox.ChangeNews] {
	items := f.feed.Subscribe(ctx)
	return func(yield func(sandbox.ChangeNews) bool) {
		for i := range items {
			n := i.Value
			n.Lost, n.More = i.Lost, i.More
			if !yield(n) {
				return
			}
		}
	}
}

// Close ends the loops of subscribers once they have read what waits for them.
// It is idempotent. A nil Feed has none.
func (f *Feed) Close() error {
	if f != nil {
		f.feed.Close()
	}
	return nil
}

// listened reports whether anybody subscribes.
func (f *Feed) listened() bool { return f != nil && f.feed.Listened() }

// tell hands records on. Those of execs other than the one that has just ended
// are provisional. A nil Feed tells nobody.
func (f *Feed) tell(session string, ended sandbox.ID, records []sandbox.ChangeRecord) {
	if len(records) == 0 || !f.listened() {
		return
	}
	for _, r := range records {
		for _, c := range Shown(r.Changes) {
			f.feed.Tell(sandbox.ChangeNews{
				Session: session, Exec: r.Exec, Record: r.ID, Time: r.Time, Provisional: r.Exec != "" && r.Exec != ended, FileChange: c,
			})
		}
	}
}

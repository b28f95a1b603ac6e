package storetest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/sandbox"
)

// questionsPruned drops questions that are over, by age and by size. Those that
// wait or hold stay, and so does the chain of events.
func questionsPruned(t *testing.T, open Open) {
	now := time.Now().UTC()
	old, young := now.Add(-48*time.Hour), now.Add(-time.Hour)
	text := strings.Repeat("x", 10_000)
	list := map[string]sandbox.Approval{
		"waits":          {State: sandbox.ApprovalPending, Expires: now.Add(time.Minute)},
		"holds":          {State: sandbox.ApprovalApproved, Answered: old, Expires: now.Add(time.Minute)},
		"always":         {State: sandbox.ApprovalApproved, Answered: old, Expires: old, Always: true},
		"used just now":  {State: sandbox.ApprovalUsed, Answered: now, Expires: old},
		"used":           {State: sandbox.ApprovalUsed, Answered: old, Expires: old},
		"denied":         {State: sandbox.ApprovalDenied, Answered: young, Expires: old},
		"never answered": {State: sandbox.ApprovalPending, Expires: old},
		"never used":     {State: sandbox.ApprovalApproved, Answered: old, Expires: young},
	}
	for name, c := range map[string]struct {
		keep  sandbox.Retention
		gone  int64
		still string
	}{
		"nothing said": {sandbox.Retention{}, 0, "always, denied, holds, never answered, never used, used, used just now, waits"},
		"by age":       {sandbox.Retention{Age: sandbox.Duration(24 * time.Hour)}, 2, "always, denied, holds, never used, used just now, waits"},
		"by no age":    {sandbox.Retention{Age: 1}, 4, "always, holds, used just now, waits"},
		"by size":      {sandbox.Retention{Bytes: 30_000}, 2, "always, denied, holds, never used, used just now, waits"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fresh(t, open)
			for name, a := range list {
				a.ID, a.Digest, a.Asked, a.Actor = sandbox.NewID(), "d", old, name
				to := a
				a.State, a.Question = sandbox.ApprovalPending, sandbox.ApprovalQuestion{Kind: "exec"}
				apply(t, s, sandbox.Transaction{AskApproval: &a, Events: []sandbox.Event{anEvent("asked", "")}})
				to.Question.Texts = []sandbox.ApprovalText{{Text: text}}
				apply(t, s, sandbox.Transaction{MoveApproval: &sandbox.ApprovalMove{From: sandbox.ApprovalPending, To: to}})
			}
			sizes, err := s.Sizes(t.Context())
			if err != nil || sizes[1].What != "questions" || sizes[1].Count != 8 || sizes[1].Bytes < 80_000 || sizes[1].Bytes > 90_000 || sizes[0].Count != 8 {
				t.Errorf("sizes %+v, %v", sizes, err)
			}
			if n, err := s.Prune(t.Context(), c.keep); err != nil || n.Questions != c.gone {
				t.Errorf("%+v, %v", n, err)
			}
			var still []string
			left, err := s.Approvals(t.Context(), sandbox.ApprovalFilter{})
			for _, a := range left {
				still = append(still, a.Actor)
			}
			slices.Sort(still)
			if d := cmp.Diff(c.still, strings.Join(still, ", ")); err != nil || d != "" {
				t.Errorf("%v %s", err, d)
			}
			Sound(t, s)
		})
	}
}

package manager_test

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// untilGo is what a shell waits by for the file go.
const untilGo = "while [ ! -e go ]; do read -t 0.1 x <> /dev/zero; done; "

// Where who judges an exec in the background has gone, a process that stays judges what
// it starts from then on, as it was to be judged, and its record has all.
func TestJudgedAgain(t *testing.T) {
	t.Parallel()
	startsEverywhere(t, judgedAgain)
}

func judgedAgain(t *testing.T, on string) {
	p := startsPlace(t, on)
	first := p.judging(t, (&judge{}).Judge)
	e := must(first.StartIn(t.Context(), "work", sandbox.Run{
		Language: "shell", Command: []string{"bash", "-c", "/bin/true; " + untilGo + "/bin/echo again; /usr/bin/id; echo $?"}, Env: []string{"GIVEN=1"},
		Approve: sandbox.ApproveNever, Labels: sandbox.Labels{"a": "b"},
	}, sandbox.Local{}))
	until(t, "it begins", func() bool {
		return slices.ContainsFunc(must(p.Processes(t.Context(), "work")), func(i manager.Process) bool { return len(i.Starts) == 1 && i.Starts[0].Ended > 0 })
	})
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	j := &judge{deny: []string{"id"}}
	about := make(chan manager.ExecQuestion, 1) // id
	next := p.opened(t, manager.Config{Starts: sandbox.StartsRule{Mode: sandbox.StartsJudge, Goes: true}, Stays: true, Gate: func(ctx context.Context, q manager.Question) (manager.Answer, error) {
		a, err := j.Judge(ctx, q)
		if q.Start != nil && len(a.Decision.Findings) > 0 {
			about <- *q.Start.Exec
		}
		return a, err
	}})
	if did, err := next.Recover(t.Context()); err != nil || did.Running != 1 || len(did.Failures) > 0 {
		t.Fatalf("%+v %v", did, err)
	}
	until(t, "the next one judges", func() bool { return next.Judges(e.ID) })
	sh(t, p.Manager, "work", "touch go")
	var out bytes.Buffer
	a, err := next.AttachExec(t.Context(), "work", e.ID, sandbox.AttachOptions{Follow: true}, &out, nil)
	if err != nil || out.String() != "again\n126\n" || a.Exit.Reason != sandbox.ReasonExited {
		t.Errorf("%v %+v %q", err, a.Exit, out.String())
	}
	rec := p.exec(t, e.ID)
	if want := []string{"true allow", "echo allow", "id deny"}; !slices.Equal(startsOf(rec.Starts), want) || rec.StartsUnjudged != 0 || rec.StartsLeftOut != 0 || rec.Starts[0].Ended == 0 {
		t.Errorf("told %+v, left out %d, not judged %d", rec.Starts, rec.StartsLeftOut, rec.StartsUnjudged)
	}
	asked := <-about
	if !slices.Contains(asked.Env, "GIVEN=1") || !slices.Contains(asked.Run.Env, "GIVEN=1") || asked.Run.Approve != sandbox.ApproveNever || asked.Run.Labels["a"] != "b" || !asked.Background {
		t.Errorf("asked about %+v", asked)
	}
}

// Who takes another's place while that is there still misses nothing: a start that the
// other left unanswered is asked about again.
func TestJudgeHandsOver(t *testing.T) {
	t.Parallel()
	startsEverywhere(t, judgeHandsOver)
}

func judgeHandsOver(t *testing.T, on string) {
	p := startsPlace(t, on)
	asked := make(chan struct{}, 1)
	first := p.judging(t, slow(asked, nil))
	e := must(first.StartIn(t.Context(), "work", sandbox.Run{Language: "shell", Command: []string{"sh", "-c", "/usr/bin/id -u >/dev/null; echo $?"}}, sandbox.Local{}))
	<-asked
	j := &judge{}
	next := p.judging(t, j.Judge)
	if err := next.JudgeOn(t.Context(), "work", e.ID); err != nil {
		t.Fatal(err)
	}
	if next.Judges(e.ID) {
		t.Error("both judge")
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	next.Outlast(t.Context())
	rec := p.exec(t, e.ID)
	if len(j.about("id")) != 1 || !slices.Equal(startsOf(rec.Starts), []string{"id allow"}) || rec.StartsUnjudged != 0 || rec.Ended.IsZero() {
		t.Errorf("%+v, told %+v, not judged %d", rec.Exit, rec.Starts, rec.StartsUnjudged)
	}
	var out bytes.Buffer
	if _, err := p.AttachExec(t.Context(), "work", e.ID, sandbox.AttachOptions{Follow: true}, &out, nil); err != nil || out.String() != "0\n" {
		t.Errorf("%v %q", err, out.String())
	}
}

package manager_test

import (
	"context"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// startsOf names starts, each with its verdict.
func startsOf(starts []sandbox.Start) (told []string) {
	for _, s := range starts {
		told = append(told, path.Base(s.Path)+" "+string(s.Verdict))
	}
	return told
}

// exec is the record of an exec of the session "work".
func (p *place) exec(t *testing.T, id sandbox.ID) sandbox.ExecRecord {
	t.Helper()
	v := must(p.Session(context.WithoutCancel(t.Context()), "work"))
	if i := slices.IndexFunc(v.Execs, func(e sandbox.ExecRecord) bool { return e.ID == id }); i >= 0 {
		return v.Execs[i]
	}
	t.Fatalf("no exec %s", id)
	return sandbox.ExecRecord{}
}

// An exec in the background has in its record what it started, whoever sees its end:
// who judges, another process, or nobody who was asked to.
func TestBackgroundStarts(t *testing.T) {
	t.Parallel()
	startsEverywhere(t, backgroundStarts)
}

func backgroundStarts(t *testing.T, on string) {
	p := startsPlace(t, on)
	j := &judge{deny: []string{"id"}}
	m := p.seeing(t, j.Judge, sandbox.StartsRule{Mode: sandbox.StartsJudge})
	want := []string{"true allow", "sh allow", "id deny"}
	for who, by := range map[string]*manager.Manager{"who judges": m, "another": p.Manager, "nobody": nil} {
		e, err := m.StartIn(t.Context(), "work", sandbox.Run{Language: "shell", Command: []string{"sh", "-c", "/bin/true; sh -c '/usr/bin/id; :'; echo after"}}, sandbox.Local{})
		if err != nil {
			t.Fatal(err)
		}
		if by != nil {
			a, err := by.AttachExec(t.Context(), "work", e.ID, sandbox.AttachOptions{Follow: true}, nil, nil)
			if err != nil || a.Exit.Reason != sandbox.ReasonDenied || !strings.HasSuffix(a.Exit.Cause, "/usr/bin/id: T-1 Named") {
				t.Errorf("%s: %v %+v", who, err, a.Exit)
			}
		}
		if by != m {
			until(t, who+": it is told", func() bool { return len(p.exec(t, e.ID).Starts) > 0 })
		}
		rec := p.exec(t, e.ID)
		if rec.Ended.IsZero() || rec.Exit.Reason != sandbox.ReasonDenied || rec.Exit.Code != 126 || !slices.Equal(startsOf(rec.Starts), want) || rec.StartsLeftOut != 0 || rec.StartsUnjudged != 0 {
			t.Errorf("%s: %+v told %+v and %d, not judged %d", who, rec.Exit, rec.Starts, rec.StartsLeftOut, rec.StartsUnjudged)
		}
	}
}

// Of many starts a record keeps those that it has room for, and those that were refused
// before others.
func TestBackgroundStartsAreBounded(t *testing.T) {
	t.Parallel()
	startsEverywhere(t, backgroundStartsAreBounded)
}

func backgroundStartsAreBounded(t *testing.T, on string) {
	p := startsPlace(t, on)
	m := p.judging(t, (&judge{deny: []string{"id"}, any: true}).Judge)
	text := "w=$(printf %01000d 0); i=0; while [ $i -lt 300 ]; do /bin/true $w; i=$((i+1)); done; /usr/bin/id"
	e := must(m.StartIn(t.Context(), "work", sandbox.Run{Language: "shell", Command: []string{"sh", "-c", text}}, sandbox.Local{}))
	if _, err := m.AttachExec(t.Context(), "work", e.ID, sandbox.AttachOptions{Follow: true}, nil, nil); err != nil {
		t.Fatal(err)
	}
	rec := p.exec(t, e.ID)
	n := len(rec.Starts)
	if n+rec.StartsLeftOut != 301 || n < 100 || n > 256 || startsOf(rec.Starts)[n-1] != "id deny" || !rec.Starts[0].Cut {
		t.Errorf("told %d, left out %d: %+v", n, rec.StartsLeftOut, rec.Starts[n-1])
	}
}

// While an exec runs, what it has started is seen from any process.
func TestProcessesShowStarts(t *testing.T) {
	t.Parallel()
	startsEverywhere(t, processesShowStarts)
}

func processesShowStarts(t *testing.T, on string) {
	p := startsPlace(t, on)
	m := p.judging(t, func(ctx context.Context, q manager.Question) (manager.Answer, error) {
		if q.Start != nil && strings.HasSuffix(q.Start.Start.File, "/env") { // it is left open
			<-ctx.Done()
			return manager.Answer{}, ctx.Err()
		}
		return (&judge{deny: []string{"id"}}).Judge(ctx, q)
	})
	e := must(m.StartIn(t.Context(), "work", sandbox.Run{Language: "shell", Command: []string{"sh", "-c", "/bin/false; /usr/bin/id; sh -c '/bin/sleep 600; :' & /usr/bin/env"}}, sandbox.Local{}))
	want := map[string]string{"false": "false code 1", "id": "id refused", "sh": "sh unknown", "sleep": "sleep unknown", "env": "env asked"}
	var shown manager.Process
	until(t, "all is shown", func() bool {
		for _, i := range must(p.Processes(t.Context(), "work")) {
			if i.ID == e.ID {
				shown = i
			}
		}
		for _, s := range shown.Starts {
			name := path.Base(s.Path)
			if name == "false" && s.Ended == 0 || name == "sleep" && s.Verdict == sandbox.Ask {
				return false
			}
		}
		return len(shown.Starts) == len(want)
	})
	pid := map[string]sandbox.Start{}
	for _, s := range shown.Starts {
		name, is := path.Base(s.Path), endOf(s)
		if s.Verdict == sandbox.Ask {
			is = name + " asked"
		}
		if is != want[name] {
			t.Errorf("%s, want %s", is, want[name])
		}
		pid[name] = s
	}
	if pid["sleep"].Parent != pid["sh"].PID || pid["sh"].Parent != shown.PID || pid["id"].Why != "T-1 Named" || !slices.Equal(pid["sleep"].Argv, []string{"/bin/sleep", "600"}) {
		t.Errorf("%d has %+v", shown.PID, shown.Starts)
	}
	if err := m.KillExec(t.Context(), "work", e.ID); err != nil {
		t.Error(err)
	}
	for _, i := range must(m.Processes(t.Context(), "work")) {
		if ended := p.exec(t, i.ID); i.Running || i.StartsLeftOut != 0 || len(i.Starts) != len(want) || len(ended.Starts) != len(want) {
			t.Errorf("it has ended: %+v %+v", i, ended)
		}
	}
}

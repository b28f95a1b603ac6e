package manager_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/bridge"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

var _ manager.Recorder = (*bridge.Bridge)(nil)

// summary is a list of changes on one line.
func summary(changes []sandbox.FileChange) string {
	var out []string
	for _, c := range changes {
		path := c.Path
		if c.From != "" {
			path = c.From + ">" + c.Path
		}
		out = append(out, fmt.Sprintf("%s %s %s", c.Op, path, c.By))
	}
	slices.Sort(out)
	return strings.Join(out, "; ")
}

// changed runs a script and returns what it changed.
func (p *place) changed(t *testing.T, session, script string, mode sandbox.ChangeMode) (string, sandbox.Result) {
	t.Helper()
	res, err := p.ExecIn(t.Context(), session, sandbox.Run{Command: []string{"sh", "-c", script}, Track: mode}, sandbox.Streams{})
	if err != nil || res.Code != 0 {
		t.Fatalf("%s: %+v, %v\n%s", script, res.Exit, err, res.Stderr)
	}
	return summary(res.Changes), res
}

// TestChanges looks at what execs of a session are told to have changed, in
// both modes.
func TestChanges(t *testing.T) {
	t.Parallel()
	for _, mode := range []sandbox.ChangeMode{sandbox.ModeFast, sandbox.ModeExact} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.create(t, sandbox.SessionOptions{Name: "work"})
			for _, step := range []struct{ script, want string }{
				{"true", ""},
				{"echo 1 > a; mkdir d; ln -s a l; ln a h; mkfifo p", "created a own; created d own; created h own; created l own; created p own"},
				{"cat a; ls -laR", ""},
				{"echo 1 > a; touch d", ""},
				{"echo 2 >> h", "modified a own; modified h own"},
				{"mv d e; chmod 600 l a", "mode a own; mode h own; renamed d>e own"},
				{"rm -r e a l p", "deleted a own; deleted e own; deleted l own; deleted p own"},
				{`touch "$(printf 'x\377\ny')" -- -rf; chmod 0 -- -rf`, "created -rf own; created x\xff\ny own"},
				{"rm -- -rf x*; mkdir -m 700 s; echo x > s/f; chmod 0 s", "created s own; created s/f own; deleted -rf own; deleted x\xff\ny own"},
			} {
				if got, _ := p.changed(t, "work", step.script, mode); got != step.want {
					t.Errorf("%s: %s, want %s", step.script, got, step.want)
				}
			}
		})
	}
}

// TestWhoseChanges tells execs, the session, and what cannot be told apart.
func TestWhoseChanges(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	v := p.create(t, sandbox.SessionOptions{Name: "work"})
	p.changed(t, "work", "(until test -e go; do sleep 0.01; done; echo x > late) & true", "")
	f, err := p.Files(t.Context(), "work")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Put(t.Context(), []sandbox.File{{Path: "go", Data: []byte("!")}}, sandbox.Local{}); err != nil {
		t.Fatal(err)
	}
	until(t, "the background process writes", func() bool { info, err := f.Stat(t.Context(), "late"); return err == nil && info.Size > 0 })
	if got, _ := p.changed(t, "work", "sleep 0.2; echo y > mine", ""); !strings.Contains(got, "created mine") || strings.Contains(got, "late") {
		t.Errorf("beside what was there before: %s", got)
	}
	book, err := p.books.Book(t.Context(), v.ID, false)
	if err != nil {
		t.Fatal(err)
	}
	records, err := book.Ledger.Records(t.Context(), bridge.RecordFilter{})
	if err != nil {
		t.Fatal(err)
	}
	var own []sandbox.FileChange
	for _, r := range records {
		if r.Exec == "" {
			own = append(own, bridge.Shown(r.Changes)...)
		}
	}
	if got := summary(own); got != "created go session; created late session" && got != "created go session; created late session; modified late session" {
		t.Errorf("the session's own: %s", got)
	}
	// Two at once: each waits for the other in the middle.
	var both sync.WaitGroup
	results := make([]sandbox.Result, 2)
	for i := range results {
		both.Go(func() {
			script := fmt.Sprintf("touch r%d; until test -e r%d; do sleep 0.01; done; echo %d > both%d; until test -s both%d; do sleep 0.01; done", i, 1-i, i, i, 1-i)
			res, err := p.ExecIn(t.Context(), "work", sandbox.Run{Command: []string{"sh", "-c", script}}, sandbox.Streams{})
			if err != nil || res.Code != 0 {
				t.Errorf("%+v, %v", res.Exit, err)
			}
			results[i] = res
		})
	}
	both.Wait()
	for i, res := range results {
		found := 0
		for _, c := range res.Changes {
			if strings.HasPrefix(c.Path, "both") {
				found++
				if c.By != sandbox.ByShared || len(c.Execs) != 2 {
					t.Errorf("%s is %s of %v", c.Path, c.By, c.Execs)
				}
			}
		}
		if found != 2 {
			t.Errorf("exec %d is told of %s", i, summary(res.Changes))
		}
	}
}

// TestChangesAudited finds changes in the audit, and nothing of a session that
// was removed.
func TestChangesAudited(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	v := p.create(t, sandbox.SessionOptions{Name: "work"})
	_, res := p.changed(t, "work", "echo 1 > a", "")
	found := false
	for e, err := range p.store.Events(t.Context(), sandbox.EventFilter{Exec: res.ExecID, Kinds: []string{sandbox.EventExecEnded}}) {
		if err != nil {
			t.Fatal(err)
		}
		var d struct {
			Files struct {
				Count   map[sandbox.ChangeOp]int
				Changes []sandbox.FileChange
			}
		}
		if err := json.Unmarshal(e.Data, &d); err != nil {
			t.Fatal(err)
		}
		found = d.Files.Count[sandbox.OpCreated] == 1 && d.Files.Changes[0].Path == "a" && len(d.Files.Changes[0].After.SHA256) == 64
	}
	if !found {
		t.Error("the end of an exec does not tell what it changed")
	}
	dir := filepath.Join(p.dir, "changes", string(v.ID))
	if _, err := os.Stat(filepath.Join(dir, "ledger.db")); err != nil {
		t.Error(err)
	}
	if err := p.RemoveSession(t.Context(), "work", false); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("left behind: %v", err)
	}
}

// TestUndoInSandbox takes back what execs did, as the session's user.
func TestUndoInSandbox(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	v := p.create(t, sandbox.SessionOptions{Name: "work"})
	look := "stat -c '%n %a %Y %F %s' . * */* 2>/dev/null | sort; cat a d/f; readlink l; true"
	p.changed(t, "work", "echo one > a; mkdir -m 750 d; echo two > d/f; ln -s a l; chmod 400 d/f", "")
	_, before := p.changed(t, "work", look, "")
	_, res := p.changed(t, "work", "echo ONE > a; rm -rf d; ln -snf /etc/passwd l; mkdir n; echo x > n/x; chmod 500 n .", "")
	_, tree, err := p.Tree(t.Context(), "work")
	if err != nil {
		t.Fatal(err)
	}
	u, err := p.books.Undo(t.Context(), v.ID, "work", tree, bridge.UndoOptions{Exec: res.ExecID})
	if err != nil {
		t.Fatal(err)
	}
	if _, after := p.changed(t, "work", look, ""); string(after.Stdout) != string(before.Stdout) {
		t.Errorf("before:\n%s\nafter the undo:\n%s", before.Stdout, after.Stdout)
	}
	if _, err := p.books.Undo(t.Context(), v.ID, "work", tree, bridge.UndoOptions{Exec: u.Record.Exec}); err != nil {
		t.Error(err)
	}
	if got, _ := p.changed(t, "work", "test -e n/x && test ! -e d && readlink l && cat a", ""); got != "" {
		t.Errorf("a look changed %s", got)
	}
}

// TestOneShotChanges looks at the changes of execs in a sandbox of their own.
func TestOneShotChanges(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	res, err := p.Run(t.Context(), sandbox.Run{
		Command: []string{"sh", "-c", "echo b > b; echo 1 > a; echo 3 > c"},
		Files:   []sandbox.File{{Path: "a", Data: []byte("1\n")}, {Path: "c", Data: []byte("2\n")}},
	}, sandbox.Streams{})
	if err != nil || summary(res.Changes) != "created b own; modified c own" {
		t.Errorf("%s, %v", summary(res.Changes), err)
	}
	if left, err := os.ReadDir(filepath.Join(p.dir, "changes")); len(left) > 0 || err != nil && !os.IsNotExist(err) {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestFeedWhileRunning is told of changes while the exec that makes them runs,
// and at its end of all of them.
func TestFeedWhileRunning(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.create(t, sandbox.SessionOptions{Name: "work"})
	f, err := p.Files(t.Context(), "work")
	if err != nil {
		t.Fatal(err)
	}
	news := p.books.Feed().Subscribe(t.Context())
	done := make(chan sandbox.Result, 1)
	go func() {
		script := "echo 1 > first; until test -e go; do sleep 0.02; done; echo 22 > first; echo 2 > second"
		res, err := p.ExecIn(t.Context(), "work", sandbox.Run{Command: []string{"sh", "-c", script}}, sandbox.Streams{})
		if err != nil || res.Code != 0 {
			t.Errorf("%+v, %v", res.Exit, err)
		}
		done <- res
	}()
	seen := map[string]bool{}
	for n := range news {
		if n.Session != "work" {
			t.Errorf("%+v", n)
		}
		if n.Path == "first" && len(seen) == 0 {
			if !n.Provisional {
				t.Error("it is told as final while its exec runs")
			}
			if err := f.Put(t.Context(), []sandbox.File{{Path: "go", Data: []byte("!")}}, sandbox.Local{}); err != nil {
				t.Fatal(err)
			}
		}
		if seen[n.Path] = true; seen["second"] && !n.More {
			break
		}
	}
	res := <-done
	if got := summary(res.Changes); !strings.Contains(got, "created first") || !strings.Contains(got, "created second own") {
		t.Errorf("at the end: %s", got)
	}
	for _, c := range res.Changes {
		if c.Path == "first" && c.After.Size != 3 {
			t.Errorf("%+v", c)
		}
	}
}

// TestRecordWithinBudget makes more than can be read of it in time: each file is
// told of, and which were not read. A small one beside them was.
func TestRecordWithinBudget(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.create(t, sandbox.SessionOptions{Name: "work", Limits: sandbox.Limits{FileSize: 4 * sandbox.GiB}})
	_, res := p.changed(t, "work", "for i in $(seq 40); do truncate -s 3G s$i; done; echo 1 > z", "")
	made, unread := 0, 0
	for _, c := range res.Changes {
		made++
		if c.After.Unread() {
			unread++
		}
		if c.Path == "z" && c.After.Unread() {
			t.Error("a small file was not read")
		}
	}
	if made != 41 || unread != 40 {
		t.Errorf("%d were made, %d not read", made, unread)
	}
	if got, _ := p.changed(t, "work", "rm s*; echo 2 > z", ""); strings.Count(got, "deleted s") != 40 || !strings.Contains(got, "modified z") {
		t.Errorf("afterwards: %s", got)
	}
}

// TestWhoseBesideAnother has a session's second sandbox appear while an exec runs
// in its first. What the exec of the second does is not the first one's own.
func TestWhoseBesideAnother(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "python")
	p.create(t, sandbox.SessionOptions{Name: "work"})
	sh(t, p.Manager, "work", "true") // from here on it is connected to the first
	begun, first, second := make(chan struct{}), make(chan sandbox.Result, 1), make(chan sandbox.Result, 1)
	run := func(into chan sandbox.Result, run sandbox.Run, streams sandbox.Streams) {
		run.Timeout = sandbox.Duration(time.Minute)
		res, err := p.ExecIn(t.Context(), "work", run, streams)
		if err != nil || res.Code != 0 {
			t.Errorf("%+v, %v, %s", res.Exit, err, res.Stderr)
		}
		into <- res
	}
	go run(first, sandbox.Run{Command: []string{"sh", "-c", "echo begun; until test -e go; do sleep 0.02; done; echo 1 > mine"}},
		sandbox.Streams{Stdout: &signalWriter{first: func() { close(begun) }}})
	await(t, begun)
	go run(second, sandbox.Run{Language: "python", Code: `
import os, time
open("theirs", "w").write("x")
open("go", "w").close()
while not os.path.exists("end"): time.sleep(0.02)
`}, sandbox.Streams{})
	res := <-first
	if !strings.Contains(summary(res.Changes), "created mine") {
		t.Errorf("the first: %s", summary(res.Changes))
	}
	for _, c := range res.Changes {
		if c.Path != "mine" && c.By == sandbox.ByOwn || c.By == sandbox.ByShared && len(c.Execs) != 2 {
			t.Errorf("%s is %s of %v", c.Path, c.By, c.Execs)
		}
	}
	f, err := p.Files(t.Context(), "work")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Put(t.Context(), []sandbox.File{{Path: "end"}}, sandbox.Local{}); err != nil {
		t.Fatal(err)
	}
	other := <-second
	if got := summary(other.Changes); !strings.Contains(got, "created theirs") {
		t.Errorf("the second: %s", got)
	}
}

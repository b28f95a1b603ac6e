package manager_test

import (
	"path"
	"slices"
	"testing"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// What texts start in a shell is judged and told with each, by who opened the shell and
// by others once that has gone.
func TestShellStarts(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.create(t, sandbox.SessionOptions{Name: "work"})
	j := &judge{deny: []string{"id"}}
	opener := p.judging(t, j.Judge)
	opened := must(opener.OpenShell(t.Context(), "work", "main", sandbox.ShellOptions{}, sandbox.Local{}))
	m := opener
	for _, who := range []string{"who opened it", "another", "one that stays"} {
		if who != "who opened it" {
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
			m = p.opened(t, manager.Config{Gate: j.Judge, Starts: sandbox.StartsRule{Mode: sandbox.StartsJudge, Goes: true}, Stays: who == "one that stays"})
		}
		if who == "one that stays" {
			if _, err := m.Recover(t.Context()); err != nil {
				t.Fatal(err)
			}
			until(t, "it judges the shell", func() bool { return m.Judges(opened.ExecID) })
		}
		for _, tt := range []struct {
			text, out string
			starts    []string
		}{
			{"/usr/bin/id 2>/dev/null; echo $?", "126\n", []string{"id deny"}},
			{"/bin/echo one; /bin/echo two", "one\ntwo\n", []string{"echo allow", "echo allow"}},
			{":", "", nil},
		} {
			res, err := m.RunShell(t.Context(), "work", "main", sandbox.ShellRun{Text: tt.text}, sandbox.Streams{})
			if err != nil {
				t.Fatal(err)
			}
			var told []string
			for _, s := range res.Starts {
				told = append(told, path.Base(s.Path)+" "+string(s.Verdict))
			}
			if string(res.Stdout) != tt.out || !slices.Equal(told, tt.starts) || res.StartsLeftOut != 0 || len(res.NotEnforced) > 0 && slices.Contains(res.NotEnforced, "starts") {
				t.Errorf("%s: %s: %+v %q %q, told %q and %d", who, tt.text, res.Exit, res.Stdout, res.Stderr, told, res.StartsLeftOut)
			}
		}
	}
}

// A start that is refused ends the text that runs in a shell, and the shell stays.
func TestDeniedStartInShell(t *testing.T) {
	t.Parallel()
	j := &judge{deny: []string{"id"}}
	m := sessionOfStarts(t, j.Judge, sandbox.StartsRule{Mode: sandbox.StartsJudge})
	if _, err := m.OpenShell(t.Context(), "work", "main", sandbox.ShellOptions{}, sandbox.Local{}); err != nil {
		t.Fatal(err)
	}
	res, err := m.RunShell(t.Context(), "work", "main", sandbox.ShellRun{Text: "x=kept; echo before; /usr/bin/id; echo after"}, sandbox.Streams{})
	if err != nil || res.Reason != sandbox.ReasonDenied || res.Code != 126 || string(res.Stdout) != "before\n" || len(res.Starts) != 1 {
		t.Errorf("%v %+v %q %q %+v", err, res.Exit, res.Stdout, res.Stderr, res.Starts)
	}
	res, err = m.RunShell(t.Context(), "work", "main", sandbox.ShellRun{Text: "/bin/echo $x"}, sandbox.Streams{})
	if err != nil || res.Reason != sandbox.ReasonExited || string(res.Stdout) != "kept\n" {
		t.Errorf("%v %+v %q %q", err, res.Exit, res.Stdout, res.Stderr)
	}
}

// What a shell has open itself it can start, though it hides that from others.
func TestShellStartsByDescriptor(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "python")
	p.create(t, sandbox.SessionOptions{Name: "work", Language: "python"})
	j := &judge{}
	m := p.judging(t, j.Judge)
	if _, err := m.OpenShell(t.Context(), "work", "main", sandbox.ShellOptions{Kind: sandbox.ShellPython}, sandbox.Local{}); err != nil {
		t.Fatal(err)
	}
	const text = `
import os, subprocess
fd = os.open("/bin/echo", os.O_RDONLY)
subprocess.run(["/proc/self/fd/%d" % fd, "by its path"], pass_fds=[fd])
if os.fork() == 0:
    os.execve(fd, ["echo", "by itself"], {})
os.wait()[1]`
	res, err := m.RunShell(t.Context(), "work", "main", sandbox.ShellRun{Text: text}, sandbox.Streams{})
	if err != nil || string(res.Stdout) != "by its path\nby itself\n0\n" || len(res.Starts) != 2 || len(j.about("echo")) == 0 {
		t.Errorf("%v %+v %q %q %+v", err, res.Exit, res.Stdout, res.Stderr, res.Starts)
	}
}

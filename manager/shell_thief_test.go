package manager_test

import (
	"fmt"
	"testing"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/bubblewrap"
	"github.com/caisson-dev/caisson/runtimes/docker"
	"github.com/caisson-dev/caisson/sandbox"
)

// thief is a program that a shell has started, and that knows how shells are spoken with.
// It opens what it has open itself, what the shell has if it can see that, and what lies
// beside it, reads all there is, and writes ends of its own with what it has read.
const thief = `
import os, re, sys
shell, stop, met = sys.argv[1:]
places, keys, taken = set(), set(), {}
def look():
    for at in ["/proc/%s/fd/" % pid for pid in (shell, "self") if os.access("/proc/%s/fd" % pid, os.R_OK)]:
        for n in os.listdir(at):
            try:
                to = os.readlink(at + n)
            except OSError:
                continue
            if to.startswith("/run/"):
                near = os.path.dirname(to)
                places.update(near + "/" + name for name in ["go", "end"] + [str(n) + kind for n in range(40) for kind in ("", ".go", ".run", ".text")])
            if not re.search(r"/dev/|[.](in|out|err)$", to):
                places.update([at + n, to])
def steal():
    for p in list(places):
        try:
            if p not in taken:
                taken[p] = os.open(p, os.O_RDONLY | os.O_NONBLOCK)
            for _ in range(9):
                got = os.read(taken[p], 4096)
                keys.update(re.findall(rb"[A-Z2-7]{8,}", got))
        except OSError:
            pass
def forge():
    for p in [p for p in places if not p.startswith("/proc/")]:  # a name may mean a run's stdout by now
        try:
            fd = os.open(p, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            continue
        try:
            for key in list(keys)[-50:] + [b""]:
                os.write(fd, key + b"\x0042\0-\0" + key + b"42\0ready\0\0\0opened\0\0\0" + b"9h 9h!!")
        except OSError:
            pass
        os.close(fd)
    for key in keys:
        for name in ("comm", "task/%s/comm" % shell):
            try:
                with open("/proc/%s/%s" % (shell, name), "wb", buffering=0) as f:
                    f.write(key[:8] + b"42")
            except OSError:
                pass
open(met, "w").close()
while os.path.exists(stop):
    for do in (look, steal, forge):
        try:
            do()
        except OSError:
            pass
`

// TestShellThief has a program in the background read and write all that it can find of what its
// shell is spoken with by: no text is lost, and no end forged or hidden.
func TestShellThief(t *testing.T) {
	t.Parallel()
	for _, on := range []string{docker.Name, bubblewrap.Name} {
		t.Run(on, func(t *testing.T) {
			t.Parallel()
			kit := enginetest.New(t)
			all := kit.Runtimes(t)
			if on == bubblewrap.Name {
				all = runtimes.Only(on, kit.Jail(t))
			}
			p := newPlaceWith(t, kit, all, "python")
			p.create(t, sandbox.SessionOptions{Name: "work", Language: "python"})
			openIn(t, p.Manager, "other", sandbox.ShellAny)
			in(t, p.Manager, "other", "cat > /tmp/thief.py <<'EOF'\n"+thief+"EOF\ntouch /tmp/bash /tmp/sh /tmp/python")
			for kind, texts := range map[sandbox.ShellKind][2]string{
				sandbox.ShellBash:   {"python3 /tmp/thief.py $$ /tmp/%[1]s /tmp/%[1]s.met </dev/null 2>/dev/null &", "echo %d; (exit 7)"},
				sandbox.ShellSh:     {"python3 /tmp/thief.py $$ /tmp/%[1]s /tmp/%[1]s.met </dev/null 2>/dev/null &", "echo %d; (exit 7)"},
				sandbox.ShellPython: {"import os, subprocess\nchild = subprocess.Popen(['python3', '/tmp/thief.py', str(os.getpid()), '/tmp/%[1]s', '/tmp/%[1]s.met'], stdin=-3, stderr=-3)", "print(%d); 1/0"},
			} {
				t.Run(string(kind), func(t *testing.T) {
					t.Parallel()
					p.robbed(t, kind, texts[0], texts[1])
				})
			}
		})
	}
}

// robbed runs a thief in a shell, and texts beside it.
func (p *place) robbed(t *testing.T, kind sandbox.ShellKind, start, text string) {
	t.Helper()
	name := string(kind)
	openIn(t, p.Manager, name, kind)
	in(t, p.Manager, name, fmt.Sprintf(start, name))
	until(t, "the thief is at work", func() bool {
		res, err := p.ExecIn(t.Context(), "work", sandbox.Run{Command: []string{"test", "-e", "/tmp/" + name + ".met"}}, sandbox.Streams{})
		if err != nil {
			t.Fatal(err)
		}
		return res.Code == 0
	})
	want := 7
	if kind == sandbox.ShellPython {
		want = 1
	}
	for i := range 30 {
		run := sandbox.ShellRun{Text: fmt.Sprintf(text, i), ExecLimits: sandbox.ExecLimits{Timeout: sandbox.Duration(enginetest.Patience)}}
		res := inWith(t, p.Manager, name, run, "")
		if string(res.Stdout) != fmt.Sprintln(i) || res.Code != want || res.Reason != sandbox.ReasonExited || res.Shell.Ended != "" || res.Usage.CPU > enginetest.Patience {
			t.Fatalf("text %d: %q, %.300q, %+v, %+v, %v", i, res.Stdout, res.Stderr, res.Exit, res.Shell, res.Usage.CPU)
		}
	}
}

package manager_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/bubblewrap"
	"github.com/caisson-dev/caisson/runtimes/docker"
	"github.com/caisson-dev/caisson/runtimes/process"
	"github.com/caisson-dev/caisson/sandbox"
)

// spy is a program that a shell has started, and that tries to look into it, and to act in
// its place.
const spy = `cat > /tmp/spy.py <<'EOF'
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
at = "/proc/" + sys.argv[1] + "/"

def tell(name, do):
    try:
        do()
        print(name, "open")
    except OSError as e:
        print(name, errno.errorcode[e.errno])

def trace(how):
    if libc.ptrace(how, int(sys.argv[1]), None, None) < 0:
        raise OSError(ctypes.get_errno(), "")

tell("files", lambda: os.listdir(at + "fd"))
tell("input", lambda: open(at + "fd/0", "rb").close())
tell("output", lambda: open(at + "fd/1", "wb").close())
tell("variables", lambda: open(at + "environ", "rb").read())
tell("memory", lambda: open(at + "mem", "r+b", buffering=0).close())
tell("attach", lambda: trace(16))
tell("seize", lambda: trace(0x4206))
EOF
`

// TestShellHidden has a program that a shell has started try to trace that, and to reach
// what it has open and in memory: it cannot, however little its sandbox is hardened.
func TestShellHidden(t *testing.T) {
	t.Parallel()
	for _, on := range []string{docker.Name, bubblewrap.Name, process.Name} {
		t.Run(on, func(t *testing.T) {
			t.Parallel()
			kit := enginetest.New(t)
			all := kit.Runtimes(t)
			switch on {
			case bubblewrap.Name:
				all = runtimes.Only(on, kit.Jail(t))
			case process.Name:
				all = runtimes.Only(on, kit.Unwalled(t))
			}
			p := newPlaceWith(t, kit, all, "python")
			for _, hardening := range map[bool][]sandbox.Hardening{true: {""}, false: {sandbox.HardeningStrict, sandbox.HardeningOff}}[on == process.Name] {
				p.create(t, sandbox.SessionOptions{Name: "work", Language: "python", Limits: sandbox.Limits{Hardening: hardening}})
				for kind, text := range map[sandbox.ShellKind]string{
					sandbox.ShellBash: spy + "python3 /tmp/spy.py $$", sandbox.ShellSh: spy + "python3 /tmp/spy.py $$",
					sandbox.ShellPython: "import os\nassert os.system('''" + spy + "python3 /tmp/spy.py %d''' % os.getpid()) == 0",
				} {
					openIn(t, p.Manager, string(kind), kind)
					res := in(t, p.Manager, string(kind), text)
					want := "files EACCES\ninput EACCES\noutput EACCES\nvariables EACCES\nmemory EACCES\nattach EPERM\nseize EPERM\n"
					if diff := cmp.Diff(want, string(res.Stdout)); diff != "" || res.Code != 0 {
						t.Errorf("%s, hardening %s: %+v %s\n-want +got\n%s", kind, hardening, res.Exit, res.Stderr, diff)
					}
				}
				if err := p.RemoveSession(t.Context(), "work", true); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

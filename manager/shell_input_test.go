package manager_test

import (
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// lurker writes to whatever a shell has open, by its names in /proc: a line of a shell to
// what may be its input.
const lurker = `cat > /tmp/lurker <<'EOF'
exec 2>/dev/null
while test ! -e /tmp/stop; do
	for f in /proc/$1/fd/*; do
		case $(readlink $f) in
		*.out|*.err|/dev/*) ;;
		*) echo 'x=forged' > $f ;;
		esac
	done
	echo > /tmp/met
	sleep 0.01
done
EOF
x=own
`

// TestShellInput has a program in the background write to its shell's own input, which it
// cannot.
func TestShellInput(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "python")
	for _, kind := range []sandbox.ShellKind{sandbox.ShellBash, sandbox.ShellSh} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			session := string(kind)
			p.create(t, sandbox.SessionOptions{Name: session, Language: "python"})
			if _, err := p.OpenShell(t.Context(), session, "s", sandbox.ShellOptions{Kind: kind}, sandbox.Local{}); err != nil {
				t.Fatal(err)
			}
			run := func(text string, limit time.Duration) sandbox.Result {
				t.Helper()
				res, err := p.RunShell(t.Context(), session, "s", sandbox.ShellRun{Text: text, ExecLimits: sandbox.ExecLimits{Timeout: sandbox.Duration(limit)}}, sandbox.Streams{})
				if err != nil {
					t.Fatalf("%q: %v", text, err)
				}
				return res
			}
			run(lurker+"sh /tmp/lurker $$ </dev/null >/dev/null 2>&1 &", time.Minute)
			until(t, "it meets the shell", func() bool {
				res, err := p.ExecIn(t.Context(), session, sandbox.Run{Command: []string{"test", "-e", "/tmp/met"}}, sandbox.Streams{})
				if err != nil {
					t.Fatal(err)
				}
				return res.Code == 0
			})
			for range 3 { // what lies on the shell's input is read then
				if res := run("sleep 1000", 300*time.Millisecond); res.Reason != sandbox.ReasonTimeout || res.Shell.Ended != "" {
					t.Errorf("%+v, %+v", res.Exit, res.Shell)
				}
			}
			if res := run("touch /tmp/stop; echo $x", time.Minute); strings.TrimSpace(string(res.Stdout)) != "own" {
				t.Errorf("its state is %q, %q; %+v", res.Stdout, res.Stderr, res.Exit)
			}
		})
	}
}

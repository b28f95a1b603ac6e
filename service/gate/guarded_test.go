package gate_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/sandbox"
)

// What runs in the background under guard ends once what it reads later is another,
// and runs to its end where nothing is.
func TestGuarded(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "shell")
	f := p.session(t, "guard", "shell")
	waits := sandbox.Run{Command: []string{"bash", "-c", "while [ ! -e go ]; do sleep 0.02; done; bash later.sh"}, Guard: true, Approve: sandbox.ApproveNever}
	for _, swapped := range []bool{false, true} {
		write(t, f, "later.sh", "echo good\n")
		e, err := p.StartIn(t.Context(), "guard", waits, sandbox.Local{})
		if err != nil {
			t.Fatal(err)
		}
		if swapped {
			write(t, f, "later.sh", "echo EVIL\n")
		} else {
			write(t, f, "go", "")
		}
		var out strings.Builder
		a, err := p.AttachExec(t.Context(), "guard", e.ID, sandbox.AttachOptions{Follow: true}, &out, nil)
		switch {
		case err != nil:
			t.Error(err)
		case !swapped && (a.Exit.Reason != sandbox.ReasonExited || out.String() != "good\n"):
			t.Errorf("%+v, %q", a.Exit, out.String())
		case swapped && (a.Exit.Reason != sandbox.ReasonCanceled || !strings.Contains(a.Exit.Cause, "later.sh") || out.Len() > 0):
			t.Errorf("%+v, %q", a.Exit, out.String())
		}
		if err := f.Remove(t.Context(), "go", false); err != nil && !errors.Is(err, sandbox.NotFound) {
			t.Fatal(err)
		}
	}
	waits.Guard = false
	if _, err := p.StartIn(t.Context(), "guard", waits, sandbox.Local{}); !errors.Is(err, sandbox.Denied) {
		t.Errorf("without guard: %v", err)
	}
}

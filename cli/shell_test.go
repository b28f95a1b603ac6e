package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

// lyingShell tells of its end what a terminal would obey.
type lyingShell struct{ api.Service }

func (lyingShell) RunShell(context.Context, string, string, sandbox.ShellRun, sandbox.Streams) (sandbox.Result, error) {
	return sandbox.Result{
		Exit: sandbox.Exit{Code: 3, Reason: sandbox.ReasonExited}, Shell: &sandbox.ShellState{Name: "main", Ended: "it exited\x1b[2J\nwith 3"},
	}, nil
}

// TestShellEndIsShown has the end of a shell be told on one line, as text.
func TestShellEndIsShown(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	code := Main(t.Context(), Config{
		IO:        IOStreams{In: strings.NewReader(""), Out: &out, Err: &errs},
		Service:   func(context.Context) (api.Service, error) { return lyingShell{}, nil },
		LookupEnv: func(string) (string, bool) { return "", false },
	}, []string{"shell", "run", "work", "main", "exit 3"})
	if want := `caisson: shell main has ended: it exited\x1b[2J\x0awith 3` + "\n"; code != 3 || errs.String() != want {
		t.Errorf("exit code %d, %q, want %q", code, errs.String(), want)
	}
}

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

// fullDisk runs everything, and can write nothing down.
type fullDisk struct{ api.Service }

func (fullDisk) Run(context.Context, sandbox.Run, sandbox.Streams) (sandbox.Result, error) {
	return sandbox.Result{
		ExecID: sandbox.NewID(), Exit: sandbox.Exit{Code: 3, Reason: sandbox.ReasonExited}, ChangesError: "the ledger is locked",
	}, sandbox.Errorf(sandbox.Exhausted, "the disk is full")
}

func (fullDisk) AttachExec(context.Context, string, sandbox.ID, sandbox.AttachOptions, io.Writer, io.Writer) (sandbox.Attached, error) {
	return sandbox.Attached{Ended: true, Exit: sandbox.Exit{Code: 3, Reason: sandbox.ReasonExited}}, sandbox.Errorf(sandbox.Exhausted, "the disk is full")
}

// TestRanUnrecorded has a run whose record failed exit with the program's code,
// and say beside it what is not written down.
func TestRanUnrecorded(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"run":  {"run", "-l", "shell", "-c", "exit 3"},
		"json": {"run", "--json", "-l", "shell", "-c", "exit 3"},
		"logs": {"logs", "--follow", "work", string(sandbox.NewID())},
	} {
		var out, errs bytes.Buffer
		code := Main(t.Context(), Config{
			IO:        IOStreams{In: strings.NewReader(""), Out: &out, Err: &errs},
			Service:   func(context.Context) (api.Service, error) { return fullDisk{}, nil },
			LookupEnv: func(string) (string, bool) { return "", false },
		}, args)
		if code != 3 || strings.Count(errs.String(), "the disk is full") != 1 {
			t.Errorf("%s: exit code %d, %q", name, code, errs.String())
		}
		var res sandbox.Result
		switch name {
		case "run":
			if !strings.Contains(errs.String(), "the ledger is locked") {
				t.Errorf("nothing says that its changes are not known: %q", errs.String())
			}
		case "json":
			if err := json.Unmarshal(out.Bytes(), &res); err != nil || res.Code != 3 || res.ChangesError != "the ledger is locked" {
				t.Errorf("%v, %s", err, out.String())
			}
		}
	}
}

// elsewhere runs everything on a runtime that does not limit all.
type elsewhere struct{ api.Service }

func (elsewhere) Run(context.Context, sandbox.Run, sandbox.Streams) (sandbox.Result, error) {
	return sandbox.Result{Runtime: "bubblewrap", NotEnforced: []string{"memory", "cpu"}}, nil
}

// TestAutoTells says which runtime auto took, and what that does not limit; who named one
// knows.
func TestAutoTells(t *testing.T) {
	t.Parallel()
	for runtime, want := range map[string]string{"auto": "caisson: auto chose the runtime bubblewrap, where nothing limits memory, cpu\n", "bubblewrap": ""} {
		var out, errs bytes.Buffer
		code := Main(t.Context(), Config{
			IO:        IOStreams{In: strings.NewReader(""), Out: &out, Err: &errs},
			Service:   func(context.Context) (api.Service, error) { return elsewhere{}, nil },
			LookupEnv: func(string) (string, bool) { return "", false },
		}, []string{"run", "--runtime", runtime, "-l", "shell", "-c", "true"})
		if code != 0 || errs.String() != want {
			t.Errorf("--runtime %s: exit code %d, %q, want %q", runtime, code, errs.String(), want)
		}
	}
}

// TestNowhereToSay: an error that cannot be said in JSON where results go is said
// where errors go.
func TestNowhereToSay(t *testing.T) {
	t.Parallel()
	closed, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	defer w.Close()
	for _, args := range [][]string{{"ps", "--json"}, {"ps"}} {
		var errs bytes.Buffer
		code := Main(t.Context(), Config{
			IO: IOStreams{In: strings.NewReader(""), Out: w, Err: &errs},
			Service: func(context.Context) (api.Service, error) {
				return nil, sandbox.Errorf(sandbox.Unavailable, "no engine")
			},
			LookupEnv: func(string) (string, bool) { return "", false },
		}, args)
		if code != exitFailed || errs.String() != "caisson: no engine\n" {
			t.Errorf("%q: exit code %d, %q", args, code, errs.String())
		}
	}
}

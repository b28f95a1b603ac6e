package runtimes_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/runtimetest"
	"github.com/caisson-dev/caisson/sandbox"
)

// Runtimes are found by their names, each is opened once and when it is wanted,
// and with what the host has. What it can do beyond the contract is not hidden.
func TestRegistry(t *testing.T) {
	t.Parallel()
	host := runtimes.Host{Agent: "/agent", Base: "/base", Holder: "me"}
	r := runtimes.NewRegistry(host)
	opened, memory := 0, &runtimetest.Memory{}
	if err := r.Register("first", func(h runtimes.Host) (runtimes.Runtime, error) {
		if h != host {
			t.Errorf("opened with %+v", h)
		}
		opened++
		return memory, nil
	}); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if err := r.Register("second", func(runtimes.Host) (runtimes.Runtime, error) { return nil, broken }); err != nil {
		t.Fatal(err)
	}
	if opened != 0 {
		t.Error("a runtime that nobody wants was opened")
	}
	for _, name := range []string{"", "first", ""} {
		if rt, err := r.Runtime(name); err != nil || rt != runtimes.Runtime(memory) {
			t.Errorf("%q is %v, %v, and not what was registered", name, rt, err)
		}
	}
	if opened != 1 {
		t.Errorf("opened %d times", opened)
	}
	if _, err := r.Runtime("second"); !errors.Is(err, broken) {
		t.Errorf("one that cannot be opened: %v", err)
	}
	if _, err := r.Runtime("third"); !errors.Is(err, sandbox.Invalid) || !strings.Contains(sandbox.HintOf(err), "first, second") {
		t.Errorf("one that is not there: %v, %q", err, sandbox.HintOf(err))
	}
	if got := r.Names(); !slices.Equal(got, []string{"first", "second"}) {
		t.Errorf("names %q", got)
	}
}

func TestRegisterRefuses(t *testing.T) {
	t.Parallel()
	open := func(runtimes.Host) (runtimes.Runtime, error) { return &runtimetest.Memory{}, nil }
	r := runtimes.NewRegistry(runtimes.Host{})
	if err := r.Register("one", open); err != nil {
		t.Fatal(err)
	}
	if err := r.Register("one", open); !errors.Is(err, sandbox.Conflict) {
		t.Errorf("a name twice: %v", err)
	}
	for _, name := range []string{"", "Docker", "a/b", "1st", runtimes.Auto, strings.Repeat("x", 40)} {
		if err := r.Register(name, open); !errors.Is(err, sandbox.Invalid) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if err := r.Register("none", nil); !errors.Is(err, sandbox.Invalid) {
		t.Errorf("without a runtime: %v", err)
	}
}

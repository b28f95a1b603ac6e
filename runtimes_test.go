package caisson_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/caisson-dev/caisson"
	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/runtimetest"
	"github.com/caisson-dev/caisson/sandbox"
)

// A program's own runtime stands beside those of caisson, tells what it is, and
// is the default where that is set. One that cannot be opened says why.
func TestOwnRuntimes(t *testing.T) {
	t.Parallel()
	env := map[string]string{"CAISSON_AGENT": enginetest.Agent(t), "CAISSON_RUNTIME": "mine", "DOCKER_HOST": "unix:///nonexistent"}
	cfg := caisson.Config{Getenv: func(name string) string { return env[name] }, StateDir: t.TempDir(), Runtimes: map[string]runtimes.Opener{
		"mine": func(h runtimes.Host) (runtimes.Runtime, error) {
			if h.Agent != env["CAISSON_AGENT"] || h.Base == "" || h.State == "" || h.Holder == "" {
				t.Errorf("opened with %+v", h)
			}
			return &runtimetest.Memory{}, nil
		},
		"broken": func(runtimes.Host) (runtimes.Runtime, error) {
			return nil, sandbox.Errorf(sandbox.Unavailable, "it is broken").WithHint("mend it")
		},
	}}
	c := caisson.New(cfg)
	t.Cleanup(func() { _ = c.Close() })
	infos, err := c.Runtimes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	of := func(name string) api.RuntimeInfo {
		i := slices.IndexFunc(infos, func(i api.RuntimeInfo) bool { return i.Name == name })
		if i < 0 {
			t.Fatalf("no %s in %+v", name, infos)
		}
		return infos[i]
	}
	if i := of("mine"); !i.Available || !i.Default || i.Engine == "" || i.Isolation != "none" || !slices.Contains(i.NotEnforced, "memory") {
		t.Errorf("%+v", i)
	}
	if i := of("broken"); i.Available || i.Default || i.Error != "it is broken" || i.Hint != "mend it" {
		t.Errorf("%+v", i)
	}
	if i := of("docker"); i.Available || i.Default || i.Error == "" || i.Hint == "" {
		t.Errorf("%+v", i)
	}
	cfg.Runtimes = map[string]runtimes.Opener{"docker": cfg.Runtimes["mine"]}
	taken := caisson.New(cfg)
	t.Cleanup(func() { _ = taken.Close() })
	if _, err := taken.Runtimes(t.Context()); !errors.Is(err, sandbox.Conflict) {
		t.Errorf("a name that is taken: %v", err)
	}
}

package docker_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// Whatever makes an engine start another process before the agent, which would
// then be the parent of what programs leave behind: no such container is used. The
// plan asks for none, and the agent looks for itself.
func TestAgentIsFirst(t *testing.T) {
	t.Parallel()
	kit := enginetest.New(t)
	rt := kit.Runtime(t)
	id := sandbox.NewID()
	plan, err := rt.Plan(t.Context(), sandbox.Spec{Image: kit.Image(t, "shell"), Holder: kit.Holder, Identity: sandbox.IdentityFor(id)})
	if err != nil {
		t.Fatal(err)
	}
	with := func(init string) runtimes.Plan {
		p := plan
		p.Request = []byte(strings.Replace(string(plan.Request), `"Init":false`, `"Init":`+init, 1))
		return p
	}
	if string(with("true").Request) == string(plan.Request) {
		t.Fatalf("the plan asks for no Init: %s", plan.Request)
	}
	if _, err := rt.Create(t.Context(), id, with("true")); !errors.Is(err, sandbox.Conflict) || !strings.Contains(err.Error(), "before the agent") {
		t.Errorf("an agent behind an init: %v", err)
	}
	box, err := rt.Create(t.Context(), id, plan)
	if err != nil {
		t.Fatal(err)
	}
	if err := box.Destroy(t.Context()); err != nil {
		t.Error(err)
	}
}

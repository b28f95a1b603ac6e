package runtimetest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/runtimetest"
	"github.com/caisson-dev/caisson/sandbox"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	m := &runtimetest.Memory{}
	runtimetest.Run(t, runtimetest.Subject{
		New: func(testing.TB) runtimes.Runtime { return m },
		Spec: func(testing.TB) sandbox.Spec {
			return sandbox.Spec{Language: "shell", Image: sandbox.Image{Ref: "none"}, Holder: "suite", Identity: sandbox.IdentityFor("x")}
		},
		Faults: []runtimetest.Fault{{Name: "create", New: func(testing.TB) runtimes.Runtime {
			return &runtimetest.Memory{OnCreate: func(context.Context, runtimes.Plan) error {
				return sandbox.Errorf(sandbox.Exhausted, "no room: %w", errors.New("x"))
			}}
		}, Want: sandbox.Exhausted}},
	})
}

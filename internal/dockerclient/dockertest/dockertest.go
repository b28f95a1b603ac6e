// Package dockertest is how a test asks for a Docker Engine.
package dockertest

import (
	"os"
	"testing"

	"github.com/caisson-dev/caisson/internal/dockerclient"
	"github.com/caisson-dev/caisson/sandbox"
)

// Require is the variable that turns a missing engine from a reason to skip
// into a failure. `make test` sets it to 1, so that a run in which no test met
// an engine cannot pass.
const Require = "CAISSON_REQUIRE_DOCKER"

// Engine returns a client of the engine that the environment names, closed at
// the test's end. Where none answers it skips the test, with the reason.
func Engine(t testing.TB) *dockerclient.Client {
	t.Helper()
	c, err := dockerclient.New(dockerclient.Config{})
	if err == nil {
		t.Cleanup(func() { _ = c.Close() })
		_, err = c.API(t.Context())
	}
	if err != nil {
		absent(t, err)
	}
	return c
}

func absent(t testing.TB, err error) {
	t.Helper()
	if os.Getenv(Require) == "1" {
		t.Fatalf("no engine, and %s=1 asks for one: %v (%s)", Require, err, sandbox.HintOf(err))
	}
	t.Skipf("needs a Docker Engine: %v (%s)", err, sandbox.HintOf(err))
}

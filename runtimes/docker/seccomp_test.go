package docker

import (
	"errors"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/sandbox"
)

// An engine without filters is told of, and nothing runs unfiltered.
func TestEngineWithoutSeccomp(t *testing.T) {
	t.Parallel()
	err := startError(errors.New("Error response from daemon: seccomp is not enabled in your kernel, cannot run a custom seccomp profile"))
	if !errors.Is(err, sandbox.Unsupported) || !strings.Contains(sandbox.HintOf(err), "caisson doctor") {
		t.Errorf("%v (%s)", err, sandbox.HintOf(err))
	}
	if err := startError(errors.New("no space left on device")); errors.Is(err, sandbox.Unsupported) {
		t.Errorf("another reason: %v", err)
	}
}

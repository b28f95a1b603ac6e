package manager_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// A sandbox is made by the OCI runtime that was named, and where the engine has
// none of that name, nothing is made.
func TestOCIRuntime(t *testing.T) {
	b := openBox(t, manager.OpenOptions{OCIRuntime: "runc"})
	got, err := b.kit.API.ContainerInspect(t.Context(), enginetest.ContainerName(b.ID()))
	if err != nil {
		t.Fatal(err)
	}
	if got.HostConfig.Runtime != "runc" {
		t.Errorf("the container's runtime is %q", got.HostConfig.Runtime)
	}
	if res := b.sh(t, "echo up", 0); string(res.Stdout) != "up\n" {
		t.Errorf("result %+v", res)
	}
	_, err = b.kit.Manager(t).Run(t.Context(), sandbox.Run{Command: []string{"true"}, OCIRuntime: "none-such"}, sandbox.Streams{})
	if !errors.Is(err, sandbox.Unsupported) || !strings.Contains(err.Error(), "runc") {
		t.Errorf("error %v, want unsupported with the names there are", err)
	}
}

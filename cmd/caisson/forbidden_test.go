package main

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/internal/enginetest"
)

// In a container whose engine lets nobody make namespaces nothing is run in less,
// as root and as an ordinary user, and the error and the doctor name the cause and the
// mend.
func TestForbiddenNamespaces(t *testing.T) {
	t.Parallel()
	enginetest.Bubblewrap(t)
	image := enginetest.New(t).Image(t, "shell").Ref
	inside := func(uid string, args ...string) (out, errs string, code int) {
		docker := []string{"run", "--rm", "--network", "none", "--user", uid, "-e", "HOME=/tmp", "-e", "CAISSON_RUNTIME=bubblewrap", "-e", "DOCKER_HOST=unix:///nonexistent", "-v", "/usr:/usr:ro"}
		for path, name := range map[string]string{enginetest.Command(t): "caisson", enginetest.Agent(t): "caisson-agent", enginetest.Scanner(t): "caisson-scan"} {
			docker = append(docker, "-v", path+":/caisson/"+name+":ro")
		}
		cmd := exec.Command("docker", append(append(docker, image, "/caisson/caisson"), args...)...)
		var said strings.Builder
		cmd.Stderr = &said
		b, _ := cmd.Output() // its code says it
		return string(b), said.String(), cmd.ProcessState.ExitCode()
	}
	for uid, mend := range map[string]string{"0": "--privileged", "1000": "--security-opt seccomp=unconfined"} {
		t.Run("user "+uid, func(t *testing.T) {
			t.Parallel()
			for _, runtime := range []string{"bubblewrap", "process"} {
				out, errs, code := inside(uid, "run", "--runtime", runtime, "-l", "shell", "-c", "echo ran")
				if code != 125 || out != "" || !strings.Contains(errs, "this is a container") || !strings.Contains(errs, mend) {
					t.Errorf("a run by %s: code %d, %q, %s", runtime, code, out, errs)
				}
			}
			out, errs, _ := inside(uid, "doctor", "--json")
			var found []api.Check
			if err := json.Unmarshal([]byte(out), &found); err != nil {
				t.Fatalf("%v: %s", err, errs)
			}
			for _, c := range found {
				if c.Name == "runtimes" && (c.Status != api.CheckError || !strings.Contains(c.Detail, "this is a container") || !strings.Contains(c.Mend, mend)) {
					t.Errorf("the doctor says %+v", c)
				}
			}
		})
	}
}

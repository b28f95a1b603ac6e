package main

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/internal/enginetest"
)

// askDoctor runs the real command and reads its answer by name.
func askDoctor(t *testing.T, env ...string) (found map[string]api.Check, code int) {
	t.Helper()
	cmd := exec.Command(enginetest.Command(t), "doctor", "--json")
	cmd.Env = append(cmd.Environ(), append([]string{
		"CAISSON_STATE_DIR=" + filepath.Join(t.TempDir(), "state"), "CAISSON_AGENT=" + enginetest.Agent(t),
	}, env...)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, _ := cmd.Output() // its code says it
	var list []api.Check
	if err := json.Unmarshal(out, &list); err != nil {
		t.Fatalf("%v: %q, %q", err, out, stderr.String())
	}
	found = map[string]api.Check{}
	for _, c := range list {
		found[c.Name] = c
	}
	return found, cmd.ProcessState.ExitCode()
}

// Whatever is unusable is a line of the answer, not the end of the command.
func TestDoctorWithoutParts(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, env, check string }{
		{"no engine", "DOCKER_HOST=unix:///nonexistent/e.sock", "engine"},
		{"no address", "DOCKER_HOST=banana://x", "engine"},
		{"no state", "CAISSON_STATE_DIR=/dev/null/x", "state_dir"},
		{"relative state", "CAISSON_STATE_DIR=x", "state_dir"},
		{"no agent", "CAISSON_AGENT=/nonexistent", "agent"},
		{"long path", "CAISSON_RUNTIME_DIR=/" + strings.Repeat("x", 80), "runtime_dir"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			found, code := askDoctor(t, tc.env)
			if c := found[tc.check]; code != 1 || len(found) < 15 || c.Status != api.CheckError || c.Mend == "" {
				t.Errorf("code %d, %d checks, %+v", code, len(found), c)
			}
		})
	}
}

func TestDoctorOfARealEngine(t *testing.T) {
	t.Parallel()
	enginetest.New(t)
	found, code := askDoctor(t)
	errs := 0
	for _, c := range found {
		if c.Status == api.CheckError {
			errs++
		}
	}
	if (errs > 0) != (code == 1) || code > 1 {
		t.Errorf("code %d with %d errors", code, errs)
	}
	for _, name := range []string{"runtimes", "engine", "agent", "service", "clock", "oci_runtimes"} {
		if c := found[name]; c.Status != api.CheckOK {
			t.Errorf("%+v", c)
		}
	}
}

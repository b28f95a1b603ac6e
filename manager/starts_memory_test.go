package manager_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/runtimes/docker"
	"github.com/caisson-dev/caisson/sandbox"
)

// The agent stays small, however many starts it was asked about that differ.
func TestAgentStaysSmall(t *testing.T) {
	t.Parallel()
	starts := 2000
	if enginetest.Soaking() {
		starts = 20000
	}
	p := startsPlace(t, docker.Name)
	m := p.judging(t, (&judge{same: true}).Judge)
	run := shell(fmt.Sprintf("w=$(printf %%0500d 0); i=0; while [ $i -lt %d ]; do /usr/bin/env -u A$i-$w >/dev/null || exit; i=$((i+1)); done; echo $i", starts))
	run.Timeout = sandbox.Duration(time.Hour)
	res, err := m.ExecIn(t.Context(), "work", run, sandbox.Streams{})
	if err != nil || string(res.Stdout) != fmt.Sprintln(starts) || len(res.Starts)+res.StartsLeftOut != starts {
		t.Fatalf("%v %+v %q %q, told %d and %d", err, res.Exit, res.Stdout, res.Stderr, len(res.Starts), res.StartsLeftOut)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.kit.AgentPID(t, res.Sandbox)))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(status), "VmRSS:")
	kib := 0
	if _, err := fmt.Sscan(text, &kib); err != nil {
		t.Fatal(err)
	}
	t.Logf("after %d starts the agent has %d KiB", starts, kib)
	if kib > 12<<10 {
		t.Errorf("the agent has grown to %d KiB", kib)
	}
}

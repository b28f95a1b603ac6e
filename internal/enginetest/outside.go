package enginetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/internal/dockerclient"
	"github.com/caisson-dev/caisson/sandbox"
)

// ContainerName is the engine's name of a sandbox.
func ContainerName(id sandbox.ID) string { return "caisson-" + string(id) }

// AgentPID is the host's pid of a sandbox's agent, which must be there.
func (k *Kit) AgentPID(t testing.TB, id sandbox.ID) int {
	t.Helper()
	pid := k.agentPID(t, id)
	if pid == 0 {
		t.Fatalf("sandbox %s does not run", id.Short())
	}
	return pid
}

// agentPID is 0 where the sandbox has gone: a container without its first
// process has no process.
func (k *Kit) agentPID(t testing.TB, id sandbox.ID) int {
	t.Helper()
	got, err := k.API.ContainerInspect(context.WithoutCancel(t.Context()), ContainerName(id))
	switch {
	case errors.Is(dockerclient.Wrap(err, "inspect"), sandbox.NotFound):
		return 0
	case err != nil:
		t.Fatal(err)
	}
	return got.State.Pid
}

// Processes lists what runs in a sandbox, as seen from outside of it: the
// members of its cgroup by the kernel's own account, each as "pid name state".
// The agent is left out. Of a sandbox that has gone there are none.
func (k *Kit) Processes(t testing.TB, id sandbox.ID) []string {
	t.Helper()
	agent := k.agentPID(t, id)
	if agent == 0 {
		return nil
	}
	pids, err := cgroupMembers(agent)
	if err != nil {
		// Its container has ended just now, or the cgroup file systems are not to
		// be seen from here: ask the engine.
		return k.top(t, id, agent)
	}
	var found []string
	for _, pid := range pids {
		if pid == agent {
			continue
		}
		if what := describe(pid); what != "" {
			found = append(found, what)
		}
	}
	return found
}

// cgroupMembers lists the processes of the cgroup that pid is in.
func cgroupMembers(pid int) ([]int, error) {
	own, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(own)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) != 3 || part[1] != "pids" && part[1] != "" || part[2] == "/" {
			continue
		}
		dir := "/sys/fs/cgroup"
		if part[1] != "" {
			dir += "/" + part[1]
		}
		b, err := os.ReadFile(dir + part[2] + "/cgroup.procs")
		if err != nil {
			continue
		}
		var pids []int
		for field := range strings.FieldsSeq(string(b)) {
			n, err := strconv.Atoi(field)
			if err != nil {
				return nil, err
			}
			pids = append(pids, n)
		}
		return pids, nil
	}
	return nil, fmt.Errorf("the cgroup of process %d is not to be found", pid)
}

// describe is "pid name state", or "" where the process has gone.
func describe(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return ""
	}
	name, state := "", ""
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "Name:"); ok {
			name = strings.TrimSpace(v)
		}
		if v, ok := strings.CutPrefix(line, "State:"); ok {
			state = strings.TrimSpace(v)
			break
		}
	}
	return fmt.Sprintf("%d %s %s", pid, name, state)
}

func (k *Kit) top(t testing.TB, id sandbox.ID, agent int) []string {
	t.Helper()
	top, err := k.API.ContainerTop(context.WithoutCancel(t.Context()), ContainerName(id), []string{"-eo", "pid,stat,comm"})
	if err != nil {
		if k.agentPID(t, id) == 0 {
			return nil
		}
		t.Fatal(err)
	}
	var found []string
	for _, p := range top.Processes {
		if len(p) > 0 && p[0] != strconv.Itoa(agent) {
			found = append(found, strings.Join(p, " "))
		}
	}
	return found
}

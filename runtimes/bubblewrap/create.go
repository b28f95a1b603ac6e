//go:build linux

package bubblewrap

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/local"
	"github.com/caisson-dev/caisson/sandbox"
)

// Create makes a sandbox, and returns once its agent listens. Errors: Conflict
// where the agent is not as planned, Unavailable where bwrap fails, TimedOut, and
// the context's.
func (r *Runtime) Create(ctx context.Context, id sandbox.ID, plan runtimes.Plan) (runtimes.Instance, error) {
	if !id.Valid() || plan.Runtime != Name {
		return nil, sandbox.Errorf(sandbox.Invalid, "create %q by a plan of runtime %q", id, plan.Runtime)
	}
	var req request
	if err := json.Unmarshal(plan.Request, &req); err != nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "read the plan: %w", err)
	}
	bwrap, err := r.program()
	if err != nil {
		return nil, err
	}
	m := &making{Making: local.Making{Place: r.Place, Spec: plan.Spec, Limits: req.Limits, Request: plan.Request}, agent: r.cfg.Agent, bwrap: bwrap, req: req}
	m.binds, m.copies = split(req.ReadOnly)
	defer func() {
		for _, c := range m.copies {
			_ = c.file.Close() // nothing was written
		}
	}()
	return m.Make(ctx, id, func() (*local.Process, error) { return m.start(ctx) }, m.asPlanned)
}

// making is a sandbox that is being made.
type making struct {
	local.Making
	agent string
	bwrap string
	req   request

	binds  []local.Bind // read-only, besides the sandbox's own
	copies []setting
}

// firstCopy is bwrap's descriptor of the first of the copies.
const firstCopy = 6

// readOnly are the folders and files of the host's that a sandbox sees, but the agent.
func (m *making) readOnly() []local.Bind {
	binds := slices.Clone(m.binds)
	for _, name := range slices.Sorted(maps.Keys(local.Names(m.Spec.Identity))) {
		binds = append(binds, local.Bind{Source: filepath.Join(m.Dir, name), Target: "/etc/" + name})
	}
	if m.Place.Groups.Work() {
		binds = append(binds, m.Group().Seen()...)
	}
	return binds
}

// args are bwrap's, which mounts what is not staged.
func (m *making) args(s staged) []string {
	args := append([]string{}, m.req.Namespaces...)
	args = append(args, "--hostname", "sandbox", "--new-session", "--as-pid-1", "--clearenv", "--cap-drop", "ALL")
	for _, c := range m.req.Capabilities {
		args = append(args, "--cap-add", c)
	}
	if s.root != "" {
		args = append(args, "--bind", s.root, "/")
	} else {
		binds := m.readOnly()
		for _, dir := range m.parents(binds) {
			args = append(args, "--perms", "0755", "--dir", dir)
		}
		for _, b := range binds {
			args = append(args, "--ro-bind", b.Source, b.Target)
		}
	}
	args = append(args, copyArgs(m.copies, firstCopy)...)
	args = append(args, linkArgs(m.req.Links)...)
	args = append(args, "--proc", "/proc", "--dev", "/dev", "--mqueue", "/dev/mqueue")
	if !m.req.Nested { // else nobody there is root, and a second /proc can be mounted where this one is whole
		args = append(args, closedProc()...)
	}
	for i, t := range m.req.Tmpfs {
		switch {
		case m.req.Nested:
			args = append(args, "--perms", t.Mode, "--size", strconv.FormatInt(int64(t.Size), 10), "--tmpfs", t.Target)
		case s.tmpfs[i] != "":
			args = append(args, "--bind", s.tmpfs[i], t.Target)
		}
	}
	if s.root != "" {
		return args
	}
	if m.Volume != "" {
		args = append(args, "--bind", m.Volume, sandbox.WorkspaceDir)
	}
	return append(args, "--bind", m.IO(), local.IODir, "--ro-bind", m.agent, local.AgentPath)
}

// parents are the folders that something is mounted below, the outer ones first:
// bwrap would make them for root alone.
func (m *making) parents(binds []local.Bind) (dirs []string) {
	targets := []string{sandbox.WorkspaceDir}
	for _, b := range binds {
		targets = append(targets, b.Target)
	}
	for _, c := range m.copies {
		targets = append(targets, c.target)
	}
	for _, t := range m.req.Tmpfs {
		targets = append(targets, t.Target)
	}
	for _, t := range targets {
		for dir := filepath.Dir(t); dir != "/" && dir != "/dev" && !slices.Contains(targets, dir); dir = filepath.Dir(dir) {
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// closedProc closes what below /proc is the host's: the agent is root, and root
// may write there without any capability.
func closedProc() (args []string) {
	for _, dir := range []string{"bus", "fs", "irq", "sys"} {
		if st, err := os.Stat("/proc/" + dir); err == nil && st.IsDir() {
			args = append(args, "--ro-bind", "/proc/"+dir, "/proc/"+dir)
		}
	}
	for _, name := range []string{"kcore", "keys", "latency_stats", "sched_debug", "sysrq-trigger", "timer_list", "timer_stats"} {
		if _, err := os.Stat("/proc/" + name); err == nil {
			args = append(args, "--ro-bind", "/dev/null", "/proc/"+name)
		}
	}
	return args
}

// asPlanned compares what the kernel says of the agent with the plan.
func (m *making) asPlanned() error {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.PID()))
	if err != nil {
		return sandbox.Errorf(sandbox.Unavailable, "look at the agent: %w", err)
	}
	has := map[string]string{}
	for line := range strings.Lines(string(b)) {
		k, v, _ := strings.Cut(line, ":")
		has[k] = strings.TrimSpace(v)
	}
	want := map[string]string{"NoNewPrivs": "1", "Seccomp": "2", "CapEff": "00000000000800e0"} // SETUID, SETGID, KILL and SYS_PTRACE
	if m.req.Nested {
		// The agent has to make namespaces; what it starts in them is filtered by itself.
		want = map[string]string{"NoNewPrivs": "1", "CapEff": "0000000000280000"} // SYS_ADMIN and SYS_PTRACE, of a namespace without rights
	}
	want["CapPrm"] = want["CapEff"]
	for name, value := range want {
		if has[name] != value {
			return sandbox.Errorf(sandbox.Conflict, "bwrap made another sandbox than was planned: %s is %q", name, has[name]).
				WithHint("is %s the bwrap of your distribution?", m.bwrap)
		}
	}
	if m.req.Nested {
		return nil // whose namespaces the agent has is looked at before it starts: then it hides them
	}
	return m.ownNamespaces(m.PID(), "pid", "net", "ipc", "uts", "mnt")
}

// ownNamespaces refuses a process that has one of the host's namespaces.
func (m *making) ownNamespaces(pid int, kinds ...string) error {
	for _, ns := range kinds {
		ours, err := os.Readlink("/proc/self/ns/" + ns)
		if err != nil {
			return sandbox.Errorf(sandbox.Unavailable, "look at this process: %w", err)
		}
		theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, ns))
		if err != nil {
			return sandbox.Errorf(sandbox.Unavailable, "look at the agent: %w", err)
		}
		if ours == theirs {
			return sandbox.Errorf(sandbox.Conflict, "bwrap made another sandbox than was planned: its %s namespace is the host's", ns)
		}
	}
	return nil
}

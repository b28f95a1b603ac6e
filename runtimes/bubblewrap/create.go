//go:build linux

package bubblewrap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// readyPatience bounds how long a started agent may take to listen, cleanPatience
// the removal of what a failed step left.
const (
	readyPatience = 30 * time.Second
	cleanPatience = 30 * time.Second
)

// Create makes a sandbox, and returns once its agent listens. Errors: Conflict
// where the agent is not as planned, Unavailable where bwrap fails, Unsupported
// for who is not root, TimedOut, and the context's.
func (r *Runtime) Create(ctx context.Context, id sandbox.ID, plan runtimes.Plan) (_ runtimes.Instance, err error) {
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
	if os.Geteuid() != 0 {
		_, err := r.try()
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m := &making{r: r, bwrap: bwrap, req: req, spec: plan.Spec, dir: r.folder(id), record: record{Handle: runtimes.Handle{
		Version: runtimes.HandleVersion, Runtime: Name, Kind: runtimes.KindSandbox, ID: id, Name: ownVolume(id), Session: plan.Spec.Session, Holder: plan.Spec.Holder,
		Language: plan.Spec.Language, Kept: plan.Spec.Keep, Created: time.Now().UTC().Truncate(time.Second), Running: true,
	}}}
	inst := r.instance(m.record.Handle)
	defer func() {
		if err != nil {
			clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanPatience)
			defer cancel()
			err = errors.Join(err, inst.Destroy(clean))
		}
	}()
	ready, err := m.prepare()
	if err != nil {
		return nil, err
	}
	defer ready.Close()
	p, err := m.start()
	if err != nil {
		return nil, err
	}
	if err := m.release(ctx, p); err != nil {
		return nil, errors.Join(err, p.kill())
	}
	return inst, m.awaitReady(ctx, p, ready)
}

// making is a sandbox that is being made.
type making struct {
	r      *Runtime
	bwrap  string
	req    request
	spec   sandbox.Spec
	dir    string
	volume string // the workspace's folder of the host, "" for one in memory
	record record
}

// group is the sandbox's control group.
func (m *making) group() group { return group{m.r.groups, m.record.Handle.ID} }

// prepare makes what lies on the host: the folder with its record, the volume, the
// lists of names, the control group, and the socket that the agent rings.
func (m *making) prepare() (*net.UnixListener, error) {
	if err := os.MkdirAll(m.r.cfg.Base, 0o700); err != nil {
		return nil, sandbox.Errorf(sandbox.Denied, "make the folder for sockets: %w", err).WithHint("set CAISSON_RUNTIME_DIR to a short path of your own")
	}
	if err := os.Chmod(m.r.cfg.Base, 0o700); err != nil {
		return nil, fmt.Errorf("close the folder for sockets: %w", err)
	}
	if err := os.Mkdir(m.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a sandbox's folder: %w", err)
	}
	if err := writeRecord(m.dir, m.record); err != nil {
		return nil, err
	}
	for name, text := range lists(m.spec.Identity) {
		if err := os.WriteFile(filepath.Join(m.dir, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
		if err := os.Chmod(filepath.Join(m.dir, name), 0o644); err != nil { // whatever the umask is
			return nil, err
		}
	}
	switch w := m.req.Workspace; w.Kind {
	case sandbox.WorkspaceHost:
		m.volume = w.Source
	case sandbox.WorkspaceVolume:
		name := w.Source
		if name == "" {
			name = ownVolume(m.record.Handle.ID)
		}
		var err error
		if m.volume, err = m.r.makeVolume(name, m.record.Handle, m.spec.Identity); err != nil {
			return nil, err
		}
	default: // its place is made as the sandbox is
	}
	if m.r.groups.work() {
		if err := m.group().make(m.req.Limits); err != nil {
			return nil, err
		}
	}
	return m.listen()
}

func (m *making) listen() (*net.UnixListener, error) {
	io := filepath.Join(m.dir, "io")
	if err := os.Mkdir(io, 0o700); err != nil {
		return nil, err
	}
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(io, readyName), Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen for the agent: %w", err)
	}
	return ln, nil
}

// args are bwrap's. mounted has the file systems in memory, in their order.
func (m *making) args(mounted []string) []string {
	args := append([]string{}, m.req.Namespaces...)
	args = append(args, "--hostname", "sandbox", "--new-session", "--as-pid-1", "--clearenv", "--cap-drop", "ALL")
	for _, c := range m.req.Capabilities {
		args = append(args, "--cap-add", c)
	}
	binds := slices.Clone(m.req.ReadOnly)
	for _, name := range slices.Sorted(maps.Keys(lists(m.spec.Identity))) {
		binds = append(binds, bind{filepath.Join(m.dir, name), "/etc/" + name})
	}
	if m.r.groups.work() {
		binds = append(binds, m.group().seen()...)
	}
	for _, dir := range m.parents(binds) {
		args = append(args, "--perms", "0755", "--dir", dir)
	}
	for _, b := range binds {
		args = append(args, "--ro-bind", b.Source, b.Target)
	}
	args = append(args, linkArgs(m.req.Links)...)
	args = append(args, "--proc", "/proc", "--dev", "/dev")
	args = append(args, closedProc()...)
	for i, t := range m.req.Tmpfs {
		args = append(args, "--bind", mounted[i], t.Target)
	}
	if m.volume != "" {
		args = append(args, "--bind", m.volume, sandbox.WorkspaceDir)
	}
	return append(args, "--bind", filepath.Join(m.dir, "io"), ioDir, "--ro-bind", m.r.cfg.Agent, agentPath, "--remount-ro", "/", "--chdir", "/")
}

// parents are the folders that something is mounted below, the outer ones first:
// bwrap would make them for root alone.
func (m *making) parents(binds []bind) (dirs []string) {
	targets := []string{sandbox.WorkspaceDir}
	for _, b := range binds {
		targets = append(targets, b.Target)
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

// release limits the process that is to become the agent, writes down who that
// is, and lets it go on.
func (m *making) release(ctx context.Context, p *process) error {
	pid, err := p.agent(ctx)
	if err != nil {
		return err
	}
	l := m.req.Limits
	for which, most := range map[int]unix.Rlimit{
		unix.RLIMIT_NOFILE: {Cur: uint64(l.OpenFiles), Max: uint64(max(l.OpenFiles, agentFiles))},
		unix.RLIMIT_CORE:   {},
		unix.RLIMIT_FSIZE:  {Cur: uint64(l.FileSize), Max: uint64(l.FileSize)},
	} {
		if err := unix.Prlimit(pid, which, &most, nil); err != nil {
			return fmt.Errorf("limit the sandbox: %w", err)
		}
	}
	start, err := startTime(pid)
	if err != nil {
		return fmt.Errorf("find the sandbox: %w", err)
	}
	m.record.PID, m.record.Start = pid, start
	if err := writeRecord(m.dir, m.record); err != nil {
		return err
	}
	return p.goOn()
}

// awaitReady waits for the agent's ring, or for bwrap's end.
func (m *making) awaitReady(ctx context.Context, p *process, ready *net.UnixListener) error {
	ctx, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	rang := make(chan error, 1)
	go func() {
		c, err := ready.Accept()
		if err == nil {
			err = c.Close()
		}
		rang <- err
	}()
	select {
	case err := <-rang:
		if err != nil {
			return fmt.Errorf("wait for the agent: %w", err)
		}
		return m.asPlanned()
	case <-p.ended:
		return sandbox.Errorf(sandbox.Unavailable, "the agent did not start: %s", p.said()).
			WithHint("is %s a static caisson-agent for this machine? see: caisson doctor", m.r.cfg.Agent)
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.Canceled) {
			return ctx.Err()
		}
		return sandbox.Errorf(sandbox.TimedOut, "the agent did not answer within %s", readyPatience).WithHint("is this host overloaded?")
	}
}

// asPlanned compares what the kernel says of the agent with the plan.
func (m *making) asPlanned() error {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.record.PID))
	if err != nil {
		return sandbox.Errorf(sandbox.Unavailable, "look at the agent: %w", err)
	}
	has := map[string]string{}
	for line := range strings.Lines(string(b)) {
		k, v, _ := strings.Cut(line, ":")
		has[k] = strings.TrimSpace(v)
	}
	const three = "00000000000000e0" // SETUID, SETGID and KILL
	for name, want := range map[string]string{"NoNewPrivs": "1", "Seccomp": "2", "CapPrm": three, "CapEff": three} {
		if has[name] != want {
			return sandbox.Errorf(sandbox.Conflict, "bwrap made another sandbox than was planned: %s is %q", name, has[name]).
				WithHint("is %s the bwrap of your distribution?", m.bwrap)
		}
	}
	for _, ns := range []string{"pid", "net", "ipc", "uts", "mnt"} {
		ours, err := os.Readlink("/proc/self/ns/" + ns)
		theirs, err2 := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", m.record.PID, ns))
		if err = errors.Join(err, err2); err != nil {
			return sandbox.Errorf(sandbox.Unavailable, "look at the agent: %w", err)
		}
		if ours == theirs {
			return sandbox.Errorf(sandbox.Conflict, "bwrap made another sandbox than was planned: its %s namespace is the host's", ns)
		}
	}
	return nil
}

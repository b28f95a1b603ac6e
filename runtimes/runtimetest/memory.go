package runtimetest

import (
	"context"
	"encoding/json"
	"net"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// MemoryName is the runtime's.
const MemoryName = "memory"

// Memory is a runtime without isolation and without processes. Its zero value
// is ready. The funcs are set before first use and may be nil.
type Memory struct {
	// OnCreate runs before a sandbox is made; its error is Create's.
	OnCreate func(ctx context.Context, plan runtimes.Plan) error
	// OnDestroy runs before one is removed; its error is Destroy's.
	OnDestroy func(h runtimes.Handle) error
	// OnSample is what a sandbox is said to use.
	OnSample func() sandbox.Sample
	// Survivors counts the processes of a command that cannot be ended.
	Survivors func(argv []string) int

	mu        sync.Mutex
	instances map[sandbox.ID]*memoryInstance
	commands  [][]string
}

var _ runtimes.Runtime = (*Memory)(nil)

// Commands are the argvs that were started, in order, in whatever sandbox.
func (m *Memory) Commands() [][]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([][]string(nil), m.commands...)
}

// Break ends a sandbox's agent as if it had been killed. The sandbox is still
// listed, as a container that has stopped is.
func (m *Memory) Break(id sandbox.ID) {
	m.mu.Lock()
	i := m.instances[id]
	m.mu.Unlock()
	if i != nil {
		i.stop("the agent was killed")
	}
}

// Cut breaks the connections to a sandbox's agent, which goes on.
func (m *Memory) Cut(id sandbox.ID) {
	m.mu.Lock()
	i := m.instances[id]
	m.mu.Unlock()
	if i == nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, c := range i.conns {
		_ = c.Close()
	}
	i.conns = nil
}

// Capabilities enforces nothing and says so.
func (m *Memory) Capabilities(context.Context) (runtimes.Capabilities, error) {
	return runtimes.Capabilities{
		Runtime: MemoryName, Engine: "none", Isolation: "none", LocalStreams: true, Sample: true, Claim: true, Workspaces: []string{string(sandbox.WorkspaceTmpfs)},
	}, nil
}

// Plan fills in the defaults. Errors: Invalid, Unsupported.
func (m *Memory) Plan(_ context.Context, spec sandbox.Spec) (runtimes.Plan, error) {
	spec.Limits = spec.Limits.WithDefaults()
	spec.Network = spec.Network.WithDefaults()
	if spec.Workspace.Kind == "" {
		spec.Workspace.Kind = sandbox.WorkspaceTmpfs
	}
	id := spec.Identity
	switch {
	case spec.Workspace.Kind != sandbox.WorkspaceTmpfs:
		return runtimes.Plan{}, sandbox.Errorf(sandbox.Unsupported, "no workspace of kind %q", spec.Workspace.Kind)
	case id.UID <= 0 || id.RunnerUID <= 0 || id.UID == id.RunnerUID:
		return runtimes.Plan{}, sandbox.Errorf(sandbox.Invalid, "identity %+v", id)
	case spec.Image.Ref == "" && spec.Image.ID == "":
		return runtimes.Plan{}, sandbox.Errorf(sandbox.Invalid, "no image")
	}
	if err := spec.Limits.Check(); err != nil {
		return runtimes.Plan{}, err
	}
	if err := (runtimes.Capabilities{Runtime: MemoryName}).CheckNetwork(spec.Network); err != nil {
		return runtimes.Plan{}, err
	}
	raw, err := json.Marshal(spec)
	return runtimes.Plan{Runtime: MemoryName, Spec: spec, Request: raw}, err
}

// Create makes a sandbox whose agent nobody has claimed.
func (m *Memory) Create(ctx context.Context, id sandbox.ID, plan runtimes.Plan) (runtimes.Instance, error) {
	if !id.Valid() || plan.Runtime != MemoryName || len(plan.Request) == 0 {
		return nil, sandbox.Errorf(sandbox.Invalid, "create %q by a plan of runtime %q", id, plan.Runtime)
	}
	if m.OnCreate != nil {
		if err := m.OnCreate(ctx, plan); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	i := &memoryInstance{m: m, ended: make(chan struct{}), agent: &memoryAgent{record: m.record, survivors: m.Survivors}, spec: plan.Spec, handle: runtimes.Handle{
		Version: runtimes.HandleVersion, Runtime: MemoryName, Kind: runtimes.KindSandbox, ID: id, Name: "memory-" + string(id),
		Session: plan.Spec.Session, Holder: plan.Spec.Holder, Language: plan.Spec.Language, Kept: plan.Spec.Keep, Running: true,
		Created: time.Now().UTC().Truncate(time.Second),
	}}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.instances == nil {
		m.instances = map[sandbox.ID]*memoryInstance{}
	}
	if m.instances[id] != nil {
		return nil, sandbox.Errorf(sandbox.Conflict, "sandbox %s exists", id)
	}
	m.instances[id] = i
	return i, nil
}

func (m *Memory) record(argv []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.commands = append(m.commands, argv)
}

// Attach finds a sandbox by its handle.
func (m *Memory) Attach(_ context.Context, h runtimes.Handle) (runtimes.Instance, error) {
	if h.Runtime != MemoryName || !h.ID.Valid() {
		return nil, sandbox.Errorf(sandbox.Invalid, "handle %q of runtime %q", h.ID, h.Runtime)
	}
	if h.Version != runtimes.HandleVersion {
		return nil, sandbox.Errorf(sandbox.Unsupported, "handle of version %d", h.Version)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := m.instances[h.ID]; i != nil {
		return i, nil
	}
	return nil, sandbox.Errorf(sandbox.NotFound, "no sandbox %s", h.ID)
}

// List returns every sandbox that was not destroyed.
func (m *Memory) List(context.Context) ([]runtimes.Handle, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var handles []runtimes.Handle
	for _, i := range m.instances {
		h := i.Handle()
		select {
		case <-i.ended:
			h.Running = false
		default:
		}
		handles = append(handles, h)
	}
	return handles, nil
}

// memoryInstance is one sandbox of a [Memory].
type memoryInstance struct {
	m     *Memory
	agent *memoryAgent
	ended chan struct{}

	mu     sync.Mutex
	handle runtimes.Handle
	spec   sandbox.Spec
	conns  []net.Conn
	cause  string // set before ended is closed
	over   bool
}

func (i *memoryInstance) Handle() runtimes.Handle {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.handle
}

// Claim settles all but the image. Errors: Unsupported.
func (i *memoryInstance) Claim(_ context.Context, plan runtimes.Plan) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if plan.Spec.Image.ID != i.spec.Image.ID || plan.Spec.Image.Ref != i.spec.Image.Ref {
		return sandbox.Errorf(sandbox.Unsupported, "sandbox %s has another image", i.handle.ID.Short())
	}
	i.spec = plan.Spec
	i.handle.Session, i.handle.Holder, i.handle.Language, i.handle.Kept = plan.Spec.Session, plan.Spec.Holder, plan.Spec.Language, plan.Spec.Keep
	return nil
}

// Dial opens a pipe to the agent.
func (i *memoryInstance) Dial(ctx context.Context) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.over {
		return nil, sandbox.Errorf(sandbox.Unavailable, "sandbox %s has ended: %s", i.handle.ID.Short(), i.cause)
	}
	host, inside := net.Pipe()
	i.conns = append(i.conns, inside)
	go i.agent.serve(inside)
	return host, nil
}

// Wait returns once the sandbox has ended.
func (i *memoryInstance) Wait(ctx context.Context) (sandbox.Exit, error) {
	exit := sandbox.Exit{Code: 137, Reason: sandbox.ReasonInfra}
	select {
	case <-i.ended:
		exit.Cause = i.cause
		return exit, nil
	case <-ctx.Done():
		return exit, ctx.Err()
	}
}

// Destroy ends the sandbox and forgets it.
func (i *memoryInstance) Destroy(context.Context) error {
	if i.m.OnDestroy != nil {
		if err := i.m.OnDestroy(i.Handle()); err != nil {
			return err
		}
	}
	i.stop("the sandbox was destroyed")
	i.m.mu.Lock()
	defer i.m.mu.Unlock()
	delete(i.m.instances, i.Handle().ID)
	return nil
}

// Sample returns what OnSample says.
func (i *memoryInstance) Sample(ctx context.Context) (sandbox.Sample, error) {
	if i.m.OnSample == nil {
		return sandbox.Sample{}, ctx.Err()
	}
	return i.m.OnSample(), ctx.Err()
}

func (i *memoryInstance) stop(cause string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.over {
		return
	}
	i.over, i.cause = true, cause
	close(i.ended)
	for _, c := range i.conns {
		_ = c.Close()
	}
}

package runtimetest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// Subject is a runtime under test.
type Subject struct {
	// New returns the runtime, with an empty place of its own to work in.
	New func(t testing.TB) runtimes.Runtime
	// Spec returns a spec that the runtime can create, with a holder that is
	// the test's own.
	Spec func(t testing.TB) sandbox.Spec
	// Faults are the runtime's own ways to fail half-way through Create.
	Faults []Fault
	// Leftovers names what is left in the place of a runtime that New returned,
	// in whatever form; [runtimes.Runtime].List may not be all of it. Optional.
	Leftovers func(t testing.TB) []string
}

// Fault makes one step of Create fail.
type Fault struct {
	Name string
	// New returns a runtime with that fault, in the same place as Subject.New's.
	New func(t testing.TB) runtimes.Runtime
	// Want is the kind of error that Create must then have; 0 is any.
	Want sandbox.Kind
}

// patience bounds each single step of the suite.
const patience = time.Minute

// Run runs the suite.
func Run(t *testing.T, s Subject) {
	for name, test := range map[string]func(*testing.T, Subject){
		"capabilities": testCapabilities, "plan": testPlan, "refused plans": testRefusedPlans, "life": testLife,
		"claim": testClaim, "hand over": testHandOver, "attach": testAttach, "wait": testWait, "pause": testPause, "canceled create": testCanceledCreate,
		"corpus": testCorpus, "faults": testFaults,
	} {
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
}

// create makes a sandbox, destroyed at the test's end.
func (s Subject) create(t *testing.T, rt runtimes.Runtime) (runtimes.Instance, runtimes.Plan) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	plan, err := rt.Plan(ctx, s.Spec(t))
	if err != nil {
		t.Fatalf("plan: %v", err)
	}
	inst, err := rt.Create(ctx, sandbox.NewID(), plan)
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	t.Cleanup(func() {
		if err := inst.Destroy(context.Background()); err != nil {
			t.Errorf("destroy: %v", err)
		}
	})
	return inst, plan
}

// connect claims a sandbox with a given secret.
func connect(t *testing.T, inst runtimes.Instance, plan runtimes.Plan) *client.Client {
	t.Helper()
	c, err := dial(t, inst, client.Config{Secret: secret, Claim: &client.Claim{Identity: plan.Spec.Identity, OneShot: false, Env: baseEnv}, Lease: client.Lease{ID: sandbox.NewID()}})
	if err != nil {
		t.Fatalf("claim: %v", err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

var (
	secret  = []byte("0123456789abcdef0123456789abcdef")
	baseEnv = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "HOME=" + client.HomeDir}
)

func dial(t *testing.T, inst runtimes.Instance, cfg client.Config) (*client.Client, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, err := inst.Dial(ctx)
	if err != nil {
		return nil, err
	}
	cfg.Patience = patience // what is shown here is not how soon
	return client.New(ctx, conn, cfg)
}

func testCapabilities(t *testing.T, s Subject) {
	rt := s.New(t)
	caps, err := rt.Capabilities(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	plan, err := rt.Plan(t.Context(), s.Spec(t))
	if err != nil {
		t.Fatal(err)
	}
	if caps.Runtime == "" || caps.Runtime != plan.Runtime || caps.Isolation == "" || caps.Engine == "" {
		t.Errorf("capabilities %+v of a runtime that plans as %q", caps, plan.Runtime)
	}
	if !slices.Contains(caps.Workspaces, string(sandbox.WorkspaceTmpfs)) {
		t.Errorf("workspaces %q lack the default", caps.Workspaces)
	}
	inst, _ := s.create(t, rt)
	_, pauses := inst.(runtimes.Pauser)
	_, claims := inst.(runtimes.Claimer)
	_, samples := inst.(runtimes.Sampler)
	if pauses != caps.Pause || claims != caps.Claim || samples != caps.Sample {
		t.Errorf("the instance pauses: %v, claims: %v, is sampled: %v; the capabilities say %v, %v and %v", pauses, claims, samples, caps.Pause, caps.Claim, caps.Sample)
	}
	if _, branches := rt.(runtimes.Brancher); branches != caps.Branch {
		t.Errorf("the runtime branches: %v; the capabilities say %v", branches, caps.Branch)
	}
	if s, knows := rt.(runtimes.StartsSeer); knows && s.SeesStarts() != (caps.Starts == runtimes.Enforced) {
		t.Errorf("the runtime sees starts: %v; the capabilities say %q", s.SeesStarts(), caps.Starts)
	}
}

func testPlan(t *testing.T, s Subject) {
	rt, spec := s.New(t), s.Spec(t)
	before, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	first, err := rt.Plan(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	second, err := rt.Plan(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("one spec, two plans:\n%s", diff)
	}
	if after, _ := json.Marshal(spec); string(after) != string(before) {
		t.Errorf("planning changed the spec from\n%s to\n%s", before, after)
	}
	if got := first.Spec; got.Limits != got.Limits.WithDefaults() || got.Network.Mode == "" || got.Workspace.Kind == "" {
		t.Errorf("a plan with holes: %+v", got)
	}
	if !json.Valid(first.Request) || len(first.Request) < 3 {
		t.Errorf("nothing to judge: %q", first.Request)
	}
}

func testRefusedPlans(t *testing.T, s Subject) {
	rt := s.New(t)
	for name, spoil := range map[string]func(*sandbox.Spec){
		"memory":      func(p *sandbox.Spec) { p.Limits.Memory = 1 },
		"cpus":        func(p *sandbox.Spec) { p.Limits.CPUs = -1 },
		"pids":        func(p *sandbox.Spec) { p.Limits.PIDs = -5 },
		"no user":     func(p *sandbox.Spec) { p.Identity = sandbox.Identity{} },
		"root":        func(p *sandbox.Spec) { p.Identity.UID = 0 },
		"one user":    func(p *sandbox.Spec) { p.Identity.RunnerUID = p.Identity.UID },
		"no image":    func(p *sandbox.Spec) { p.Image = sandbox.Image{} },
		"a workspace": func(p *sandbox.Spec) { p.Workspace.Kind = "no such kind" },
		"a namespace": func(p *sandbox.Spec) { p.Network.Mode = "host" },
	} {
		spec := s.Spec(t)
		spoil(&spec)
		if _, err := rt.Plan(t.Context(), spec); !errors.Is(err, sandbox.Invalid) && !errors.Is(err, sandbox.Unsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
	caps, err := rt.Capabilities(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	domains := s.Spec(t)
	domains.Network = sandbox.Network{Mode: sandbox.NetworkAllow, Allow: []string{"pypi.org"}}
	if _, err := rt.Plan(t.Context(), domains); caps.Egress != (err == nil) || err != nil && !errors.Is(err, sandbox.Unsupported) {
		t.Errorf("held to domains: %v; the capability says %v", err, caps.Egress)
	}
	plan, err := rt.Plan(t.Context(), s.Spec(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, try := range map[string]func() error{
		"a bad id": func() error { _, err := rt.Create(t.Context(), "../x", plan); return err },
		"another runtime": func() error {
			p := plan
			p.Runtime = "other"
			_, err := rt.Create(t.Context(), sandbox.NewID(), p)
			return err
		},
		"no request": func() error {
			p := plan
			p.Request = nil
			_, err := rt.Create(t.Context(), sandbox.NewID(), p)
			return err
		},
	} {
		if err := try(); !errors.Is(err, sandbox.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	empty(t, s, rt)
}

// empty checks that nothing is left.
func empty(t *testing.T, s Subject, rt runtimes.Runtime) {
	t.Helper()
	handles, err := rt.List(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range handles {
		if h.Holder == s.Spec(t).Holder {
			t.Errorf("left behind: %s %s (%s)", h.Kind, h.ID, h.Name)
		}
	}
	if s.Leftovers != nil {
		for _, what := range s.Leftovers(t) {
			t.Errorf("left behind: %s", what)
		}
	}
}

func testLife(t *testing.T, s Subject) {
	rt := s.New(t)
	inst, plan := s.create(t, rt)
	h := inst.Handle()
	if !h.ID.Valid() || h.Version != runtimes.HandleVersion || h.Runtime != plan.Runtime || h.Kind != runtimes.KindSandbox ||
		h.Holder != plan.Spec.Holder || h.Language != plan.Spec.Language || time.Since(h.Created).Abs() > time.Hour || !h.Running {
		t.Errorf("handle %+v", h)
	}
	c := connect(t, inst, plan)
	out, err := c.Run(t.Context(), client.Command{Argv: []string{"true"}, Timeout: patience})
	if err != nil || out.Reason != sandbox.ReasonExited || out.Code != 0 {
		t.Errorf("true: %v, %+v", err, out.Exit)
	}
	for range 2 {
		if err := inst.Destroy(t.Context()); err != nil {
			t.Errorf("destroy: %v", err)
		}
	}
	if _, err := inst.Dial(t.Context()); !errors.Is(err, sandbox.Unavailable) {
		t.Errorf("dial what is gone: %v", err)
	}
	if _, err := c.Sample(t.Context()); err == nil {
		t.Error("a connection outlived its sandbox")
	}
	if exit, err := inst.Wait(t.Context()); err != nil || exit.Reason != sandbox.ReasonInfra || exit.Cause == "" {
		t.Errorf("wait for what is gone: %v, %+v", err, exit)
	}
	if _, err := rt.Attach(t.Context(), h); !errors.Is(err, sandbox.NotFound) {
		t.Errorf("attach to what is gone: %v", err)
	}
	empty(t, s, rt)
}

func testClaim(t *testing.T, s Subject) {
	inst, plan := s.create(t, s.New(t))
	if _, err := dial(t, inst, client.Config{Secret: secret}); !errors.Is(err, sandbox.Conflict) {
		t.Errorf("before a claim: %v", err)
	}
	short := client.Config{Secret: secret[:8], Claim: &client.Claim{Identity: plan.Spec.Identity}}
	if _, err := dial(t, inst, short); !errors.Is(err, sandbox.Invalid) {
		t.Errorf("a claim with a short secret: %v", err)
	}
	connect(t, inst, plan)
	again := client.Config{Secret: secret, Claim: &client.Claim{Identity: plan.Spec.Identity}}
	if _, err := dial(t, inst, again); !errors.Is(err, sandbox.Conflict) {
		t.Errorf("a second claim: %v", err)
	}
	if _, err := dial(t, inst, client.Config{Secret: make([]byte, 32)}); !errors.Is(err, sandbox.Denied) {
		t.Errorf("a wrong secret: %v", err)
	}
	other, err := dial(t, inst, client.Config{Secret: secret, Lease: client.Lease{ID: sandbox.NewID()}})
	if err != nil {
		t.Fatalf("a second connection: %v", err)
	}
	defer other.Close()
	if _, err := other.Sample(t.Context()); err != nil {
		t.Errorf("over a second connection: %v", err)
	}
}

// testHandOver claims a sandbox that was made for nobody, where the runtime can.
func testHandOver(t *testing.T, s Subject) {
	rt := s.New(t)
	spec := s.Spec(t)
	inst, _ := s.create(t, rt)
	claimer, ok := inst.(runtimes.Claimer)
	if !ok {
		t.Skip("this runtime cannot hand over a sandbox")
	}
	spec.Session, spec.Language, spec.Holder = "theirs", "shell", "them"
	if caps, err := rt.Capabilities(t.Context()); err != nil {
		t.Fatal(err)
	} else if caps.Memory == runtimes.Enforced {
		spec.Limits.Memory, spec.Limits.CPUs = 768*sandbox.MiB, 0.75
	}
	plan, err := rt.Plan(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := claimer.Claim(t.Context(), plan); err != nil {
		t.Fatal(err)
	}
	used, err := connect(t, inst, plan).Sample(t.Context())
	if err != nil {
		t.Errorf("of a sandbox that was handed over: %v", err)
	}
	if want := spec.Limits.Memory; want > 0 && (used.MemoryLimit != want || used.CPUs != spec.Limits.CPUs) {
		t.Errorf("handed over with limits of %v and %v processors", used.MemoryLimit, used.CPUs)
	}
	handles, err := rt.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(handles, func(h runtimes.Handle) bool { return h.ID == inst.Handle().ID })
	if at < 0 {
		t.Fatalf("not listed: %+v", handles)
	}
	for _, h := range []runtimes.Handle{handles[at], inst.Handle()} {
		if h.Session != "theirs" || h.Language != "shell" || h.Holder != "them" {
			t.Errorf("handed over as %+v", h)
		}
	}
	plan.Spec.Image.ID += "0"
	if err := claimer.Claim(t.Context(), plan); !errors.Is(err, sandbox.Unsupported) {
		t.Errorf("handed over with another image: %v", err)
	}
}

func testAttach(t *testing.T, s Subject) {
	rt := s.New(t)
	inst, plan := s.create(t, rt)
	connect(t, inst, plan)
	handles, err := rt.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(handles, func(h runtimes.Handle) bool { return h.ID == inst.Handle().ID })
	if at < 0 {
		t.Fatalf("not listed: %+v", handles)
	}
	// A handle is kept as text between two lives of a manager.
	text, err := json.Marshal(handles[at])
	if err != nil {
		t.Fatal(err)
	}
	var h runtimes.Handle
	if err := json.Unmarshal(text, &h); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(inst.Handle(), h); diff != "" {
		t.Errorf("created, and listed:\n%s", diff)
	}
	found, err := s.New(t).Attach(t.Context(), h)
	if err != nil {
		t.Fatalf("attach: %v", err)
	}
	c, err := dial(t, found, client.Config{Secret: secret, Lease: client.Lease{ID: sandbox.NewID()}})
	if err != nil {
		t.Fatalf("over an attached instance: %v", err)
	}
	defer c.Close()
	if out, err := c.Run(t.Context(), client.Command{Argv: []string{"true"}, Timeout: patience}); err != nil || out.Code != 0 {
		t.Errorf("true: %v, %+v", err, out.Exit)
	}
	later := h
	later.Version++
	if _, err := rt.Attach(t.Context(), later); !errors.Is(err, sandbox.Unsupported) {
		t.Errorf("a handle of a later version: %v", err)
	}
	foreign := h
	foreign.Runtime = "other"
	if _, err := rt.Attach(t.Context(), foreign); !errors.Is(err, sandbox.Invalid) {
		t.Errorf("a handle of another runtime: %v", err)
	}
	absent := h
	absent.ID = sandbox.NewID()
	if _, err := rt.Attach(t.Context(), absent); !errors.Is(err, sandbox.NotFound) {
		t.Errorf("a handle of nothing: %v", err)
	}
	if err := found.Destroy(t.Context()); err != nil {
		t.Errorf("destroy: %v", err)
	}
	empty(t, s, rt)
}

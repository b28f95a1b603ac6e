package gate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/policies"
	"github.com/caisson-dev/caisson/policy"
	"github.com/caisson-dev/caisson/policy/facts"
	"github.com/caisson-dev/caisson/policy/scanner"
	"github.com/caisson-dev/caisson/policy/tables"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/docker"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/service/gate"
)

// A sandbox is judged by what is really asked of the engine, as CIS Docker's
// run-time items ask. What is planned by itself passes.
func TestPlans(t *testing.T) {
	t.Parallel()
	kit := enginetest.New(t)
	plan, err := kit.Runtime(t).Plan(t.Context(), sandbox.Spec{
		Image: sandbox.Image{ID: "sha256:1"}, Identity: sandbox.Identity{UID: 20000, RunnerUID: 20001}, Limits: sandbox.DefaultLimits,
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Load(t.Context(), policy.Config{Rules: policies.Plans})
	if err != nil {
		t.Fatal(err)
	}
	g, err := gate.New(gate.Config{Policy: func(context.Context) (gate.Policy, error) { return p, nil }, Desk: &desk{}})
	if err != nil {
		t.Fatal(err)
	}
	judge := func(change string) sandbox.Decision {
		t.Helper()
		changed := runtimes.Plan{Spec: plan.Spec, Request: altered(t, plan.Request, change)}
		a, err := g.Judge(t.Context(), manager.Question{Plan: &manager.PlanQuestion{Plan: &changed}})
		if err != nil {
			t.Fatal(err)
		}
		return a.Decision
	}
	if d := judge("{}"); d.Verdict != sandbox.Allow {
		t.Fatalf("as planned: %+v", d)
	}
	for change, want := range map[string]struct {
		verdict sandbox.Verdict
		rule    string
	}{
		`{"Privileged":true}`:                   {sandbox.Deny, "SBX-BOX-0001"},
		`{"Binds":["/var/run/docker.sock:/s"]}`: {sandbox.Deny, "SBX-BOX-0002"},
		`{"Binds":["/var/run:/s:ro"]}`:          {sandbox.Deny, "SBX-BOX-0002"},
		`{"Mounts":[{"Type":"bind","Source":"/run/../run/docker.sock","Target":"/s"}]}`: {sandbox.Deny, "SBX-BOX-0002"},
		`{"Binds":["/etc:/s:ro"]}`:   {sandbox.Ask, "SBX-BOX-0003"},
		`{"Binds":["/:/s"]}`:         {sandbox.Deny, "SBX-BOX-0003"},
		`{"NetworkMode":"host"}`:     {sandbox.Deny, "SBX-BOX-0004"},
		`{"PidMode":"host"}`:         {sandbox.Deny, "SBX-BOX-0004"},
		`{"IpcMode":"host"}`:         {sandbox.Deny, "SBX-BOX-0004"},
		`{"UTSMode":"host"}`:         {sandbox.Deny, "SBX-BOX-0004"},
		`{"UsernsMode":"host"}`:      {sandbox.Deny, "SBX-BOX-0004"},
		`{"PidMode":"container:x"}`:  {sandbox.Deny, "SBX-BOX-0004"},
		`{"CapAdd":["SYS_ADMIN"]}`:   {sandbox.Ask, "SBX-BOX-0005"},
		`{"CapAdd":["cap_net_raw"]}`: {sandbox.Ask, "SBX-BOX-0005"},
		`{"CapDrop":[]}`:             {sandbox.Ask, "SBX-BOX-0006"},
		`{"SecurityOpt":["no-new-privileges","seccomp=unconfined"]}`:  {sandbox.Deny, "SBX-BOX-0007"},
		`{"SecurityOpt":["no-new-privileges","apparmor:unconfined"]}`: {sandbox.Deny, "SBX-BOX-0007"},
		`{"MaskedPaths":[]}`:                      {sandbox.Deny, "SBX-BOX-0007"},
		`{"SecurityOpt":[]}`:                      {sandbox.Ask, "SBX-BOX-0008"},
		`{"ReadonlyRootfs":false}`:                {sandbox.Ask, "SBX-BOX-0009"},
		`{"Memory":0,"MemorySwap":0}`:             {sandbox.Ask, "SBX-BOX-0010"},
		`{"MemorySwap":-1}`:                       {sandbox.Ask, "SBX-BOX-0010"},
		`{"PidsLimit":null}`:                      {sandbox.Ask, "SBX-BOX-0010"},
		`{"CpuQuota":0}`:                          {sandbox.Ask, "SBX-BOX-0010"},
		`{"OomKillDisable":true}`:                 {sandbox.Ask, "SBX-BOX-0011"},
		`{"Devices":[{"PathOnHost":"/dev/kvm"}]}`: {sandbox.Ask, "SBX-BOX-0012"},
		`{"PortBindings":{"80/tcp":[{}]}}`:        {sandbox.Ask, "SBX-BOX-0014"},
		`{"NetworkMode":"bridge"}`:                {sandbox.Allow, "SBX-BOX-0015"},
		`{"RestartPolicy":{"Name":"always"}}`:     {sandbox.Ask, "SBX-BOX-0017"},
		`{"Sysctls":{"net.ipv4.ip_forward":"1"}}`: {sandbox.Ask, "SBX-BOX-0019"},
	} {
		d := judge(change)
		if d.Verdict != want.verdict || !slices.ContainsFunc(d.Findings, func(f sandbox.Finding) bool { return f.ID == want.rule && f.Remediation != "" }) {
			t.Errorf("%s: %s, want %s by %s: %+v", change, d.Verdict, want.verdict, want.rule, d.Findings)
		}
	}
}

// A sandbox of any runtime is judged by what holds it, and the rules know which
// runtime that is.
func TestPlansOfAnyRuntime(t *testing.T) {
	t.Parallel()
	p, err := policy.Load(t.Context(), policy.Config{Rules: policies.Plans})
	if err != nil {
		t.Fatal(err)
	}
	g, err := gate.New(gate.Config{Policy: func(context.Context) (gate.Policy, error) { return p, nil }, Desk: &desk{}})
	if err != nil {
		t.Fatal(err)
	}
	walls := []sandbox.Wall{sandbox.WallNetwork, sandbox.WallRoot, sandbox.WallPrivileges, sandbox.WallLimits}
	for name, tt := range map[string]struct {
		plan    runtimes.Plan
		verdict sandbox.Verdict
		says    string
	}{
		"walled":        {runtimes.Plan{Runtime: "jail", Walls: walls}, sandbox.Allow, ""},
		"no walls":      {runtimes.Plan{Runtime: "open"}, sandbox.Ask, "of the runtime open has not: no privileges"},
		"no limits":     {runtimes.Plan{Runtime: "jail", Walls: walls[:3]}, sandbox.Allow, "nothing holds a sandbox of the runtime jail to its limits"},
		"no isolation":  {runtimes.Plan{Runtime: "open", NotEnforced: []string{"isolation"}}, sandbox.Allow, "the runtime open isolates nothing"},
		"host's /etc":   {runtimes.Plan{Runtime: "jail", Walls: walls, Spec: sandbox.Spec{Workspace: sandbox.Workspace{Kind: sandbox.WorkspaceHost, Source: "/etc"}}}, sandbox.Ask, "/etc is mounted"},
		"not all of it": {runtimes.Plan{Runtime: "jail", Walls: walls, NotEnforced: []string{"memory"}}, sandbox.Allow, ""},
	} {
		tt.plan.Request, tt.plan.Spec.Network = []byte("{}"), tt.plan.Spec.Network.WithDefaults()
		a, err := g.Judge(t.Context(), manager.Question{Plan: &manager.PlanQuestion{Plan: &tt.plan}})
		if err != nil {
			t.Fatal(err)
		}
		said := slices.ContainsFunc(a.Decision.Findings, func(f sandbox.Finding) bool { return strings.Contains(f.Message, tt.says) })
		if a.Decision.Verdict != tt.verdict || tt.says != "" && !said {
			t.Errorf("%s: %+v", name, a.Decision)
		}
	}
}

// Whoever gives up while a plan is judged is told that, and not that the rules
// refused it.
func TestCanceledWhileJudging(t *testing.T) {
	t.Parallel()
	g := newGate(t, newPolicy(t), &desk{})
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	plan := runtimes.Plan{Request: []byte(`{"HostConfig":{}}`)}
	exec := question(command("true"), nil, "")
	exec.Run.Env = []string{"LD_PRELOAD=/workspace/x.so"}
	for name, q := range map[string]manager.Question{"plan": {Plan: &manager.PlanQuestion{Plan: &plan}}, "exec": {Exec: exec}} {
		if a, err := g.Judge(ctx, q); !errors.Is(err, gone) {
			t.Errorf("%s: %+v, %v", name, a.Decision, err)
		}
	}
}

// A plan in which nothing was found is not judged by another process again,
// whatever numbers its users have; one that differs in anything else is.
func TestCleanPlanIsKept(t *testing.T) {
	t.Parallel()
	kit := enginetest.New(t)
	spec := sandbox.Spec{Image: sandbox.Image{ID: "sha256:1"}, Identity: sandbox.Identity{UID: 20000, RunnerUID: 20001}, Limits: sandbox.DefaultLimits}
	dir := t.TempDir()
	judge := func(spec sandbox.Spec, change string) (sandbox.Decision, bool) {
		t.Helper()
		plan, err := kit.Runtime(t).Plan(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		plan.Request = altered(t, plan.Request, change)
		return judgedElsewhere(t, dir, plan)
	}
	if d, loaded := judge(spec, "{}"); !loaded || d.Verdict != sandbox.Allow {
		t.Fatalf("at first: loaded %v, %+v", loaded, d)
	}
	spec.Identity = sandbox.Identity{UID: 31000, RunnerUID: 31001}
	if d, loaded := judge(spec, "{}"); loaded || d.Verdict != sandbox.Allow || len(d.PolicyRevision) == 0 {
		t.Errorf("the same for other users: loaded %v, %+v", loaded, d)
	}
	for change, want := range map[string]sandbox.Verdict{
		`{"Privileged":true}`:      sandbox.Deny,
		`{"CapAdd":["SYS_ADMIN"]}`: sandbox.Ask,
		`{"ShmSize":1048576}`:      sandbox.Allow,
	} {
		for range 2 {
			d, loaded := judge(spec, change)
			if d.Verdict != want || !loaded && len(d.Findings) > 0 {
				t.Errorf("%s: loaded %v, %s, want %s", change, loaded, d.Verdict, want)
			}
		}
	}
	spec.Identity = sandbox.Identity{UID: 1000, RunnerUID: 1001}
	if _, loaded := judge(spec, "{}"); !loaded {
		t.Error("a plan for users of the host was taken for one of the session's")
	}
	spec.Session = "s"
	for range 2 {
		if _, loaded := judge(spec, "{}"); !loaded {
			t.Error("the plan of a session was kept")
		}
	}
}

// judgedElsewhere has a plan judged by another process that keeps decisions in dir, and
// tells whether that loaded rules.
func judgedElsewhere(t *testing.T, dir string, plan runtimes.Plan) (_ sandbox.Decision, loaded bool) {
	t.Helper()
	folder := policy.NewFolder(dir)
	cfg := policy.Config{Rules: policies.Plans, Lazy: true, Keeper: folder, Programs: "test"}
	plans := func(context.Context) (gate.Policy, error) {
		return policy.Defer(cfg, func(ctx context.Context) (*policy.Policy, error) {
			loaded = true
			return policy.Load(ctx, cfg)
		})
	}
	g, err := gate.New(gate.Config{Policy: plans, Desk: &desk{}})
	if err != nil {
		t.Fatal(err)
	}
	a, err := g.Judge(t.Context(), manager.Question{Plan: &manager.PlanQuestion{Plan: &plan}})
	if err := errors.Join(err, folder.Close()); err != nil {
		t.Fatal(err)
	}
	return a.Decision, loaded
}

// altered is a create request with other fields in its HostConfig.
func altered(t *testing.T, request []byte, change string) []byte {
	t.Helper()
	var whole, fields map[string]any
	if err := errors.Join(json.Unmarshal(request, &whole), json.Unmarshal([]byte(change), &fields)); err != nil {
		t.Fatal(err)
	}
	host, _ := whole["HostConfig"].(map[string]any)
	for k, v := range fields {
		if host[k] == nil && !strings.Contains("Privileged PidMode UTSMode UsernsMode Binds MaskedPaths OomKillDisable Devices PortBindings Sysctls", k) {
			t.Fatalf("the request has no %s", k)
		}
		host[k] = v
	}
	b, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A sandbox that may not be made is not made, and nothing runs.
func TestDeniedSandboxIsNotMade(t *testing.T) {
	t.Parallel()
	kit := enginetest.New(t)
	kit.Image(t, "shell")
	m, err := manager.New(manager.Config{Runtimes: runtimes.Only(docker.Name, privileged{kit.Runtime(t)}), Images: kit.Images, Gate: newGate(t, newPolicy(t), nil).Judge, Holder: kit.Holder, Patience: enginetest.Patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	var denied *sandbox.DeniedError
	_, err = m.Run(t.Context(), sandbox.Run{Language: "shell", Command: []string{"true"}}, sandbox.Streams{})
	if !errors.As(err, &denied) || denied.Decision.Findings[0].ID != "SBX-BOX-0001" {
		t.Errorf("%v", err)
	}
}

// privileged is a runtime that plans what it should not, and cannot make it.
type privileged struct{ runtimes.Runtime }

func (r privileged) Plan(ctx context.Context, spec sandbox.Spec) (runtimes.Plan, error) {
	plan, err := r.Runtime.Plan(ctx, spec)
	plan.Request = []byte(strings.Replace(string(plan.Request), `"HostConfig":{`, `"HostConfig":{"Privileged":true,`, 1))
	plan.Request = []byte(strings.Replace(string(plan.Request), `"Privileged":false,`, "", 1))
	return plan, err
}

func (r privileged) Create(context.Context, sandbox.ID, runtimes.Plan) (runtimes.Instance, error) {
	return nil, errors.New("it was made")
}

// Judging goes on beside getting ready: the sandbox is asked about, and so on its
// way, before the run is judged, and the run is judged before the sandbox is
// there.
func TestJudgingOverlaps(t *testing.T) {
	t.Parallel()
	kit := enginetest.New(t)
	kit.Image(t, "shell")
	exec, plan := make(chan struct{}), make(chan struct{})
	both := func(ctx context.Context, q manager.Question) (manager.Answer, error) {
		mine, other := exec, plan
		if q.Plan != nil {
			mine, other = plan, exec
		}
		close(mine)
		select {
		case <-other:
		case <-ctx.Done():
			return manager.Answer{}, context.Cause(ctx)
		}
		return manager.Answer{Decision: sandbox.Decision{Verdict: sandbox.Allow}}, nil
	}
	m, err := manager.New(manager.Config{Runtimes: kit.Runtimes(t), Images: kit.Images, Gate: both, Holder: kit.Holder, Patience: enginetest.Patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if res, err := m.Run(ctx, sandbox.Run{Language: "shell", Command: []string{"true"}}, sandbox.Streams{}); err != nil || res.Code != 0 {
		t.Errorf("%v, %+v", err, res)
	}
}

// The same text is scanned once, however often it runs.
func TestDecisionIsReused(t *testing.T) {
	t.Parallel()
	scans := &counted{}
	tb, err := tables.Load(policies.FS)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := scanner.New(scanner.Config{Path: enginetest.Scanner(t), Tables: tb})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	scans.Pool = pool
	p, err := policy.Load(t.Context(), policy.Config{Rules: policies.FS, Scanner: scans})
	if err != nil {
		t.Fatal(err)
	}
	g := newGate(t, p, &desk{})
	for range 3 {
		q := question(sandbox.Run{Language: "python", Code: "import helper"}, files{"helper.py": "x = 1"}, "")
		if _, err := g.Judge(t.Context(), manager.Question{Exec: q}); err != nil {
			t.Fatal(err)
		}
	}
	if n := scans.n.Load(); n != 3 { // the code, its module, and the code with it
		t.Errorf("two texts were scanned %d times", n)
	}
}

type counted struct {
	*scanner.Pool
	n atomic.Int32
}

func (c *counted) Scan(ctx context.Context, r facts.Request) (*facts.Document, error) {
	c.n.Add(1)
	return c.Pool.Scan(ctx, r)
}

// A policy may require that what programs start is seen.
func TestStartsRequired(t *testing.T) {
	t.Parallel()
	settings, err := fs.ReadFile(policies.Plans, "data/settings.yaml")
	if err != nil {
		t.Fatal(err)
	}
	settings = bytes.Replace(settings, []byte("require: []"), []byte("require: [starts]"), 1)
	p, err := policy.Load(t.Context(), policy.Config{Rules: policies.Plans, Data: fstest.MapFS{"settings.yaml": {Data: settings}}})
	if err != nil {
		t.Fatal(err)
	}
	g, err := gate.New(gate.Config{Policy: func(context.Context) (gate.Policy, error) { return p, nil }, Desk: &desk{}})
	if err != nil {
		t.Fatal(err)
	}
	plan := runtimes.Plan{Runtime: "jail", Walls: []sandbox.Wall{sandbox.WallNetwork, sandbox.WallRoot, sandbox.WallPrivileges, sandbox.WallLimits}, Request: []byte("{}")}
	plan.Spec.Network = plan.Spec.Network.WithDefaults()
	for seen, want := range map[bool]sandbox.Verdict{true: sandbox.Allow, false: sandbox.Deny} {
		a, err := g.Judge(t.Context(), manager.Question{Plan: &manager.PlanQuestion{Plan: &plan, Starts: seen}})
		if err != nil || a.Decision.Verdict != want {
			t.Errorf("seen %v: %v, %+v", seen, err, a.Decision)
		}
	}
}

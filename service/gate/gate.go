// Package gate joins the policy to the manager: it answers what the manager
// asks before anything is made or run. It finds everything that a run would
// execute as far as its text tells (code, files, what they import and start,
// standard input that is a program), has it judged, asks for an approval where
// the policy says so, and hands back a program that runs the judged bytes.
//
// It decides nothing itself: what it finds beside texts it tells the rules in
// input.ctx.gate. Doubt refuses.
package gate

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/policy"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// Policy is what the gate needs of the policy.
type Policy interface {
	Examine(ctx context.Context, r policy.Request) (sandbox.Decision, []policy.Ref)
	// Contain judges a decision again by the walls around the run.
	Contain(ctx context.Context, d sandbox.Decision, walls []sandbox.Wall) sandbox.Decision
	DecideContext(ctx context.Context, key string, about map[string]any) sandbox.Decision
	// LooksAtPlan reports whether a rule looks at the sandbox beside a text.
	LooksAtPlan() bool
	Revision() string
	// Err says why the policy could not be had, where it refuses for that.
	Err() error
}

// Desk settles what policy asks about.
type Desk interface {
	// Settle returns who approved, or why nobody did. Its errors are the
	// context's, and those of a store.
	Settle(ctx context.Context, a sandbox.Approval, mode sandbox.ApproveMode, ask sandbox.Asker) (by *sandbox.ApprovedBy, refused string, err error)
}

// Config is what a gate works with. Policy is required. It is called at most
// once, with the first question, since loading rules takes a while.
type Config struct {
	Policy func(ctx context.Context) (Policy, error)
	// Plans judges sandboxes, where that can be had sooner than Policy. nil is
	// Policy.
	Plans func(ctx context.Context) (Policy, error)
	// Desk is asked where the verdict is ask; nil refuses.
	Desk Desk
	// Actor says who asks.
	Actor string
	// Own are texts of caisson's own that run what is staged beside them and nothing
	// else. As a run's code they are not judged; what is staged is.
	Own []string
	// Shipped are texts of caisson's own in Python that everybody has. As a run's code,
	// and staged beside it, they are not judged where they are these very bytes; all
	// else that the run executes is.
	Shipped []string
	// UnknownLanguage is the verdict on texts of a language that cannot be
	// judged. "" is [sandbox.Ask].
	UnknownLanguage sandbox.Verdict
	// Plain gives what tells whether no rule knows anything of a program by its base
	// name. It is called at most once, with the first start that is judged. nil is
	// that rules may know any.
	Plain func(ctx context.Context) (func(name string) bool, error)
}

// Gate judges for a manager. It is safe for concurrent use.
type Gate struct {
	c            Config
	texts, boxes loader
	keeping      keeping

	programs sync.Once
	isPlain  func(name string) bool
	plainErr error
}

// loader loads a policy, once.
type loader struct {
	from func(ctx context.Context) (Policy, error)
	once sync.Once
	p    Policy
	err  error
}

// get gives the policy. The first caller's context does not end the loading for
// the others.
func (l *loader) get(ctx context.Context) (Policy, error) {
	l.once.Do(func() { l.p, l.err = l.from(context.WithoutCancel(ctx)) })
	return l.p, l.err
}

// New checks a Config and starts nothing. Errors: Invalid.
func New(c Config) (*Gate, error) {
	if c.Policy == nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "gate: no policy")
	}
	if c.Plans == nil {
		c.Plans = c.Policy
	}
	switch c.UnknownLanguage = cmp.Or(c.UnknownLanguage, sandbox.Ask); c.UnknownLanguage {
	case sandbox.Allow, sandbox.Ask, sandbox.Deny:
	default:
		return nil, sandbox.Errorf(sandbox.Invalid, "unknown_language is %q", c.UnknownLanguage).WithHint("make it ask, allow or deny")
	}
	return &Gate{c: c, texts: loader{from: c.Policy}, boxes: loader{from: c.Plans}}, nil
}

// Judge is a [manager.Gate]. Its errors are those of a policy that cannot be
// loaded, of a workspace that cannot be read, and the context's.
func (g *Gate) Judge(ctx context.Context, q manager.Question) (manager.Answer, error) {
	switch {
	case q.Exec != nil:
		if q.Exec.Making {
			// What is asked about the sandbox comes at once, and the engine waits
			// for the answer: its few rules go before all the others. An error is
			// told there.
			_, _ = g.boxes.get(ctx)
		}
		p, err := g.texts.get(ctx)
		if err != nil {
			return manager.Answer{}, err
		}
		return g.exec(ctx, p, q.Exec)
	case q.Start != nil:
		p, err := g.texts.get(ctx)
		if err != nil {
			return manager.Answer{}, err
		}
		return g.start(ctx, p, q.Start)
	case q.Plan != nil:
		p, err := g.boxes.get(ctx)
		if err != nil {
			return manager.Answer{}, err
		}
		d, err := g.plan(ctx, p, q.Plan)
		return manager.Answer{Decision: d}, err
	case q.Host != nil:
		p, err := g.texts.get(ctx)
		if err != nil {
			return manager.Answer{}, err
		}
		d, err := g.host(ctx, p, q.Host)
		return manager.Answer{Decision: d}, err
	case q.Tool != nil:
		p, err := g.texts.get(ctx)
		if err != nil {
			return manager.Answer{}, err
		}
		d, err := g.tool(ctx, p, q.Tool)
		return manager.Answer{Decision: d}, err
	}
	return manager.Answer{}, sandbox.Errorf(sandbox.Internal, "a gate was asked nothing")
}

// plan judges a sandbox before it is made.
func (g *Gate) plan(ctx context.Context, p Policy, q *manager.PlanQuestion) (sandbox.Decision, error) {
	about := map[string]any{}
	if len(q.Plan.Request) > 0 && json.Unmarshal(q.Plan.Request, &about) != nil {
		return sandbox.Decision{}, sandbox.Errorf(sandbox.Internal, "read the plan of a sandbox")
	}
	told := neutral(q)
	d := p.DecideContext(ctx, planKey(q.Plan, told), map[string]any{"container": about, "sandbox": told})
	if ctx.Err() != nil { // then it says that the rules were stopped
		return sandbox.Decision{}, context.Cause(ctx)
	}
	if d.Verdict != sandbox.Ask {
		return d, nil
	}
	spec := q.Plan.Spec
	digest := digestOf("sandbox", []any{q.Plan.Runtime, spec.Session, spec.Image.ID, spec.Limits, spec.Network, spec.Workspace, spec.OCIRuntime, about, d.PolicyRevision})
	return g.settle(ctx, d, q.Approve, q.Ask, sandbox.Approval{
		Digest: digest, Session: spec.Session,
		Question: sandbox.ApprovalQuestion{
			Kind: "sandbox", Language: spec.Language, Image: spec.Image.ID, Network: spec.Network, Limits: spec.Limits, Plan: q.Plan.Request,
			Policy: d.PolicyRevision,
		},
	})
}

// neutral is what rules are told of a sandbox whatever makes it.
func neutral(q *manager.PlanQuestion) map[string]any {
	p := q.Plan
	return map[string]any{
		"runtime": p.Runtime, "network": string(p.Spec.Network.Mode), "walls": slices.Clone(p.Walls), "not_enforced": missing(q),
		"workspace": map[string]any{"kind": string(p.Spec.Workspace.Kind), "source": p.Spec.Workspace.Source},
	}
}

// missing names what a sandbox is not held to. That programs are to be seen when they
// start is not a limit of the sandbox, and a policy may require it all the same.
func missing(q *manager.PlanQuestion) []string {
	names := slices.Clone(q.Plan.NotEnforced)
	if !q.Starts {
		names = append(names, runtimes.Starts)
	}
	return names
}

// ofUsers are how the requests of runtimes name the users of a sandbox: in the options
// of a mount, in a field, and as arguments.
var ofUsers = []string{"uid=%v,", `uid=%v"`, "gid=%v,", `gid=%v"`, `"uid":%v,`, `"--uid","%v"`, `"--gid","%v"`}

// planKey names what the rules are told of a one-off sandbox, for all rules but one that
// would tell the numbers of the sandbox's own users apart: each sandbox has others.
// That of a session is made once, with names that no other has: "".
func planKey(p *runtimes.Plan, neutral map[string]any) string {
	if p.Spec.Session != "" {
		return ""
	}
	told, err := json.Marshal(neutral)
	if err != nil {
		return ""
	}
	text := string(p.Request)
	for name, uid := range map[string]int{"session": p.Spec.Identity.UID, "runner": p.Spec.Identity.RunnerUID} {
		if uid < sandbox.FirstUID || uid > sandbox.LastUID {
			continue
		}
		for _, form := range ofUsers {
			text = strings.ReplaceAll(text, fmt.Sprintf(form, uid), fmt.Sprintf(form, name))
		}
	}
	return sum(fmt.Appendf(nil, "%s %s", told, text))
}

// settle has a question answered.
func (g *Gate) settle(ctx context.Context, d sandbox.Decision, mode sandbox.ApproveMode, ask sandbox.Asker, a sandbox.Approval) (sandbox.Decision, error) {
	if g.c.Desk == nil {
		d.Refused = "nobody is there to approve it"
		return d, nil
	}
	a.Actor, a.Decision = g.c.Actor, d
	by, refused, err := g.c.Desk.Settle(ctx, a, mode, ask)
	if err != nil {
		return d, err
	}
	d.Approval, d.Refused = by, refused
	return d, nil
}

// merge is both decisions in one: the strictest verdict, all findings.
func merge(a, b sandbox.Decision) sandbox.Decision {
	a.Verdict, a.Level = sandbox.Stricter(a.Verdict, b.Verdict), max(a.Level, b.Level)
	a.PolicyRevision = cmp.Or(a.PolicyRevision, b.PolicyRevision)
	a.Findings = append(slices.Clone(a.Findings), b.Findings...)
	slices.SortStableFunc(a.Findings, func(x, y sandbox.Finding) int {
		return cmp.Or(cmp.Compare(y.Severity, x.Severity), cmp.Compare(x.File, y.File), cmp.Compare(x.Line, y.Line))
	})
	return a
}

package gate

import (
	"context"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// tool judges a call of a tool. The rules see it as input.ctx.tool.
func (g *Gate) tool(ctx context.Context, p Policy, q *manager.ToolQuestion) (sandbox.Decision, error) {
	d := p.DecideContext(ctx, "", map[string]any{"tool": toolFacts(ctx, q)})
	if ctx.Err() != nil { // then it says that the rules were stopped
		return sandbox.Decision{}, context.Cause(ctx)
	}
	if err := p.Err(); err != nil {
		return d, err
	}
	if d.Verdict != sandbox.Ask {
		return d, nil
	}
	owner := sandbox.CallerFrom(ctx).Owner
	digest := digestOf("tool", []any{exactly([]string{q.Tool.Name, q.Session, owner, string(q.Arguments)}), q.Tool, d.PolicyRevision})
	return g.settle(ctx, d, q.Approve, q.Ask, sandbox.Approval{
		Digest: digest, Session: q.Session, Exec: q.Exec, Labels: q.Labels,
		Question: sandbox.ApprovalQuestion{
			Kind: "tool", Language: q.Language, Tool: q.Tool.Name, Arguments: q.Arguments, Policy: d.PolicyRevision,
		},
	})
}

// toolFacts are what rules are told of a call: docs/tools.md lists them.
func toolFacts(ctx context.Context, q *manager.ToolQuestion) map[string]any {
	rules := []any{}
	for _, f := range q.Program.Findings {
		rules = append(rules, f.ID)
	}
	return map[string]any{
		"name": q.Tool.Name, "arguments": map[string]any(q.Value), "declared": string(q.Tool.Verdict), "session": q.Session,
		"owner": sandbox.CallerFrom(ctx).Owner,
		"program": map[string]any{
			"language": q.Language, "verdict": string(q.Program.Verdict), "level": q.Program.Level.String(), "rules": rules,
			"approved": q.Program.Approval != nil,
		},
	}
}

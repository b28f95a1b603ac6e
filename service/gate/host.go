package gate

import (
	"cmp"
	"context"
	"slices"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// host judges a connection of an exec that runs.
func (g *Gate) host(ctx context.Context, p Policy, q *manager.HostQuestion) (sandbox.Decision, error) {
	e := q.Exec
	d := p.DecideContext(ctx, "", map[string]any{"connection": map[string]any{
		"host": q.Host, "port": q.Port, "listed": q.Listed,
		"exec": map[string]any{
			"session": e.Run.Session, "language": e.Language.Name, "command": e.Argv, "labels": e.Run.Labels, "background": e.Background,
		},
	}})
	if ctx.Err() != nil { // then it says that the rules were stopped
		return sandbox.Decision{}, context.Cause(ctx)
	}
	if err := p.Err(); err != nil {
		return d, err
	}
	if d.Verdict != sandbox.Ask {
		return d, nil
	}
	mode := e.Run.Approve
	scope := cmp.Or(e.Run.Session, string(e.ID))
	if e.Run.Session == "" && mode == sandbox.ApproveLater {
		mode = sandbox.ApproveDefault // later the run is another, to which no answer would apply
	}
	command, texts := e.Argv, []sandbox.ApprovalText(nil)
	if e.Run.Code != "" {
		command = slices.Concat([]string{e.Language.Name, "-c", "(the code)"}, e.Run.Args)
		code := []byte(e.Run.Code)
		texts = []sandbox.ApprovalText{{Language: e.Language.Name, SHA256: sum(code), Size: len(code), Text: e.Run.Code}}
	}
	return g.settle(ctx, d, mode, e.Ask, sandbox.Approval{
		Digest:  digestOf(sandbox.QuestionConnection, []any{q.Host, q.Port, q.Listed, scope, e.User, d.PolicyRevision}),
		Session: e.Run.Session, Exec: e.ID, Labels: e.Run.Labels,
		Question: sandbox.ApprovalQuestion{
			Kind: sandbox.QuestionConnection, Host: q.Host, Port: q.Port, Listed: q.Listed, Language: e.Language.Name, Command: command, Dir: dirOf(e),
			User: e.User, Network: e.Network, Policy: d.PolicyRevision, Texts: texts, Background: e.Background,
		},
	})
}

package gate

import (
	"context"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/caisson-dev/caisson/sandbox"
)

// mostData bounds standard input that an approval can be bound to, and
// dataPatience how long it may take to come: what is longer is a stream, and
// the question says so.
const (
	mostData     = 1 << 20
	dataPatience = 300 * time.Millisecond
)

// question makes what a person is asked, and the digest of all that an answer
// is bound to.
func (e *execution) question(ctx context.Context, d sandbox.Decision, image string) sandbox.Approval {
	q := e.q
	if e.stdin == nil && q.Stdin != nil && !e.own() {
		var known []byte
		var whole bool
		known, whole, e.stdin = peek(ctx, q.Stdin, mostData, dataPatience)
		switch {
		case whole && len(known) == 0:
			e.input = "none" // as where there never was any
		case whole:
			e.input = sum(known)
		}
	}
	var texts []sandbox.ApprovalText
	var names []any
	var files []string
	for _, u := range e.w.order {
		t := sandbox.ApprovalText{Name: u.name, Language: u.lang, SHA256: sum(u.code), Size: len(u.code)}
		if utf8.Valid(u.code) {
			t.Text = string(u.code)
		}
		texts = append(texts, t)
		files = append(files, u.name)
		names = append(names, []any{u.name, u.lang, t.SHA256, u.staged, u.inPlace})
	}
	for _, f := range q.Staged {
		files = append(files, f.Name, sum(f.Data))
	}
	exact := exactly([]string{q.Run.Code, q.Run.File, q.Dir, q.Run.Session, q.User}, q.Run.Command, q.Run.Args, q.Env, files)
	digest := digestOf("exec", []any{
		exact,
		q.Run.Code, q.Run.File, q.Run.Command, q.Run.Args, q.Language, q.Env, q.Dir, q.Role, q.User, q.Run.Session, image, q.Network, q.Limits,
		q.ExecLimits, e.input, q.Background, q.Run.Guard, q.Run.Program, names, e.w.unjudged, d.PolicyRevision,
	})
	command := q.Argv
	if e.f.code {
		command = slices.Concat([]string{q.Language.Name, "-c", "(the code)"}, q.Run.Args)
	}
	return sandbox.Approval{
		Digest: digest, Session: q.Run.Session, Exec: q.ID, Labels: q.Run.Labels,
		Question: sandbox.ApprovalQuestion{
			Kind: "exec", Language: q.Language.Name, Command: command, Dir: dirOf(q), Env: q.Run.Env, Role: q.Role, User: q.User, Image: image,
			Network: q.Network, Limits: q.Limits, ExecLimits: q.ExecLimits, Stdin: e.input, Policy: d.PolicyRevision, Texts: texts,
			Background: q.Background,
		},
	}
}

package gate

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/caisson-dev/caisson/internal/lazyregexp"
	"github.com/caisson-dev/caisson/policy"
	"github.com/caisson-dev/caisson/sandbox"
)

// earlierName is what a person sees over the texts that have run in a shell before.
const earlierName = "<earlier in the shell>"

// mostEarlier bounds the earlier texts that one is judged with, the newest.
const mostEarlier = 128 << 10

// keeps finds what lets a text leave something in a shell: names, a folder, files that
// it writes.
var keeps = lazyregexp.New(`[=()>]|\b(function|alias|unalias|source|eval|trap|read|printf|mapfile|readarray|getopts|declare|typeset|export|hash|enable|unset|shopt|set|cd|pushd|popd|exec|let|import|def|class|for|with|del|as)\b|(^|[\s;&|])\.\s`)

// earlier are the texts of a shell that can matter for the next.
func earlier(texts []string) []byte {
	var all []byte
	for _, text := range slices.Backward(texts) {
		if !keeps().MatchString(text) {
			continue
		}
		if len(all)+len(text) >= mostEarlier {
			break
		}
		all = append([]byte(text+"\n"), all...)
	}
	return all
}

// inShell judges a text in a shell once more, behind those that have run there: what
// they leave is what its words mean. What they were judged for is not told again.
func (e *execution) inShell(ctx context.Context) error {
	sh := e.q.Shell
	if sh == nil || e.main == nil {
		return nil
	}
	before := earlier(sh.Texts)
	if len(before) == 0 {
		return nil
	}
	u, w := e.main, e.w
	here := "cd " + quote(w.dir) + "\n"
	if u.lang == "python" {
		here = fmt.Sprintf("import os; os.chdir(%q)\n", w.dir)
	}
	old, oldRefs := w.p.Examine(ctx, w.requestOf(u, append(slices.Clip(before), here...)))
	d, refs := w.p.Examine(ctx, w.requestOf(u, slices.Concat(before, []byte(here), u.code)))
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := w.p.Err(); err != nil {
		return err
	}
	shift := bytes.Count(before, []byte("\n")) + 1
	d = unlike(d, slices.Concat(old.Findings, moved(w.decision.Findings, shift)), shift)
	refs = slices.DeleteFunc(slices.Clone(refs), func(r policy.Ref) bool {
		return slices.ContainsFunc(oldRefs, func(o policy.Ref) bool {
			return o.Kind == r.Kind && o.Path == r.Path && o.Name == r.Name && o.Line == r.Line && slices.Equal(o.Args, r.Args)
		})
	})
	if len(d.Findings) > 0 || len(refs) > 0 {
		w.order = append(w.order, &unit{name: earlierName, lang: u.lang, code: before, shown: true})
	}
	w.decision = merge(w.decision, d)
	return w.followAll(ctx, u, refs)
}

// requestOf asks about another text in a unit's place.
func (w *walker) requestOf(u *unit, code []byte) policy.Request {
	other := *u
	other.code = code
	return policy.Request{Language: u.lang, Code: code, File: u.name, Owner: w.owner, Start: w.startOf(&other), Writable: w.places, Context: w.about}
}

// moved are findings so many lines further down.
func moved(list []sandbox.Finding, lines int) []sandbox.Finding {
	list = slices.Clone(list)
	for i := range list {
		list[i].Line += lines
	}
	return list
}

// unlike leaves in a decision what is not among other findings, and tells its lines as
// they stand behind the first so many.
func unlike(d sandbox.Decision, others []sandbox.Finding, lines int) sandbox.Decision {
	all := d.Findings
	d.Findings, d.Verdict, d.Level = nil, sandbox.Allow, sandbox.Safe
	for _, f := range all {
		if slices.ContainsFunc(others, func(o sandbox.Finding) bool {
			return o.ID == f.ID && o.Message == f.Message && o.Line == f.Line
		}) {
			continue
		}
		d.Verdict, d.Level = sandbox.Stricter(d.Verdict, f.Verdict), max(d.Level, f.Severity)
		if f.Line > lines {
			f.Line, f.EndLine = f.Line-lines, f.EndLine-lines
		} else {
			f.File = earlierName
		}
		d.Findings = append(d.Findings, f)
	}
	return d
}

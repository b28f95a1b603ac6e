package gate

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

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

// keeping remembers of texts whether they keep something: with each text of a shell all
// before it are asked about again. The zero value is ready.
type keeping struct {
	mu    sync.Mutex
	known map[string]bool
	size  int
}

// mostKeeping bounds the texts that are remembered, in bytes: those of several shells.
const mostKeeping = 2 << 20

func (k *keeping) of(text string) bool {
	k.mu.Lock()
	is, known := k.known[text]
	k.mu.Unlock()
	if known {
		return is
	}
	is = keeps().MatchString(text)
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, known = k.known[text]; known {
		return is // another has asked meanwhile
	}
	if k.size += len(text); k.known == nil || k.size > mostKeeping {
		k.known, k.size = map[string]bool{}, len(text)
	}
	k.known[text] = is
	return is
}

// earlier are the texts of a shell that can matter for the next.
func (k *keeping) earlier(texts []string) []byte {
	var kept []string
	size := 0
	for _, text := range slices.Backward(texts) {
		if !k.of(text) {
			continue
		}
		if size+len(text) >= mostEarlier {
			break
		}
		kept, size = append(kept, text+"\n"), size+len(text)+1
	}
	slices.Reverse(kept)
	return []byte(strings.Join(kept, ""))
}

// inShell judges a text in a shell once more, behind those that have run there: what
// they leave is what its words mean. What they were judged for is not told again.
func (e *execution) inShell(ctx context.Context) error {
	sh := e.q.Shell
	if sh == nil || e.main == nil {
		return nil
	}
	before := e.keeping.earlier(sh.Texts)
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

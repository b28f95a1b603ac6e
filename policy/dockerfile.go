package policy

import (
	"context"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
	"github.com/caisson-dev/caisson/sandbox"
)

// Dockerfile is the language of Dockerfiles for [Policy.Judge].
const Dockerfile = "dockerfile"

// JudgeDockerfile judges what a build would do: the instructions by the rules
// of policies/dockerfile, and each RUN, CMD, ENTRYPOINT and HEALTHCHECK as the
// script that it is, in every reading that a builder may have of it. A build
// works on a file system of its own, so that what it does to files of the
// system is no more than noted. Like [Policy.Judge] it always has an answer.
// file names it in findings.
func (p *Policy) JudgeDockerfile(ctx context.Context, source []byte, file string) sandbox.Decision {
	if p == nil || p.snap.Load() == nil {
		return refusal("", "no policy is loaded")
	}
	readings := readDockerfile(source)
	d := p.judgeReading(ctx, readings[0], file)
	for _, f := range readings[1:] {
		d = together(d, p.judgeReading(ctx, f, file))
	}
	return d
}

func (p *Policy) judgeReading(ctx context.Context, f *dockerfile, file string) sandbox.Decision {
	about := make([]any, 0, len(f.instructions))
	for _, i := range f.instructions {
		about = append(about, map[string]any{
			"op": i.op, "line": i.line, "flags": anys(i.flags), "args": anys(i.args), "text": i.text, "stage": i.stage, "last": i.stage == f.stages,
		})
	}
	d := p.Decide(ctx, &facts.Document{}, Request{File: file, Context: map[string]any{"dockerfile": map[string]any{
		"instructions": about, "syntax": f.syntax, "problem": f.problem, "stages": f.stages,
	}}})
	for _, i := range f.instructions {
		if i.script != "" {
			d = together(d, build(p.Judge(ctx, Request{Language: i.language, Code: []byte(i.script), File: file, Owner: "build"}), i.place))
		}
	}
	return d
}

func anys(list []string) []any {
	out := make([]any, len(list))
	for n, s := range list {
		out[n] = s
	}
	return out
}

// build takes findings about a script back to where it stands in the
// Dockerfile, and lowers those that are about files: they are the image's own.
func build(d sandbox.Decision, place func(line, column int) (int, int)) sandbox.Decision {
	out := sandbox.Decision{Verdict: sandbox.Allow, Level: sandbox.Safe, PolicyRevision: d.PolicyRevision}
	for _, f := range d.Findings {
		if f.Line > 0 {
			f.Line, f.Column = place(f.Line, f.Column)
		}
		if f.EndLine > 0 {
			f.EndLine, f.EndColumn = place(f.EndLine, f.EndColumn)
		}
		whole := strings.Contains(f.Message, " of / by ") || strings.Contains(f.Message, " of /* by ")
		if strings.HasPrefix(f.ID, "SBX-FS-") || f.ID == "SBX-PRIV-0001" || f.ID == "SBX-BL-0001" && !whole {
			f.Severity, f.Verdict = min(f.Severity, sandbox.Medium), sandbox.Allow
		}
		out.Verdict, out.Level = sandbox.Stricter(out.Verdict, f.Verdict), max(out.Level, f.Severity)
		out.Findings = append(out.Findings, f)
	}
	if len(d.Findings) == 0 {
		out.Verdict, out.Level = d.Verdict, d.Level
	}
	return out
}

// together is two decisions in one.
func together(a, b sandbox.Decision) sandbox.Decision {
	a.Verdict, a.Level = sandbox.Stricter(a.Verdict, b.Verdict), max(a.Level, b.Level)
	a.Findings = slices.Clone(a.Findings)
	for _, f := range b.Findings {
		same := func(o sandbox.Finding) bool { return o.ID == f.ID && o.Line == f.Line && o.Message == f.Message }
		if !slices.ContainsFunc(a.Findings, same) {
			a.Findings = append(a.Findings, f)
		}
	}
	slices.SortStableFunc(a.Findings, func(x, y sandbox.Finding) int {
		if x.Severity != y.Severity {
			return int(y.Severity) - int(x.Severity)
		}
		return x.Line - y.Line
	})
	return a
}

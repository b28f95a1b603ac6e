package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/internal/lazyregexp"
	"github.com/caisson-dev/caisson/policy/facts"
	"github.com/caisson-dev/caisson/sandbox"
)

// Dockerfile is the language of Dockerfiles for [Policy.Judge].
const Dockerfile = "dockerfile"

// mostDockerfile bounds what is read of a Dockerfile, in bytes.
const mostDockerfile = 256 << 10

// JudgeDockerfile judges what a build would do: the instructions by the rules
// of policies/dockerfile, and each RUN, CMD, ENTRYPOINT and HEALTHCHECK as the
// shell script that it is. A build works on a file system of its own, so that
// what it does to files of the system is no more than noted. Like
// [Policy.Judge] it always has an answer. file names it in findings.
func (p *Policy) JudgeDockerfile(ctx context.Context, source []byte, file string) sandbox.Decision {
	if p == nil || p.snap.Load() == nil {
		return refusal("", "no policy is loaded")
	}
	f := parseDockerfile(source)
	about := make([]any, 0, len(f.instructions))
	for _, i := range f.instructions {
		flags := []any{}
		for _, s := range i.flags {
			flags = append(flags, s)
		}
		args := []any{}
		for _, s := range i.args {
			args = append(args, s)
		}
		about = append(about, map[string]any{"op": i.op, "line": i.line, "flags": flags, "args": args, "text": i.text, "stage": i.stage, "last": i.stage == f.stages})
	}
	d := p.Decide(ctx, &facts.Document{}, Request{File: file, Context: map[string]any{"dockerfile": map[string]any{
		"instructions": about, "syntax": f.syntax, "problem": f.problem, "stages": f.stages,
	}}})
	for _, i := range f.instructions {
		if script, line, ok := i.script(); ok {
			d = together(d, build(p.Judge(ctx, Request{Language: string(facts.Shell), Code: []byte(script), File: file, Owner: "build"}), line))
		}
	}
	return d
}

// build takes findings about a script back to where it stands in the
// Dockerfile, and lowers those that are about files: they are the image's own.
func build(d sandbox.Decision, line int) sandbox.Decision {
	out := sandbox.Decision{Verdict: sandbox.Allow, Level: sandbox.Safe, PolicyRevision: d.PolicyRevision}
	for _, f := range d.Findings {
		if f.Line > 0 {
			f.Line += line - 1
		}
		if f.EndLine > 0 {
			f.EndLine += line - 1
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
	a.Findings = append(slices.Clone(a.Findings), b.Findings...)
	slices.SortStableFunc(a.Findings, func(x, y sandbox.Finding) int {
		if x.Severity != y.Severity {
			return int(y.Severity) - int(x.Severity)
		}
		return x.Line - y.Line
	})
	return a
}

// instruction is one line of a Dockerfile, with its continuations.
type instruction struct {
	op    string // in upper case
	line  int
	flags []string // --mount=…
	args  []string // words
	text  string   // all behind the flags
	stage int      // from 1; 0 is before the first FROM
	// shell is what runs it; docs are its heredocs.
	shell []string
	docs  []string
	// docLine is where the first heredoc begins.
	docLine int
}

type dockerfile struct {
	instructions []instruction
	syntax       string
	problem      string
	stages       int
}

var (
	directive = lazyregexp.New(`^#\s*([a-zA-Z]+)\s*=\s*(\S+)\s*$`)
	heredoc   = lazyregexp.New(`<<(-?)(["']?)([A-Za-z_][A-Za-z0-9_]*)["']?`)
	knownOps  = "ADD ARG CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL MAINTAINER ONBUILD RUN SHELL STOPSIGNAL USER VOLUME WORKDIR"
)

// parseDockerfile reads a Dockerfile as builders do: directives, continuation
// lines, comments within them, and heredocs. What it does not understand is a
// problem, which the rules ask about.
func parseDockerfile(source []byte) *dockerfile {
	f := &dockerfile{}
	if len(source) > mostDockerfile {
		f.problem = "it is longer than what is read"
		source = source[:mostDockerfile]
	}
	lines := strings.Split(strings.TrimPrefix(string(source), "\ufeff"), "\n")
	escape, directives, shell := `\`, true, []string{"/bin/sh", "-c"}
	for n := 0; n < len(lines); n++ {
		line := strings.TrimSpace(lines[n])
		if m := directive().FindStringSubmatch(line); m != nil && directives {
			switch strings.ToLower(m[1]) {
			case "syntax":
				f.syntax = m[2]
			case "escape":
				escape = m[2]
			}
			continue
		}
		directives = false
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		start := n + 1
		for strings.HasSuffix(line, escape) && n+1 < len(lines) {
			n++
			next := strings.TrimSpace(lines[n])
			if next == "" || strings.HasPrefix(next, "#") {
				next = escape // a comment within is passed over, and goes on
			}
			line = strings.TrimSuffix(line, escape) + "\n" + next
		}
		i := parseInstruction(strings.TrimSuffix(line, escape), start)
		if i.op == "RUN" || i.op == "COPY" || i.op == "ADD" {
			n = i.takeDocs(lines, n)
		}
		f.add(i, &shell)
	}
	return f
}

// add appends an instruction, and what an ONBUILD holds behind it.
func (f *dockerfile) add(i instruction, shell *[]string) {
	if !slices.Contains(strings.Fields(knownOps), i.op) {
		f.problem = fmt.Sprintf("line %d: %q is no instruction", i.line, i.op)
		return
	}
	if i.op == "FROM" {
		f.stages++
		*shell = []string{"/bin/sh", "-c"}
	}
	i.stage, i.shell = f.stages, *shell
	if i.op == "SHELL" {
		var list []string
		if json.Unmarshal([]byte(i.text), &list) == nil {
			*shell = list
		}
	}
	f.instructions = append(f.instructions, i)
	if i.op == "ONBUILD" {
		inner := parseInstruction(i.text, i.line)
		inner.docs, inner.docLine = i.docs, i.docLine
		if inner.op != "ONBUILD" {
			f.add(inner, shell)
		}
	}
}

func parseInstruction(text string, line int) instruction {
	op, rest, _ := strings.Cut(strings.TrimSpace(strings.Replace(text, "\t", " ", 1)), " ")
	if head, tail, ok := strings.Cut(op, "\n"); ok {
		op, rest = head, tail+" "+rest
	}
	i := instruction{op: strings.ToUpper(op), line: line}
	for {
		trimmed := strings.TrimLeft(rest, " \t\n")
		if !strings.HasPrefix(trimmed, "--") {
			break
		}
		end := strings.IndexAny(trimmed, " \t\n")
		if end < 0 {
			end = len(trimmed)
		}
		i.flags, rest = append(i.flags, trimmed[:end]), trimmed[end:]
	}
	i.text = rest
	var list []string
	if json.Unmarshal([]byte(strings.TrimSpace(rest)), &list) == nil && list != nil {
		i.args = list
	} else {
		i.args = strings.Fields(rest)
	}
	return i
}

// takeDocs reads the heredocs that an instruction begins, and returns the last
// line of them.
func (i *instruction) takeDocs(lines []string, n int) int {
	for _, m := range heredoc().FindAllStringSubmatch(i.text, -1) {
		var doc []string
		if i.docLine == 0 {
			i.docLine = n + 2
		}
		for n++; n < len(lines); n++ {
			line := lines[n]
			if m[1] == "-" {
				line = strings.TrimLeft(line, "\t")
			}
			if strings.TrimRight(line, "\r") == m[3] {
				break
			}
			doc = append(doc, line)
		}
		i.docs = append(i.docs, strings.Join(doc, "\n"))
	}
	return n
}

// script is what an instruction runs, as a shell script, and its line.
func (i *instruction) script() (string, int, bool) {
	text := i.text
	switch i.op {
	case "RUN", "CMD", "ENTRYPOINT":
	case "HEALTHCHECK":
		_, after, ok := strings.Cut(text, "CMD")
		if !ok {
			return "", 0, false
		}
		text = after
	default:
		return "", 0, false
	}
	var list []string
	if json.Unmarshal([]byte(strings.TrimSpace(text)), &list) == nil {
		if len(list) == 0 || i.op != "RUN" && len(list) == 1 {
			return "", 0, false // a program that waits for what it is given
		}
		words := make([]string, len(list))
		for n, w := range list {
			words[n] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		return strings.Join(words, " "), i.line, true
	}
	if len(i.docs) > 0 && strings.HasPrefix(strings.TrimSpace(text), "<<") && len(strings.Fields(text)) == 1 {
		return i.docs[0], i.docLine, true
	}
	// A continuation stays one, so that lines are what they are.
	text = strings.ReplaceAll(strings.TrimLeft(text, " \t"), "\n", "\\\n")
	for n, doc := range i.docs {
		m := heredoc().FindAllStringSubmatch(i.text, -1)[n]
		text += "\n" + doc + "\n" + m[3]
	}
	return text, i.line, true
}

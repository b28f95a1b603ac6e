// Package question shows what policy asks about to a person: all of it, fit for a
// terminal and for a client's form.
package question

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/caisson-dev/caisson/internal/shown"
	"github.com/caisson-dev/caisson/sandbox"
)

// Findings are those of a decision that ask or refuse, each with its line and its mend.
func Findings(d sandbox.Decision) string {
	var b strings.Builder
	for _, f := range d.Findings {
		if f.Verdict == sandbox.Allow {
			continue
		}
		where := f.File
		if where == "" {
			where = "<code>"
		}
		if f.Line > 0 {
			where += fmt.Sprintf(":%d:%d", f.Line, f.Column)
		}
		fmt.Fprintf(&b, "  %s: %s %s: %s\n", shown.Text(where), f.Severity, f.ID, shown.Text(f.Title))
		fmt.Fprintf(&b, "      | %s\n", shown.Text(f.Message))
		if len(f.Via) > 0 {
			fmt.Fprintf(&b, "      = via %s\n", shown.Text(strings.Join(f.Via, " → ")))
		}
		if f.Remediation != "" {
			fmt.Fprintf(&b, "      = %s\n", shown.Text(f.Remediation))
		}
	}
	return b.String()
}

// Text is a question as a person is shown it: all of it, with
// characters escaped that would act on a terminal.
func Text(a sandbox.Approval) string {
	var b strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "  %-9s %s\n", name, value)
		}
	}
	q := a.Question
	what := "a program wants to run"
	switch q.Kind {
	case "sandbox":
		what = "a sandbox is to be made"
	case "tool":
		what = "a program wants to call a tool of this host"
	}
	if q.Kind == sandbox.QuestionConnection {
		what = fmt.Sprintf("a program that runs wants to connect to %s port %d", shown.Text(q.Host), q.Port)
	}
	fmt.Fprintf(&b, "caisson: %s, and policy asks (%s)\n", what, a.Decision.Level)
	if q.Kind == sandbox.QuestionConnection {
		line("exec", a.Exec.Short())
	}
	words := make([]string, len(q.Command))
	for i, w := range q.Command {
		words[i] = Word(w)
	}
	line("command", strings.Join(words, " "))
	line("tool", shown.Text(q.Tool))
	line("arguments", shown.Text(string(q.Arguments)))
	line("language", shown.Text(q.Language))
	line("folder", shown.Text(q.Dir))
	for _, kv := range q.Env {
		line("variable", shown.Text(kv))
	}
	line("session", shown.Text(a.Session))
	line("user", shown.Text(q.User))
	line("image", shown.Text(q.Image))
	line("network", shown.Text(networkText(q)))
	line("input", shown.Text(q.Stdin))
	line("limits", limitsText(q))
	line("role", shown.Text(string(q.Role)))
	if q.Background {
		line("note", "it runs in the background")
	}
	for _, t := range q.Texts {
		name := t.Name
		if name == "" {
			name = "<code>"
		}
		fmt.Fprintf(&b, "--- %s (%s, %d bytes, sha256 %s)\n", shown.Text(name), shown.Text(t.Language), t.Size, t.SHA256)
		if t.Text == "" && t.Size > 0 {
			b.WriteString("      (no text)\n")
			continue
		}
		n := 0
		for text := range strings.SplitSeq(strings.TrimSuffix(t.Text, "\n"), "\n") {
			n++
			fmt.Fprintf(&b, "%5d | %s\n", n, shown.Code(text))
		}
	}
	if len(q.Plan) > 0 {
		fmt.Fprintf(&b, "--- what is asked of the engine\n%s\n", shown.Text(shortPlan(q.Plan)))
	}
	b.WriteString("--- why\n")
	b.WriteString(Findings(a.Decision))
	fmt.Fprintf(&b, "  question %s, until %s, digest %s\n", a.ID.Short(), a.Expires.Local().Format("15:04:05"), a.Digest)
	return b.String()
}

// Choices are the answers to a question, as its kind has them: yes for once, yes for
// longer, and no.
func Choices(a sandbox.Approval) string {
	switch {
	case a.Question.Kind != sandbox.QuestionConnection:
		return "run it? [o]nce, [a]lways this very program, [n]o"
	case a.Session == "":
		return "let it connect? [o]nce, [a]lways in this run, [n]o"
	}
	return "let it connect? [o]nce, [a]lways in this session, [n]o"
}

// networkText is what can be reached; "" where the question does not say.
func networkText(q sandbox.ApprovalQuestion) string {
	if q.Network.Mode == "" {
		return ""
	}
	return q.Network.String()
}

// limitsText is what bounds an exec; "" where the question is not about one.
func limitsText(q sandbox.ApprovalQuestion) string {
	l := q.Limits
	if l.Memory == 0 {
		return ""
	}
	ends := "no time limit"
	if q.Timeout > 0 {
		ends = q.Timeout.String()
	}
	return fmt.Sprintf("memory %s, %g CPUs, %d processes, workspace %s, %s", l.Memory, l.CPUs, l.PIDs, l.Workspace, ends)
}

// shortPlan is what is asked of the engine, with a digest in place of the filter of
// system calls: that is ten thousand bytes, the same for every sandbox, and the
// rules look through it.
func shortPlan(plan json.RawMessage) string {
	filter := regexp.MustCompile(`"seccomp=\{([^"\\]|\\.)*"`)
	return filter.ReplaceAllStringFunc(string(plan), func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return fmt.Sprintf(`"seccomp=(%d bytes, sha256 %x)"`, len(text), sum[:8])
	})
}

// Word shows a word of a command so that its bounds show.
func Word(w string) string {
	if w != "" && strings.Trim(w, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%") == "" {
		return w
	}
	return "'" + strings.ReplaceAll(shown.Text(w), "'", `'\''`) + "'"
}

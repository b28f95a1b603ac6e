package cli

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"regexp"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/caisson-dev/caisson/internal/shown"
	"github.com/caisson-dev/caisson/sandbox"
)

// approveFlag reads --approve.
type approveFlag sandbox.ApproveMode

// String is the flag's value.
func (a *approveFlag) String() string { return string(*a) }

// Type names the flag's type in the help.
func (a *approveFlag) Type() string { return "mode" }

// Set checks and keeps a value.
func (a *approveFlag) Set(s string) error {
	m := sandbox.ApproveMode(s)
	if err := m.Check(); err != nil {
		return err
	}
	*a = approveFlag(m)
	return nil
}

// printFindings tells, below the line of a refusal, every finding with its
// line and its mend.
func printFindings(w io.Writer, err error) {
	denied, ok := errors.AsType[*sandbox.DeniedError](err)
	if !ok {
		return
	}
	_, _ = io.WriteString(w, findingsText(denied.Decision)) // as in printError
}

// findingsText is all findings of a decision that refuse, or all of them.
func findingsText(d sandbox.Decision) string {
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
		fmt.Fprintf(&b, "  %s: %s %s: %s\n", visible(where), f.Severity, f.ID, visible(f.Title))
		fmt.Fprintf(&b, "      | %s\n", visible(f.Message))
		if len(f.Via) > 0 {
			fmt.Fprintf(&b, "      = via %s\n", visible(strings.Join(f.Via, " → ")))
		}
		if f.Remediation != "" {
			fmt.Fprintf(&b, "      = %s\n", visible(f.Remediation))
		}
	}
	return b.String()
}

// questionText is a question as a person is shown it: all of it, with
// characters escaped that would act on a terminal.
func questionText(a sandbox.Approval) string {
	var b strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "  %-9s %s\n", name, value)
		}
	}
	q := a.Question
	what := "a program wants to run"
	if q.Kind == "sandbox" {
		what = "a sandbox is to be made"
	}
	fmt.Fprintf(&b, "caisson: %s, and policy asks (%s)\n", what, a.Decision.Level)
	words := make([]string, len(q.Command))
	for i, w := range q.Command {
		words[i] = shellWord(w)
	}
	line("command", strings.Join(words, " "))
	line("language", visible(q.Language))
	line("folder", visible(q.Dir))
	for _, kv := range q.Env {
		line("variable", visible(kv))
	}
	line("session", visible(a.Session))
	line("user", visible(q.User))
	line("image", visible(q.Image))
	line("network", visible(networkText(q)))
	line("input", visible(q.Stdin))
	line("limits", limitsText(q))
	line("role", visible(string(q.Role)))
	if q.Background {
		line("note", "it runs in the background")
	}
	for _, t := range q.Texts {
		name := t.Name
		if name == "" {
			name = "<code>"
		}
		fmt.Fprintf(&b, "--- %s (%s, %d bytes, sha256 %s)\n", visible(name), visible(t.Language), t.Size, t.SHA256)
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
		fmt.Fprintf(&b, "--- what is asked of the engine\n%s\n", visible(shortPlan(q.Plan)))
	}
	b.WriteString("--- why\n")
	b.WriteString(findingsText(a.Decision))
	fmt.Fprintf(&b, "  question %s, until %s, digest %s\n", a.ID.Short(), a.Expires.Local().Format("15:04:05"), a.Digest)
	return b.String()
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

// shellWord shows a word of a command so that its bounds show.
func shellWord(w string) string {
	if w != "" && strings.Trim(w, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%") == "" {
		return w
	}
	return "'" + strings.ReplaceAll(visible(w), "'", `'\''`) + "'"
}

// userName names whoever answers.
func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return fmt.Sprintf("uid %d", os.Getuid())
}

// terminal is where a person is asked, one question at a time.
type terminal struct {
	run context.Context // of the command: once it is over, that is a no
	mu  sync.Mutex      // held while a question stands there
	tty *os.File
}

// openTerminal opens the terminal where standard error is one: what is asked
// must be seen. An answer is read from the terminal itself, since standard input
// may be the program's. nil without one.
func openTerminal(ctx context.Context, cfg Config) *terminal {
	errs, ok := cfg.IO.Err.(*os.File)
	if !ok || !isTerminal(errs) {
		return nil
	}
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	return &terminal{run: ctx, tty: os.NewFile(uintptr(fd), "/dev/tty")}
}

func (t *terminal) close() {
	if t != nil {
		_ = t.tty.Close() // nothing of ours is unwritten
	}
}

func isTerminal(f *os.File) bool {
	return term.IsTerminal(int(f.Fd()))
}

// ask shows a question and reads the answer. What was typed before the question
// stood there does not answer it.
func (t *terminal) ask(ctx context.Context, a sandbox.Approval) (sandbox.ApprovalAnswer, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = t.flush()                          // where it cannot, the prompt asks again
	_ = t.tty.SetReadDeadline(time.Time{}) // as the next
	// Who still reads must not take what is typed for the program.
	defer func() { _ = t.tty.SetReadDeadline(time.Unix(1, 0)) }() // nor does this fail
	return answerFrom(ctx, t.run, t.tty, t.tty, a)
}

// flush drops what was typed and not read.
func (t *terminal) flush() error {
	raw, err := t.tty.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Control(func(fd uintptr) { flushInput(int(fd)) })
}

type typedLine struct {
	text string
	err  error
}

// answerFrom asks until there is a clear answer. The end of the run, as by
// Ctrl-C, is a no. Another's answer, by ctx, ends it.
func answerFrom(ctx, run context.Context, in io.Reader, out io.Writer, a sandbox.Approval) (sandbox.ApprovalAnswer, error) {
	ans := sandbox.ApprovalAnswer{ID: a.ID, By: userName(), Via: "terminal"}
	if _, err := io.WriteString(out, questionText(a)); err != nil {
		return ans, err
	}
	r, lines := bufio.NewReader(in), make(chan typedLine, 1)
	for {
		if _, err := io.WriteString(out, "caisson: run it? [o]nce, [a]lways this very program, [n]o: "); err != nil {
			return ans, err
		}
		go func() { // for each question one line: what is typed behind the answer is not ours
			text, err := r.ReadString('\n')
			lines <- typedLine{text, err}
		}()
		select {
		case line := <-lines:
			if line.err != nil {
				return ans, errors.New("the terminal was closed")
			}
			switch strings.ToLower(strings.TrimSpace(line.text)) {
			case "o", "once", "y", "yes":
				ans.Approve = true
				return ans, nil
			case "a", "always":
				ans.Approve, ans.Always = true, true
				return ans, nil
			case "n", "no":
				return ans, nil
			}
		case <-ctx.Done():
			if run.Err() != nil {
				_, _ = io.WriteString(out, "\ncaisson: no: it does not run\n") // as in printError
				ans.Note = "interrupted"
				return ans, nil
			}
			_, _ = io.WriteString(out, "\ncaisson: it was answered elsewhere, or its time is over\n") // as in printError
			return ans, context.Cause(ctx)
		}
	}
}

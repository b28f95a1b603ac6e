package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/caisson-dev/caisson/internal/question"
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

// verdictFlag reads ask or deny.
type verdictFlag sandbox.Verdict

// String is the flag's value.
func (v *verdictFlag) String() string { return string(*v) }

// Type names the flag's type in the help.
func (v *verdictFlag) Type() string { return "verdict" }

// Set checks and keeps a value.
func (v *verdictFlag) Set(s string) error {
	if s != string(sandbox.Ask) && s != string(sandbox.Deny) {
		return sandbox.Errorf(sandbox.Invalid, "%q is neither ask nor deny", s)
	}
	*v = verdictFlag(s)
	return nil
}

// printFindings tells, below the line of a refusal, every finding with its
// line and its mend.
func printFindings(w io.Writer, err error) {
	denied, ok := errors.AsType[*sandbox.DeniedError](err)
	if !ok {
		return
	}
	_, _ = io.WriteString(w, question.Findings(denied.Decision)) // as in printError
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
	if _, err := io.WriteString(out, question.Text(a)); err != nil {
		return ans, err
	}
	r, lines := bufio.NewReader(in), make(chan typedLine, 1)
	for {
		if _, err := io.WriteString(out, "caisson: "+question.Choices(a)+": "); err != nil {
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

package swerex

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/internal/fastapi"
	"github.com/caisson-dev/caisson/internal/lazyregexp"
	"github.com/caisson-dev/caisson/sandbox"
)

// shell is what is known of one of theirs. One action at a time is at it: the next
// waits for its turn, as their clients are used to.
type shell struct {
	name string        // ours
	turn chan struct{} // has a token while an action is at it

	mu     sync.Mutex
	dir    string             // where it is; "" is not known
	cancel context.CancelFunc // of the text that runs
	term   *terminal          // of an interactive program; nil is none
}

// take waits for the shell's turn.
func (s *shell) take(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *shell) give() { <-s.turn }

// leave ends what goes on in it between requests.
func (s *shell) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.term != nil {
		s.term.leave()
		s.term = nil
	}
}

// createRequest asks for a shell, which they call a session.
type createRequest struct {
	Session        string   `json:"session"`
	StartupSource  []string `json:"startup_source"`
	StartupTimeout float64  `json:"startup_timeout"`
}

// shellOutput is what was put out while it began.
type shellOutput struct {
	Output string `json:"output"`
	Type   string `json:"session_type"`
}

// leastStartup is the least time for what a shell sources, whose clients ask for one
// second unless told otherwise.
const leastStartup = 10 * time.Second

func (w *Wire) createSession(ctx context.Context, rt *runtime, in createRequest) (shellOutput, error) {
	if err := w.ready(ctx, rt); err != nil {
		return shellOutput{}, err
	}
	name := cmp.Or(in.Session, "default")
	s := rt.shell(name)
	_, err := w.cfg.Service.OpenShell(ctx, rt.session, s.name, sandbox.ShellOptions{Kind: sandbox.ShellBash, Labels: made})
	if errors.Is(err, sandbox.Conflict) {
		return shellOutput{}, raise(sessionExists, "session %s already exists", name)
	}
	if err != nil {
		rt.forget(name)
		return shellOutput{}, err
	}
	out := shellOutput{Type: "bash"}
	if len(in.StartupSource) == 0 {
		return out, nil
	}
	var text strings.Builder
	for _, file := range in.StartupSource {
		fmt.Fprintf(&text, "source %s\n", quote(file))
	}
	limit := max(leastStartup, seconds(in.StartupTimeout))
	_, out.Output, err = w.runText(ctx, rt, s, text.String(), limit)
	return out, err
}

// closeRequest names a shell to close.
type closeRequest struct {
	Session string `json:"session"`
}

// closed is the answer to it.
type closed struct {
	Type string `json:"session_type"`
}

func (w *Wire) closeSession(ctx context.Context, rt *runtime, in closeRequest) (closed, error) {
	name := cmp.Or(in.Session, "default")
	s := rt.forget(name)
	ours := shellName(name)
	if s != nil {
		s.leave()
	}
	err := w.cfg.Service.CloseShell(ctx, rt.session, ours)
	if errors.Is(err, sandbox.NotFound) {
		return closed{}, raise(noSession, "session '%s' does not exist", name)
	}
	return closed{Type: "bash"}, err
}

// action is what a shell is to do.
type action struct {
	Kind        string   `json:"action_type"` // "bash", which "" is, or "bash_interrupt"
	Command     string   `json:"command"`
	Session     string   `json:"session"`
	Timeout     *float64 `json:"timeout"`
	Interactive bool     `json:"is_interactive_command"`
	Quit        bool     `json:"is_interactive_quit"`
	Check       string   `json:"check"` // "raise", which "" is, "silent" or "ignore"
	ErrorMsg    string   `json:"error_msg"`
	Expect      []string `json:"expect"`
	Retries     *int     `json:"n_retry"`
}

func (a action) faults() (faults []fastapi.Fault) {
	switch a.Kind {
	case "", "bash", "bash_interrupt":
	default:
		faults = append(faults, fastapi.At("union_tag_invalid", "Input should be bash or bash_interrupt", "action_type"))
	}
	switch a.Check {
	case "", "raise", "silent", "ignore":
	default:
		faults = append(faults, fastapi.At("literal_error", "Input should be silent, raise or ignore", "check"))
	}
	if a.Interactive && a.Quit {
		faults = append(faults, fastapi.At("value_error", "a command that quits is not one that stays", "is_interactive_quit"))
	}
	return faults
}

// observation is what came of it.
type observation struct {
	Output  string `json:"output"`
	Code    *int   `json:"exit_code"`
	Failure string `json:"failure_reason"`
	Expect  string `json:"expect_string"`
	Type    string `json:"session_type"`
}

func (w *Wire) runInSession(ctx context.Context, rt *runtime, a action) (observation, error) {
	name := cmp.Or(a.Session, "default")
	s := rt.shell(name)
	var out observation
	var err error
	if a.Kind == "bash_interrupt" {
		out, err = w.interrupt(ctx, rt, s, a)
	} else {
		out, err = w.act(ctx, rt, s, a)
	}
	out.Type = "bash"
	if errors.Is(err, sandbox.NotFound) {
		if gone := rt.forget(name); gone != nil {
			gone.leave()
		}
		err = raise(noSession, "session '%s' does not exist", name)
	}
	return out, err
}

// act carries out an action that is no interrupt.
func (w *Wire) act(ctx context.Context, rt *runtime, s *shell, a action) (observation, error) {
	if err := s.take(ctx); err != nil {
		return observation{}, err
	}
	defer s.give()
	s.mu.Lock()
	term := s.term
	s.mu.Unlock()
	switch {
	case a.Interactive || a.Quit && term != nil:
		return w.converse(ctx, rt, s, a)
	case term != nil:
		return observation{}, raise(anyError, "an interactive program runs in this session; end it with is_interactive_quit, or interrupt it")
	}
	return w.plain(ctx, rt, s, a)
}

// plain runs a command to its end.
func (w *Wire) plain(ctx context.Context, rt *runtime, s *shell, a action) (observation, error) {
	out := observation{}
	zero := 0
	if blank(a.Command) {
		if _, err := w.find(ctx, rt, s); err != nil {
			return out, err
		}
		if a.Check != "ignore" {
			out.Code = &zero
		}
		return out, nil
	}
	// As one command, so that what has a wrong syntax does not run up to there.
	res, output, err := w.runText(ctx, rt, s, "{ "+a.Command+"\n}", limitOf(a.Timeout))
	if why, is := unparsed(err); is {
		return out, syntaxError(a.Command, w.asBash(ctx, a.Command, why))
	}
	if err != nil {
		return out, err
	}
	switch {
	case res.Shell != nil && res.Shell.Ended != "":
		return out, raise(shellEnded, "the shell has ended: %s; its output: %q", res.Shell.Ended, output)
	case res.Reason == sandbox.ReasonTimeout:
		return out, raise(commandTimeout, "timeout after %g seconds while running command %q; its output so far: %q", *a.Timeout, a.Command, output)
	case res.Code == 2 && len(res.Stdout) == 0 && badSyntax().Match(res.Stderr):
		return out, syntaxError(a.Command, strings.ReplaceAll(text(res.Stderr), "bash: eval: ", "bash: "))
	case res.Code != 0 && (a.Check == "" || a.Check == "raise"):
		message := fmt.Sprintf("Command %q failed with exit code %d. Its output: %q", a.Command, res.Code, output)
		if a.ErrorMsg != "" {
			message = a.ErrorMsg + ": " + message
		}
		return out, raise(nonZero, "%s", message)
	}
	out.Output = output
	if a.Check != "ignore" {
		out.Code = &res.Code
	}
	_, _, out.Expect = firstMatch([]byte(output), patterns(a.Expect))
	return out, nil
}

// find says whether a shell is open.
func (w *Wire) find(ctx context.Context, rt *runtime, s *shell) (sandbox.Shell, error) {
	list, err := w.cfg.Service.ListShells(ctx, rt.session)
	if err != nil {
		return sandbox.Shell{}, err
	}
	for _, open := range list {
		if open.Name == s.name {
			return open, nil
		}
	}
	return sandbox.Shell{}, sandbox.Errorf(sandbox.NotFound, "no shell %s", s.name)
}

// ruleUnparsed is that of texts which the policy cannot read.
const ruleUnparsed = "SBX-EV-0002"

// unparsed reports whether a command was refused because it does not parse, and why.
func unparsed(err error) (why string, is bool) {
	denied, ok := errors.AsType[*sandbox.DeniedError](err)
	if !ok {
		return "", false
	}
	return whyUnparsed(denied.Decision)
}

func whyUnparsed(d sandbox.Decision) (why string, is bool) {
	i := slices.IndexFunc(d.Findings, func(f sandbox.Finding) bool { return f.ID == ruleUnparsed })
	if i < 0 {
		return "", false
	}
	return d.Findings[i].Message, true
}

// asBash says why a command does not parse in the form of bash -n, which agents know.
// why is of the group that it was run as: where it does not parse without that too, the
// places are its own.
func (w *Wire) asBash(ctx context.Context, command, why string) string {
	if d, err := w.cfg.Service.CheckCode(ctx, "shell", []byte(command), ""); err == nil {
		if own, is := whyUnparsed(d); is {
			why = own
		}
	}
	if m := placed().FindStringSubmatch(why); m != nil {
		return "bash: line " + m[1] + ": syntax error: " + m[2] + "\n"
	}
	return "bash: syntax error: " + why + "\n"
}

// placed is what the policy says of a text that does not parse: line, column and why.
var placed = lazyregexp.New(`^not a shell script: (\d+):\d+: (.*)`)

// syntaxError is SWE-ReX's own: agents show its stderr.
func syntaxError(command, stderr string) error {
	return &raised{
		class: wrongSyntax, message: fmt.Sprintf("Error (exit code 2) while checking bash command \n%q\n---- Stderr ----\n%s\n---- Stdout ----\n", command, stderr),
		extra: map[string]any{"bash_stdout": "", "bash_stderr": stderr},
	}
}

var badSyntax = lazyregexp.New(`^bash: eval: line \d+: (syntax error|unexpected EOF)`)

// blank reports whether a command has nothing to run: bash takes no empty group.
func blank(command string) bool {
	for line := range strings.Lines(command) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return false
		}
	}
	return true
}

// runText runs a text in a shell. Its output is that of both streams, as it came.
func (w *Wire) runText(ctx context.Context, rt *runtime, s *shell, code string, limit time.Duration) (sandbox.Result, string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	s.cancel = cancel
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.cancel = nil
	}()
	both := &merged{}
	run := sandbox.ShellRun{Text: code, Labels: made, ExecLimits: sandbox.ExecLimits{Timeout: sandbox.Duration(limit)}, Approve: sandbox.ApproveNever}
	res, err := w.cfg.Service.RunShell(ctx, rt.session, s.name, run, sandbox.Streams{Stdout: both, Stderr: both})
	if err != nil {
		return res, "", err
	}
	if res.Shell != nil {
		s.mu.Lock()
		s.dir = res.Shell.Dir
		s.mu.Unlock()
	}
	return res, text(both.b.Bytes()), nil
}

// merged takes what comes of both streams, as a terminal would.
type merged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements [io.Writer].
func (m *merged) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.b.Write(p)
}

// forever is the time of what has no limit.
const forever = 24 * time.Hour

func limitOf(given *float64) time.Duration {
	if given == nil {
		return forever
	}
	return max(seconds(*given), time.Millisecond)
}

func seconds(s float64) time.Duration {
	return time.Duration(min(s, forever.Seconds()) * float64(time.Second))
}

// quote makes a word of a shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

package swerex

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/caisson-dev/caisson/internal/lazyregexp"
	"github.com/caisson-dev/caisson/sandbox"
)

// terminal is an interactive program, whose prompts hand it back to its client.
type terminal struct {
	id     sandbox.ID
	in     *io.PipeWriter
	cancel context.CancelFunc
	gone   chan struct{} // closed once nobody follows it any more

	mu    sync.Mutex
	shown []byte        // since something was typed last
	more  chan struct{} // closed, and made anew, when more has come
}

// mostShown bounds what is kept of what a program shows: the newest.
const mostShown = 4 << 20

// Write implements [io.Writer]: it is what the terminal shows.
func (t *terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shown = append(t.shown, p...)
	if extra := len(t.shown) - mostShown; extra > 0 {
		t.shown = append([]byte{}, t.shown[extra:]...)
	}
	close(t.more)
	t.more = make(chan struct{})
	return len(p), nil
}

// seen is what was shown, and a channel that is closed when there is more.
func (t *terminal) seen() ([]byte, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.shown, t.more
}

// drop takes the first bytes of what was shown as read.
func (t *terminal) drop(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shown = t.shown[min(n, len(t.shown)):]
}

// ended reports whether the program has ended.
func (t *terminal) ended() bool {
	select {
	case <-t.gone:
		return true
	default:
		return false
	}
}

// leave stops following it.
func (t *terminal) leave() {
	t.cancel()
	_ = t.in.Close() // never fails
}

// launch starts a program in a terminal, in the folder where the shell is.
func (w *Wire) launch(ctx context.Context, rt *runtime, s *shell, command string) (*terminal, error) {
	if _, err := w.find(ctx, rt, s); err != nil {
		return nil, err
	}
	s.mu.Lock()
	dir := s.dir
	s.mu.Unlock()
	rec, err := w.cfg.Service.StartExec(ctx, rt.session, sandbox.Run{
		Command: program(command), Dir: dir, Terminal: &sandbox.TerminalSize{Rows: 24, Cols: 200}, Labels: made, Approve: sandbox.ApproveNever,
	}, sandbox.Local{})
	if err != nil {
		return nil, err
	}
	r, in := io.Pipe()
	following, cancel := context.WithCancel(sandbox.WithCaller(w.ctx, sandbox.CallerFrom(ctx)))
	t := &terminal{id: rec.ID, in: in, cancel: cancel, gone: make(chan struct{}), more: make(chan struct{})}
	w.going.Go(func() {
		defer close(t.gone)
		defer cancel()
		// How it ends is told by that alone: what clients ask for is what it shows.
		_, _ = w.cfg.Service.AttachTerminal(following, rt.session, t.id, sandbox.Streams{Stdin: r, Stdout: t})
		_ = r.Close() // never fails
	})
	return t, nil
}

var plainWords = lazyregexp.New(`^[A-Za-z0-9_./:@%+,-]+( +[A-Za-z0-9_./:@%+,=-]+)*$`)

// program is what runs a command: where that is plain words, these, for which the
// policy need not ask what a shell would make of them.
func program(command string) []string {
	if command = strings.TrimSpace(command); plainWords().MatchString(command) {
		return strings.Fields(command)
	}
	return []string{"bash", "-c", command}
}

// converse types a line into an interactive program, or starts it, and waits for what
// hands it back: one of the patterns, or its end.
func (w *Wire) converse(ctx context.Context, rt *runtime, s *shell, a action) (observation, error) {
	s.mu.Lock()
	t := s.term
	s.mu.Unlock()
	limit := limitOf(a.Timeout)
	if t == nil {
		var err error
		if t, err = w.launch(ctx, rt, s, a.Command); err != nil {
			return observation{}, err
		}
		s.mu.Lock()
		s.term = t
		s.mu.Unlock()
	} else {
		t.drop(mostShown)
		if err := t.say(ctx, a.Command+"\n", limit); err != nil {
			return observation{}, raise(commandTimeout, "timeout after %s while typing %q: %v", limit, a.Command, err)
		}
	}
	shown, matched, err := t.await(ctx, a.Expect, limit)
	if t.ended() {
		s.mu.Lock()
		s.term = nil
		s.mu.Unlock()
	}
	if err != nil {
		return observation{}, raise(commandTimeout, "timeout after %s while running command %q; its output so far: %q", limit, a.Command, plainText(shown))
	}
	zero := 0
	output := plainText(shown)
	if !a.Quit {
		output = strings.TrimPrefix(strings.TrimLeft(output, " \r\n\t"), a.Command)
		output = strings.TrimSpace(output)
	}
	return observation{Output: output, Code: &zero, Expect: matched}, nil
}

// say types, as far as the program takes it in time.
func (t *terminal) say(ctx context.Context, line string, limit time.Duration) error {
	done := make(chan error, 1)
	go func() {
		_, err := io.WriteString(t.in, line)
		done <- err
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-done:
		if errors.Is(err, io.ErrClosedPipe) {
			return nil // it has ended, which await tells
		}
		return err
	case <-t.gone:
		return nil
	case <-timer.C:
		return context.DeadlineExceeded
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// await waits for a pattern or the program's end, and returns what was shown before.
// What it waits for is then read.
func (t *terminal) await(ctx context.Context, expect []string, limit time.Duration) (before []byte, matched string, err error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	wanted := patterns(expect)
	for {
		over := t.ended() // before what was shown is read: nothing comes after
		shown, more := t.seen()
		if from, to, which := firstMatch(shown, wanted); which != "" {
			before = append([]byte{}, shown[:from]...)
			t.drop(to)
			return before, which, nil
		}
		if over {
			return shown, "", nil
		}
		select {
		case <-more:
		case <-t.gone:
		case <-timer.C:
			return shown, "", context.DeadlineExceeded
		case <-ctx.Done():
			return shown, "", context.Cause(ctx)
		}
	}
}

// interrupt ends what runs in a shell: a text as Ctrl-C does, and an interactive
// program by Ctrl-C too or, where that does not bring back a prompt, for good.
func (w *Wire) interrupt(ctx context.Context, rt *runtime, s *shell, a action) (observation, error) {
	zero := 0
	out := observation{Code: &zero}
	s.mu.Lock()
	t, cancel := s.term, s.cancel
	s.mu.Unlock()
	if t == nil {
		if cancel != nil {
			cancel()
		}
		if err := s.take(ctx); err != nil { // until it has ended
			return observation{}, err
		}
		defer s.give()
		_, err := w.find(ctx, rt, s)
		return out, err
	}
	limit, tries := 200*time.Millisecond, 3
	if a.Timeout != nil {
		limit = limitOf(a.Timeout)
	}
	if a.Retries != nil {
		tries = max(*a.Retries, 0)
	}
	var all []byte
	for range tries {
		t.drop(mostShown)
		if err := t.say(ctx, "\x03", limit); err != nil {
			continue
		}
		shown, matched, err := t.await(ctx, a.Expect, limit)
		all = append(all, shown...)
		if err == nil {
			out.Expect = matched
			break
		}
		if ctx.Err() != nil {
			return out, err
		}
	}
	if out.Expect == "" && !t.ended() {
		if err := w.cfg.Service.KillExec(ctx, rt.session, t.id); err != nil && !errors.Is(err, sandbox.NotFound) {
			return out, err
		}
		select {
		case <-t.gone:
		case <-ctx.Done():
			return out, context.Cause(ctx)
		}
	}
	if t.ended() {
		s.mu.Lock()
		s.term = nil
		s.mu.Unlock()
	}
	out.Output = strings.TrimSpace(plainText(all))
	return out, nil
}

// patterns are those that a client expects, which are regular expressions of Python's.
// What is none of ours is taken as it stands.
func patterns(expect []string) map[string]*regexp.Regexp {
	all := map[string]*regexp.Regexp{}
	for _, e := range expect {
		re, err := regexp.Compile(e)
		if err != nil {
			re = regexp.MustCompile(regexp.QuoteMeta(e))
		}
		all[e] = re
	}
	return all
}

// firstMatch finds the pattern that matches first; which is "" where none does.
func firstMatch(b []byte, wanted map[string]*regexp.Regexp) (from, to int, which string) {
	for text, re := range wanted {
		at := re.FindIndex(b)
		if at != nil && (which == "" || at[0] < from) && text != "" {
			from, to, which = at[0], at[1], text
		}
	}
	return from, to, which
}

var escapes = lazyregexp.New(`\x1B[@-_][0-?]*[ -/]*[@-~]`)

// plainText is what a terminal has shown, as text.
func plainText(b []byte) string {
	return strings.ReplaceAll(escapes().ReplaceAllString(text(b), ""), "\r\n", "\n")
}

// text is UTF-8, with other bytes as Python writes them by backslashreplace.
func text(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	var out strings.Builder
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		if r == utf8.RuneError && size == 1 {
			fmt.Fprintf(&out, `\x%02x`, b[0])
		} else {
			out.WriteRune(r)
		}
		b = b[size:]
	}
	return out.String()
}

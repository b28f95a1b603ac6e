package client

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/agent/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// ShellText is a text for a shell, which a [Command] with it runs. The shell is an exec
// that was started with [Command].Shell.
type ShellText struct {
	Shell sandbox.ID
	Text  string
	Runs  int // that the caller knows of: see [MovedError]
}

// Held is what a shell is known to hold, as its agent says.
type Held struct {
	Runs   int
	Dir    string
	Texts  []string // of its runs, the oldest first
	Forgot bool     // there were more
	size   int      // of Texts, with an end each; 0 is that nobody has counted
}

// MovedError says that a shell has run other texts than the caller knows of, and
// that nothing has run now.
type MovedError struct{ Held Held }

// Error names how many.
func (e *MovedError) Error() string {
	return fmt.Sprintf("the shell has run %d texts meanwhile", e.Held.Runs)
}

// shellPatience is what a run in a shell may take beyond its timeout: it is
// interrupted, then killed, and its shell waited for.
const shellPatience = 3 * time.Second

// Remember adds a text that has run. The result takes h's place: nothing is to be added to
// that once more.
func (h Held) Remember(text, dir string) Held {
	if h.size == 0 {
		for _, t := range h.Texts {
			h.size += len(t) + 1
		}
	}
	h.Runs++
	h.Texts, h.size = append(h.Texts, text), h.size+len(text)+1
	if dir != "" {
		h.Dir = dir
	}
	for h.size > wire.MaxHeld {
		h.size -= len(h.Texts[0]) + 1
		h.Texts, h.Forgot = h.Texts[1:], true
	}
	return h
}

func shellRequest(cmd Command) *wire.Shell {
	return &wire.Shell{
		ID: string(cmd.ID), Shell: string(cmd.In.Shell), Text: cmd.In.Text, Stdin: cmd.Stdin != nil, TimeoutMS: ceilMS(cmd.Timeout),
		MaxOutput: int64(cmd.MaxOutput), Track: cmd.Track, Late: cmd.Late, Runs: cmd.In.Runs,
	}
}

// moved reads a Reply in place of a start. The agent may lie: it is bounded.
func moved(f wire.Frame) error {
	var r wire.Reply
	if err := f.Message(&r); err != nil {
		return broken("run in the shell", err)
	}
	h := r.Held
	if h == nil || h.Runs < 0 || len(h.Texts) > h.Runs || !path.IsAbs(h.Dir) || strings.IndexByte(h.Dir, 0) >= 0 {
		return broken("run in the shell", fmt.Errorf("%w: what a shell holds", wire.ErrFrame))
	}
	return &MovedError{Held{Runs: h.Runs, Dir: h.Dir, Texts: h.Texts, Forgot: h.Forgot}}
}

// dirOf is the folder that an agent tells of, "" where that is none.
func dirOf(end *wire.End) string {
	if !path.IsAbs(end.Dir) || len(end.Dir) > 4096 || strings.IndexByte(end.Dir, 0) >= 0 {
		return ""
	}
	return path.Clean(end.Dir)
}

// OpenShell starts a shell: a background exec that takes texts until it ends.
// Its answers are those of [Client.Start].
func (c *Client) OpenShell(ctx context.Context, cmd Command) (*Outcome, error) {
	cmd.Later, cmd.Track = true, false
	_, never, err := c.Start(ctx, cmd)
	return never, err
}

// Held asks what a shell is known to hold. Errors: NotFound.
func (c *Client) Held(ctx context.Context, shell sandbox.ID) (Held, error) {
	_, err := c.Run(ctx, Command{In: &ShellText{Shell: shell, Runs: -1}})
	if moved, ok := errors.AsType[*MovedError](err); ok {
		return moved.Held, nil
	}
	if err == nil {
		err = broken("ask a shell", fmt.Errorf("%w: it ran what nobody asked for", wire.ErrFrame))
	}
	return Held{}, err
}

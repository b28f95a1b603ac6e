package swerex

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/internal/fastapi"
	"github.com/caisson-dev/caisson/sandbox"
)

// command asks for a program beside all shells.
type command struct {
	Command  json.RawMessage   `json:"command"` // a text or a list of words
	Timeout  *float64          `json:"timeout"`
	Shell    bool              `json:"shell"`
	Check    bool              `json:"check"`
	ErrorMsg string            `json:"error_msg"`
	Env      map[string]string `json:"env"`
	Cwd      string            `json:"cwd"`
	Merge    bool              `json:"merge_output_streams"`
}

// argv is what runs, as Python's subprocess has it.
func (c command) argv() ([]string, bool) {
	var one string
	var words []string
	if json.Unmarshal(c.Command, &one) == nil {
		words = []string{one}
	} else if json.Unmarshal(c.Command, &words) != nil || len(words) == 0 {
		return nil, false
	}
	if c.Shell {
		words = append([]string{"sh", "-c"}, words...)
	}
	return words, words[0] != ""
}

func (c command) faults() []fastapi.Fault {
	if _, ok := c.argv(); !ok {
		return []fastapi.Fault{fastapi.At("type_error", "Input should be a command or a list of words", "command")}
	}
	return nil
}

// commandOutput is what came of it.
type commandOutput struct {
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
	Code   *int   `json:"exit_code"`
}

func (w *Wire) execute(ctx context.Context, rt *runtime, in command) (commandOutput, error) {
	if err := w.ready(ctx, rt); err != nil {
		return commandOutput{}, err
	}
	argv, _ := in.argv()
	limit := limitOf(in.Timeout)
	run := sandbox.Run{
		Command: argv, Dir: in.Cwd, ExecLimits: sandbox.ExecLimits{Timeout: sandbox.Duration(limit), KeepOutput: keptOutput}, Labels: made, Approve: sandbox.ApproveNever,
	}
	for _, name := range slices.Sorted(maps.Keys(in.Env)) {
		run.Env = append(run.Env, name+"="+in.Env[name])
	}
	both, streams := &merged{}, sandbox.Streams{}
	if in.Merge {
		streams.Stdout, streams.Stderr = both, both
	}
	res, err := w.cfg.Service.Exec(ctx, rt.session, run, streams)
	if err != nil {
		return commandOutput{}, err
	}
	out := commandOutput{Stdout: text(res.Stdout), Stderr: text(res.Stderr)}
	if in.Merge {
		out.Stdout, out.Stderr = text(both.b.Bytes()), ""
	}
	code := res.Code
	if res.Signal != "" && code > 128 {
		code = 128 - code // as Python's subprocess tells of signals
	}
	out.Code = &code
	shown := strings.Join(argv, " ")
	switch {
	case res.Reason == sandbox.ReasonTimeout:
		return out, raise(commandTimeout, "timeout of %s exceeded while running %q", limit, shown)
	case res.Code == 127 && !in.Shell && strings.HasPrefix(string(res.Stderr), "caisson: "):
		return out, raise(fileNotFound, "[Errno 2] No such file or directory: '%s'", argv[0])
	case in.Check && code != 0:
		message := fmt.Sprintf("Command %q failed with exit code %d. Stdout: %q, stderr: %q", shown, code, out.Stdout, out.Stderr)
		if in.ErrorMsg != "" {
			message = in.ErrorMsg + ": " + message
		}
		return out, raise(nonZero, "%s", message)
	}
	return out, nil
}

// keptOutput is how much of each stream of a command is told.
const keptOutput = 64 * sandbox.MiB

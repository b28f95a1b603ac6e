package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

// auto asks for whatever runtime works here.
const auto = "auto"

// unwalled is the runtime that isolates nothing.
const unwalled = "process"

// warnUnwalled tells who asked for it what that means, before anything runs.
func warnUnwalled(cfg Config, runtime string) {
	if runtime == unwalled {
		_, _ = fmt.Fprintln(cfg.IO.Err, "caisson: the runtime process isolates nothing: programs have this host's files and network; for trusted code alone") // as in printError
	}
}

// report prints what came of the run and turns it into the exit code.
func (o *runOptions) report(cfg Config, res sandbox.Result, total time.Duration) error {
	if o.json {
		enc := json.NewEncoder(cfg.IO.Out)
		enc.SetEscapeHTML(false)
		var what any = res
		if o.run.Program {
			what = res.Report()
		}
		if err := enc.Encode(what); err != nil {
			return fmt.Errorf("print the result: %w", err)
		}
		return exitOr(codeOf(res))
	}
	if p := res.Program; p != nil && p.Success && string(p.Value) != "null" {
		_, _ = fmt.Fprintf(cfg.IO.Out, "%s\n", p.Value) // as in printError
	} else if p != nil && !p.Success && res.Code == 0 {
		_, _ = fmt.Fprintln(cfg.IO.Err, "caisson: "+visible(p.Error.Message)) // as in printError
	}
	if o.run.Runtime == auto && res.Runtime != "" {
		line := "caisson: auto chose the runtime " + res.Runtime
		if len(res.NotEnforced) > 0 {
			line += ", where nothing limits " + strings.Join(res.NotEnforced, ", ")
		}
		_, _ = fmt.Fprintln(cfg.IO.Err, line) // as in printError
	}
	if res.Replaced {
		_, _ = fmt.Fprintln(cfg.IO.Err, "caisson: the sandbox had ended: this ran in a new one") // as in printError
	}
	if line := o.explainEnd(res); line != "" {
		_, _ = fmt.Fprintln(cfg.IO.Err, "caisson: "+line) // as in printError
	}
	if res.ChangesError != "" {
		_, _ = fmt.Fprintln(cfg.IO.Err, "caisson: not all that it changed is known: "+oneLine(res.ChangesError, 300)) // as in printError
	}
	o.reportRefused(cfg, res)
	if o.tree != nil {
		o.tree.conclude(res)
	}
	o.reportArtifacts(cfg, res)
	if o.run.Keep && res.Code != 0 && res.Sandbox != "" {
		_, _ = fmt.Fprintf(cfg.IO.Err, "caisson: kept: container caisson-%s; look with docker, and remove it with: caisson gc --kept\n", res.Sandbox) // as in printError
	}
	if o.summary {
		u := res.Usage
		_, _ = fmt.Fprintf(cfg.IO.Err, "caisson: exit code %d (%s), %s in all, program %s, cpu %s, memory %s, %s\n", res.Code, res.Reason,
			total.Round(time.Millisecond), res.Duration.Round(100*time.Microsecond), u.CPU.Round(100*time.Microsecond), u.PeakMemory.Human(),
			plural(u.PeakProcesses, "process", "processes"))
	}
	return exitOr(codeOf(res))
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// codeOf is a run's exit code, 1 where it ended well and was to return a value that is
// not to be had.
func codeOf(res sandbox.Result) int {
	if res.Code == 0 && res.Program != nil && !res.Program.Success {
		return 1
	}
	return res.Code
}

func exitOr(code int) error {
	if code == 0 {
		return nil
	}
	return exitCode(code)
}

// explainEnd is one line on an end that the program's own output does not
// explain, with what to do about it. The limits of an exec in a session are the
// session's, and no flag of its own changes them.
func (o *runOptions) explainEnd(r sandbox.Result) string {
	l := o.run.Limits
	more := "give more with "
	if o.session != "" {
		more = "its session sets that: caisson session create "
	}
	switch r.Reason {
	case sandbox.ReasonTimeout:
		return fmt.Sprintf("ended after %s, its time limit; give more with --timeout", o.run.Timeout)
	case sandbox.ReasonCanceled:
		if o.noReader {
			return "" // it is for who reads to say when it is enough
		}
		if r.Cause != "" {
			return "canceled: " + visible(r.Cause)
		}
		return "canceled"
	case sandbox.ReasonDenied:
		return "ended by policy: " + visible(r.Cause)
	case sandbox.ReasonOOM:
		return fmt.Sprintf("out of memory at %s; %s--memory", l.Memory, more)
	case sandbox.ReasonPIDs:
		return fmt.Sprintf("failed at the limit of %d processes; %s--pids", l.PIDs, more)
	case sandbox.ReasonDisk:
		if r.Cause != "" {
			return visible(r.Cause)
		}
		return fmt.Sprintf("failed with a full file system; %s--workspace-size (%s) or --tmp-size (%s)", more, l.Workspace, l.Tmp)
	case sandbox.ReasonOutput:
		return fmt.Sprintf("ended at %s of output; give more with --max-output", o.run.MaxOutput)
	case sandbox.ReasonInfra:
		return "the sandbox failed: " + visible(r.Cause) + "; run it again, and it gets another"
	case sandbox.ReasonSignal:
		return "ended by " + r.Signal
	default: // an end of its own accord, or one that was told already
	}
	return ""
}

// limitsOf finds out the limits of the session that an exec ran in.
// Where they cannot be learned, they are told as they are by default.
func (o *runOptions) limitsOf(ctx context.Context, svc api.Sessions) {
	if o.session == "" {
		return
	}
	o.run.Limits = sandbox.DefaultLimits
	if v, err := svc.Session(ctx, o.session); err == nil {
		o.run.Limits = v.Limits
	}
}

package cli

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// report prints what came of the run and turns it into the exit code.
func (o *runOptions) report(cfg Config, res sandbox.Result, total time.Duration) error {
	code := codeOfResult(res)
	if o.json {
		enc := json.NewEncoder(cfg.IO.Out)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(res); err != nil {
			return fmt.Errorf("print the result: %w", err)
		}
		return exitOr(code)
	}
	if res.Replaced {
		_, _ = fmt.Fprintln(cfg.IO.Err, "caisson: the sandbox had ended: this ran in a new one") // as in printError
	}
	if line := explainEnd(res, o.run); line != "" {
		_, _ = fmt.Fprintln(cfg.IO.Err, "caisson: "+line) // as in printError
	}
	o.reportArtifacts(cfg, res)
	if o.summary {
		u := res.Usage
		_, _ = fmt.Fprintf(cfg.IO.Err, "caisson: exit code %d (%s), %s in all, program %s, cpu %s, memory %s, %s\n", res.Code, res.Reason,
			total.Round(time.Millisecond), res.Duration.Round(100*time.Microsecond), u.CPU.Round(100*time.Microsecond), u.PeakMemory.Human(),
			plural(u.PeakProcesses, "process", "processes"))
	}
	return exitOr(code)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func exitOr(code int) error {
	if code == 0 {
		return nil
	}
	return exitCode(code)
}

// explainEnd is one line on an end that the program's own output does not
// explain, with what to do about it.
func explainEnd(r sandbox.Result, run sandbox.Run) string {
	l := run.Limits
	switch r.Reason {
	case sandbox.ReasonTimeout:
		return fmt.Sprintf("ended after %s, its time limit; give more with --timeout", run.Timeout)
	case sandbox.ReasonCanceled:
		if r.Cause != "" {
			return "canceled: " + r.Cause
		}
		return "canceled"
	case sandbox.ReasonOOM:
		return fmt.Sprintf("out of memory at %s; give more with --memory", l.Memory)
	case sandbox.ReasonPIDs:
		return fmt.Sprintf("failed at the limit of %d processes; give more with --pids", l.PIDs)
	case sandbox.ReasonDisk:
		return fmt.Sprintf("failed with a full file system; give more with --workspace-size (%s) or --tmp-size (%s)", l.Workspace, l.Tmp)
	case sandbox.ReasonOutput:
		return fmt.Sprintf("ended at %s of output; give more with --max-output", l.MaxOutput)
	case sandbox.ReasonInfra:
		return "the sandbox failed: " + r.Cause
	case sandbox.ReasonSignal:
		return "ended by " + r.Signal
	default: // an end of its own accord, or one that was told already
	}
	return ""
}

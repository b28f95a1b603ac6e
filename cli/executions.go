package cli

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-dev/caisson/sandbox"
)

func newExecutionList(cfg Config) *cobra.Command {
	var filter sandbox.ExecutionFilter
	var labels, states []string
	var after string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List executions, the newest first", Args: cobra.NoArgs,
		Example: "  caisson execution list --state queued --limit 10",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if filter.Labels, err = labelsOf(labels); err != nil {
				return usageError(cmd, err)
			}
			for _, s := range states {
				filter.States = append(filter.States, sandbox.ExecutionState(s))
			}
			svc, err := open[executionRoles](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			if after != "" {
				if filter.After, err = executionID(cmd.Context(), svc, after); err != nil {
					return err
				}
			}
			list, err := svc.Executions(cmd.Context(), filter)
			if err != nil {
				return err
			}
			if asJSON {
				if list == nil {
					list = []sandbox.Execution{}
				}
				return writeJSON(cfg.IO.Out, list)
			}
			return listExecutions(cfg, list)
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&states, "state", nil, "only those that are queued, running, succeeded, failed, canceled or lost (repeatable)")
	f.StringVar(&filter.Session, "session", "", "only of this session")
	labelFilterFlag(f, &labels)
	limitFlag(f, &filter.Limit, 100, "at most so many")
	f.StringVar(&after, "after", "", "only those behind this `EXECUTION`: the last one of the page before")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func listExecutions(cfg Config, list []sandbox.Execution) error {
	t := newTable(cfg.IO.Out, "EXECUTION", "STATE", "SUBMITTED", "RAN", "CODE", "SESSION", "CALLBACK")
	for _, e := range list {
		code, callback := "", ""
		if e.State.Over() {
			code = strconv.Itoa(codeOfExecution(e))
		}
		if e.Callback != nil {
			callback = string(e.Callback.State)
		}
		t.row(e.ID.Short(), string(e.State), e.Submitted.Local().Format(time.DateTime), ranFor(e), code, oneLine(e.Session, 20), callback)
	}
	return t.flush()
}

// ranFor is how long an execution ran, or has run.
func ranFor(e sandbox.Execution) string {
	end := e.Ended
	switch {
	case e.Started.IsZero():
		return ""
	case end.IsZero():
		end = time.Now()
	}
	return max(0, end.Sub(e.Started)).Round(time.Millisecond).String()
}

func newExecutionShow(cfg Config) *cobra.Command {
	var asJSON bool
	cmd := aboutExecution(cfg, "show EXECUTION", "Show an execution: where it stands, and what came of it", func(cmd *cobra.Command, svc executionRoles, id sandbox.ID, _ []string) error {
		e, err := svc.Execution(cmd.Context(), id, 0)
		if err != nil {
			return err
		}
		if asJSON {
			return writeJSON(cfg.IO.Out, e)
		}
		return showExecution(cfg, e)
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, with the run and the result")
	return cmd
}

func showExecution(cfg Config, e sandbox.Execution) error {
	t := newTable(cfg.IO.Out, "execution", string(e.ID))
	add := func(name, value string) {
		if value != "" {
			t.row(name, visible(value))
		}
	}
	add("state", string(e.State))
	add("waits", e.Waits)
	add("session", e.Session)
	add("submitted", e.Submitted.Local().Format(time.DateTime))
	add("ran", ranFor(e))
	if e.Exit.Reason != "" {
		add("exit", fmt.Sprintf("%d (%s)", e.Exit.Code, e.Exit.Reason))
		add("cause", e.Exit.Cause)
	}
	if e.Error != nil {
		add("error", e.Error.Message)
		add("hint", e.Error.Hint)
	}
	if c := e.Callback; c != nil {
		add("callback", fmt.Sprintf("%s, %s after %s", c.Address, c.State, plural(c.Attempts, "attempt", "attempts")))
		add("failed", c.Error)
	}
	if e.Result != nil {
		add("output", sandbox.Bytes(len(e.Result.Stdout)).Human()+", errors "+sandbox.Bytes(len(e.Result.Stderr)).Human())
		for _, a := range e.Result.Artifacts {
			add("artifact", a.Path+", "+sandbox.Bytes(a.Size).Human())
		}
	}
	return t.flush()
}

func newDeadLetters(cfg Config) *cobra.Command {
	cmd := &cobra.Command{
		Use: "dead-letters", Short: "Callbacks that nobody took", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newDeadLettersList(cfg), aboutExecution(cfg, "resend EXECUTION", "Have the callback of an execution sent again", func(cmd *cobra.Command, svc executionRoles, id sandbox.ID, _ []string) error {
		_, err := svc.ResendDeadLetter(cmd.Context(), id)
		return err
	}))
	return cmd
}

func newDeadLettersList(cfg Config) *cobra.Command {
	var filter sandbox.DeadLetterFilter
	var labels []string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List them, those of the newest executions first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if filter.Labels, err = labelsOf(labels); err != nil {
				return usageError(cmd, err)
			}
			svc, err := open[executionRoles](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			list, err := svc.DeadLetters(cmd.Context(), filter)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(cfg.IO.Out, list)
			}
			t := newTable(cfg.IO.Out, "EXECUTION", "STATE", "ADDRESS", "ATTEMPTS", "GIVEN UP", "ERROR")
			for _, l := range list {
				c := l.Callback
				t.row(l.Execution.Short(), string(l.State), oneLine(c.Address, 40), strconv.Itoa(c.Attempts), c.Settled.Local().Format(time.DateTime), oneLine(c.Error, 80))
			}
			return t.flush()
		},
	}
	labelFilterFlag(cmd.Flags(), &labels)
	limitFlag(cmd.Flags(), &filter.Limit, 100, "at most so many")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

package cli

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

func newAudit(cfg Config) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "What happened, in an order that cannot be altered unseen",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newAuditList(cfg), newAuditVerify(cfg), newAuditReanchor(cfg), newAuditPrune(cfg))
	return cmd
}

// followPause is how often a follower looks for new events. Other processes
// write them: there is nothing to be told by.
const followPause = 200 * time.Millisecond

func newAuditList(cfg Config) *cobra.Command {
	var filter sandbox.EventFilter
	var since sandbox.Duration
	var exec string
	var labels []string
	var asJSON, follow bool
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"},
		Short: "List events",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			svc, err := open[api.Audit](ctx, cfg)
			if err != nil {
				return err
			}
			if since > 0 {
				filter.Since = time.Now().Add(-time.Duration(since))
			}
			filter.Exec = sandbox.ID(exec)
			if filter.Labels, err = labelsOf(labels); err != nil {
				return err
			}
			for left := filter.Limit; ; {
				for e, err := range svc.Events(ctx, filter) {
					if err != nil {
						return err
					}
					if err := printEvent(cfg, e, asJSON); err != nil {
						return err
					}
					filter.After = e.Seq
					left--
				}
				if !follow || filter.Limit > 0 && left == 0 {
					return nil
				}
				filter.Limit = max(left, 0)
				select {
				case <-ctx.Done():
					return nil
				case <-time.After(followPause):
				}
			}
		},
	}
	f := cmd.Flags()
	f.StringVar(&filter.Session, "session", "", "only of this session")
	f.StringVar(&exec, "exec", "", "only of this exec")
	f.StringSliceVar(&filter.Kinds, "kind", nil, "only of these kinds, such as exec.ended")
	labelFilterFlag(f, &labels)
	durationVar(f, &since, "since", 0, "only those younger than this")
	countVar(f, &filter.After, "after", 0, "only those behind this number")
	limitFlag(f, &filter.Limit, 0, "at most so many")
	f.BoolVarP(&follow, "follow", "f", false, "go on with new events until interrupted")
	f.BoolVar(&asJSON, "json", false, "print JSON lines")
	return cmd
}

func printEvent(cfg Config, e sandbox.Event, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(cfg.IO.Out).Encode(e)
	}
	_, err := fmt.Fprintf(cfg.IO.Out, "%6d  %s  %-16s  %-12s  %s  %s\n", e.Seq, e.Time.Format(time.RFC3339), e.Kind, oneLine(e.Session, 20),
		e.Exec.Short(), oneLine(string(e.Data), 160))
	return err
}

func newAuditVerify(cfg Config) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check that no event was changed, removed, reordered or cut off",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			svc, err := open[api.Audit](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			r, err := svc.VerifyAudit(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				if err := json.NewEncoder(cfg.IO.Out).Encode(r); err != nil {
					return err
				}
			} else {
				for _, p := range r.Problems {
					if _, err := fmt.Fprintf(cfg.IO.Out, "event %d: %s\n", p.Seq, visible(p.What)); err != nil {
						return err
					}
				}
				if _, err := fmt.Fprintf(cfg.IO.Out, "%d events, %d to %d, head %s\n", r.Events, r.First, r.Last, r.Head); err != nil {
					return err
				}
			}
			if !r.OK && asJSON {
				return exitCode(exitConflict) // the report says it
			}
			if !r.OK {
				return sandbox.Errorf(sandbox.Conflict, "the audit log was altered in %d places", len(r.Problems)).WithHint("keep the state folder as it is, and compare it with a backup; a lost anchor is set anew by: caisson audit reanchor")
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newAuditReanchor(cfg Config) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "reanchor --reason TEXT",
		Short: "Take the log as it is after its anchor was lost",
		Long: `The file audit.head holds the log's last number and hash outside of the database, so that a log that was cut off shows. Where it
is lost, nobody can tell whether events are missing, and verify says so until somebody takes the log as it is. That is an event.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			svc, err := open[api.Audit](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			seq, err := svc.ReanchorAudit(cmd.Context(), reason)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cfg.IO.Out, "anchored at event %d\n", seq)
			return err
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why it is lost, for the audit; required")
	return cmd
}

func newAuditPrune(cfg Config) *cobra.Command {
	var keep sandbox.Retention
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Drop old events and answered questions, and keep the rest verifiable",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if keep == (sandbox.Retention{}) {
				return sandbox.Errorf(sandbox.Invalid, "nothing says what to keep").WithHint("give --older-than or --larger-than")
			}
			svc, err := open[api.Audit](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			n, err := svc.PruneAudit(cmd.Context(), keep)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cfg.IO.Out, "%d events and %d questions dropped\n", n.Events, n.Questions)
			return err
		},
	}
	durationVar(cmd.Flags(), &keep.Age, "older-than", 0, "drop what is older than this")
	cmd.Flags().Var(&keep.Bytes, "larger-than", "drop the oldest beyond this size, of each")
	return cmd
}

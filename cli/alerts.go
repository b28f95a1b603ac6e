package cli

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

// alertRoles are what it takes to list alerts and to follow them: those of other
// processes come by the audit.
type alertRoles interface {
	api.Monitoring
	api.Audit
}

func newAlerts(cfg Config) *cobra.Command {
	var filter sandbox.AlertFilter
	var labels []string
	var follow, asJSON bool
	cmd := &cobra.Command{
		Use: "alerts", Short: "List alerts about what sandboxes use, or follow them", Args: cobra.NoArgs,
		Example: "  caisson alerts --firing\n  caisson alerts --rule memory --json",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if filter.Labels, err = labelsOf(labels); err != nil {
				return usageError(cmd, err)
			}
			svc, err := open[alertRoles](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			if follow {
				return followAlerts(cmd, cfg, svc, filter, asJSON)
			}
			list, err := svc.Alerts(cmd.Context(), filter)
			if err != nil {
				return err
			}
			if asJSON {
				if list == nil {
					list = []sandbox.Alert{}
				}
				return writeJSON(cfg.IO.Out, list)
			}
			return listAlerts(cfg, list)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&filter.Firing, "firing", false, "only those that are not resolved")
	f.StringVar(&filter.Session, "session", "", "only of this session")
	f.StringVar(&filter.Rule, "rule", "", "only of this rule")
	labelFilterFlag(f, &labels)
	limitFlag(f, &filter.Limit, 100, "at most so many, the newest")
	f.StringVar((*string)(&filter.After), "after", "", "only those behind this alert, by its whole `ID`: the last one of the page before")
	f.BoolVarP(&follow, "follow", "f", false, "print alerts of all processes as they fire and are resolved, until interrupted")
	f.BoolVar(&asJSON, "json", false, "print JSON; with --follow, one line an alert")
	return cmd
}

func listAlerts(cfg Config, list []sandbox.Alert) error {
	t := newTable(cfg.IO.Out, "FIRED", "STATE", "SEVERITY", "RULE", "SESSION", "SANDBOX", "EXEC", "FOR")
	for _, a := range list {
		state, end := "firing", time.Now()
		if !a.Resolved.IsZero() {
			state, end = "resolved", a.Resolved
		}
		t.row(a.Fired.Local().Format(time.DateTime), state, a.Severity.String(), oneLine(a.Rule, 24), oneLine(a.Session, 20), a.Sandbox.Short(), a.Exec.Short(),
			end.Sub(a.Fired).Round(time.Second).String())
	}
	return t.flush()
}

// followAlerts prints alerts from now on.
func followAlerts(cmd *cobra.Command, cfg Config, svc alertRoles, filter sandbox.AlertFilter, asJSON bool) error {
	ctx := cmd.Context()
	events := sandbox.EventFilter{Session: filter.Session, Kinds: []string{sandbox.EventAlertFired, sandbox.EventAlertResolved}}
	newest := events
	newest.Newest = true
	for e, err := range svc.Events(ctx, newest) {
		if err != nil {
			return err
		}
		events.After = e.Seq // by number: the clock may be set
	}
	for {
		for e, err := range svc.Events(ctx, events) {
			if err != nil {
				return err
			}
			events.After = e.Seq
			var a sandbox.Alert
			if err := json.Unmarshal(e.Data, &a); err != nil {
				return sandbox.Errorf(sandbox.Internal, "read alert of event %d: %w", e.Seq, err)
			}
			if filter.Rule != "" && a.Rule != filter.Rule || filter.Firing && !a.Resolved.IsZero() || !sandbox.Labels(a.Labels).Has(filter.Labels) {
				continue
			}
			if err := printAlert(cfg, a, asJSON); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(followPause):
		}
	}
}

func printAlert(cfg Config, a sandbox.Alert, asJSON bool) error {
	if asJSON {
		return writeJSON(cfg.IO.Out, a)
	}
	at, state := a.Fired, "firing"
	if !a.Resolved.IsZero() {
		at, state = a.Resolved, "resolved"
	}
	_, err := fmt.Fprintf(cfg.IO.Out, "%s  %-8s  %-8s  %-12s  %-12s  %s  %s\n", at.Local().Format(time.DateTime), state, a.Severity, oneLine(a.Rule, 24),
		oneLine(a.Session, 20), a.Sandbox.Short(), oneLine(a.When, 60))
	return err
}

package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

// table prints rows in columns.
type table struct {
	w   *tabwriter.Writer
	err error
}

func newTable(w io.Writer, head ...string) *table {
	t := &table{w: tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	t.row(head...)
	return t
}

func (t *table) row(cells ...string) {
	if _, err := fmt.Fprintln(t.w, strings.Join(cells, "\t")); err != nil && t.err == nil {
		t.err = err
	}
}

func (t *table) flush() error {
	if t.err != nil {
		return t.err
	}
	return t.w.Flush()
}

// oneLine makes a text that a stranger chose fit for one cell: visible, and cut
// visibly.
func oneLine(s string, most int) string {
	s = visible(s)
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

func newSession(cfg Config) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "session",
		Short: "Workspaces that last, and the sandboxes made for them",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newSessionCreate(cfg), newSessionList(cfg), newSessionShow(cfg), newSessionStats(cfg), newSessionRemove(cfg),
		sessionVerb(cfg, "pause", "Freeze a session's sandboxes", api.Pauser.PauseSession),
		sessionVerb(cfg, "resume", "Let a paused session go on", api.Pauser.ResumeSession),
		sessionVerb(cfg, "stop", "End a session's sandboxes with all that runs in them; its workspace stays", api.Pauser.StopSession),
		newSessionRenew(cfg), newSessionNetwork(cfg), newSessionSnapshot(cfg), newSessionRestore(cfg), newSessionFork(cfg))
	return cmd
}

// sessionIdle is how long a sandbox stays that nobody uses, unless somebody says.
const sessionIdle = sandbox.Duration(30 * time.Minute)

func newSessionCreate(cfg Config) *cobra.Command {
	var o api.SessionOptions
	var local sandbox.Local
	var workspace string
	var env, labels []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "create [NAME]",
		Short: "Create a session; its sandboxes are made at first use",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.Name = args[0]
			}
			if err := o.Network.Check(); err != nil {
				return err
			}
			o.Env = variables(cfg, env)
			var err error
			if o.Labels, err = labelsOf(labels); err != nil {
				return err
			}
			switch {
			case workspace == "volume", workspace == "tmpfs":
				o.Workspace.Kind = sandbox.WorkspaceKind(workspace)
			case strings.ContainsRune(workspace, '/'):
				abs, err := filepath.Abs(workspace)
				if err != nil {
					return missing(workspace, err)
				}
				o.Workspace.Kind, local.Folder = sandbox.WorkspaceHost, abs
			default:
				o.Workspace = sandbox.Workspace{Kind: sandbox.WorkspaceHost, Source: workspace}
			}
			svc, err := open[api.Sessions](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			warnUnwalled(cfg, o.Runtime)
			s, err := svc.CreateSession(cmd.Context(), o, local)
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(cfg.IO.Out).Encode(s)
			}
			_, err = fmt.Fprintln(cfg.IO.Out, s.Name)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.Language, "language", "l", "", "language of an exec that names none (default shell)")
	durationVar(f, &o.Idle, "idle", sessionIdle, "end a sandbox that nobody has used for so long; 0 is never")
	durationVar(f, &o.TTL, "ttl", 0, "end each sandbox after so long; 0 is never")
	envFlag(f, &env)
	labelFlag(f, &labels)
	f.StringVar(&workspace, "workspace", "volume", "what /workspace is made of: volume, tmpfs, or a folder of the host: its path with a slash, or its name in caisson.yaml")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	o.Limits = sandbox.DefaultLimits
	boxFlags(f, &o.Limits, &o.Image, &o.Network, &o.Runtime, &o.OCIRuntime)
	return cmd
}

func newSessionList(cfg Config) *cobra.Command {
	var asJSON bool
	var labels []string
	var filter sandbox.SessionFilter
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"},
		Short: "List the sessions",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			svc, err := open[api.Sessions](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			if filter.Labels, err = labelsOf(labels); err != nil {
				return err
			}
			list, err := svc.Sessions(cmd.Context(), filter)
			if err != nil {
				return err
			}
			if asJSON {
				if list == nil {
					list = []sandbox.SessionView{}
				}
				return json.NewEncoder(cfg.IO.Out).Encode(list)
			}
			t := newTable(cfg.IO.Out, "SESSION", "LANGUAGE", "AGE", "WORKSPACE", "SANDBOXES", "RUNNING")
			for _, v := range list {
				t.row(v.Name, v.Language, time.Since(v.Created).Round(time.Second).String(), string(v.Workspace.Kind), boxes(v), fmt.Sprint(runningExecs(v)))
			}
			return t.flush()
		},
	}
	f := cmd.Flags()
	labelFilterFlag(f, &labels)
	limitFlag(f, &filter.Limit, 0, "at most so many")
	f.StringVar(&filter.After, "after", "", "only those behind this `NAME`: the last one of the page before")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func sessionNames(ctx context.Context, svc api.Sessions) ([]string, error) {
	list, err := svc.Sessions(ctx, sandbox.SessionFilter{})
	names := make([]string, len(list))
	for i, v := range list {
		names[i] = v.Name
	}
	return names, err
}

func boxes(v sandbox.SessionView) string {
	var list []string
	for _, b := range v.Sandboxes {
		list = append(list, b.Language+":"+string(b.State))
	}
	if len(list) == 0 {
		return "-"
	}
	return strings.Join(list, " ")
}

func runningExecs(v sandbox.SessionView) int {
	n := 0
	for _, e := range v.Execs {
		if e.Ended.IsZero() {
			n++
		}
	}
	return n
}

// showRoles are what shows a session.
type showRoles interface {
	api.Sessions
	api.Insight
}

func newSessionShow(cfg Config) *cobra.Command {
	var asJSON, values bool
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show a session with its sandboxes and execs",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			svc, err := open[showRoles](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			v, err := svc.Session(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if values {
				if v.Env, err = svc.SessionEnv(cmd.Context(), args[0]); err != nil {
					return err
				}
			}
			if asJSON {
				return json.NewEncoder(cfg.IO.Out).Encode(v)
			}
			return printSession(cfg.IO.Out, v)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&values, "values", false, "show the values of its environment too, not the names alone")
	return cmd
}

func printSession(w io.Writer, v sandbox.SessionView) error {
	never := func(d sandbox.Duration) string {
		if d == 0 {
			return "never"
		}
		return d.String()
	}
	t := newTable(w, "session", v.Name)
	t.row("id", string(v.ID))
	t.row("language", v.Language)
	t.row("created", v.Created.Format(time.RFC3339))
	t.row("workspace", strings.TrimSpace(string(v.Workspace.Kind)+" "+v.Workspace.Source))
	t.row("size", workspaceSize(v))
	t.row("limits", fmt.Sprintf("memory %s, cpus %g, pids %d", v.Limits.Memory, v.Limits.CPUs, v.Limits.PIDs))
	t.row("network", oneLine(v.Network.String(), 60))
	if v.Runtime != "" {
		t.row("runtime", oneLine(v.Runtime, 60))
	}
	if v.OCIRuntime != "" {
		t.row("oci runtime", oneLine(v.OCIRuntime, 60))
	}
	t.row("ends", fmt.Sprintf("idle %s, ttl %s", never(v.Idle), never(v.TTL)))
	for _, k := range slices.Sorted(maps.Keys(v.Labels)) {
		t.row("label", oneLine(k+"="+v.Labels[k], 200))
	}
	for _, kv := range v.Env {
		t.row("variable", oneLine(kv, 200))
	}
	for _, s := range v.Snapshots {
		t.row("snapshot", strings.TrimSpace(s.Name+" "+s.ID.Short())+" "+s.Created.Format(time.RFC3339))
	}
	for _, b := range v.Sandboxes {
		t.row("sandbox", fmt.Sprintf("%s %s %s", b.ID.Short(), b.Language, b.State))
	}
	for _, e := range v.Execs {
		state := "running"
		if !e.Ended.IsZero() {
			state = fmt.Sprintf("%s %d", e.Exit.Reason, e.Exit.Code)
		}
		t.row("exec", fmt.Sprintf("%s %s %s", e.ID.Short(), state, oneLine(strings.Join(e.Argv, " "), 60)))
	}
	return t.flush()
}

// workspaceSize says what the workspace may hold, and what sees to that.
func workspaceSize(v sandbox.SessionView) string {
	size := cmp.Or(v.Workspace.Size, v.Limits.Workspace)
	switch {
	case v.Workspace.Kind == sandbox.WorkspaceHost:
		return "as much as the host has"
	case v.HeldBy == sandbox.HeldByFileSystem:
		return fmt.Sprintf("%s, held by its file system", size)
	case v.HeldBy == sandbox.HeldByAgent:
		return fmt.Sprintf("%s, watched by the agent: an exec that passes it is ended", size)
	}
	return size.String()
}

func newSessionRemove(cfg Config) *cobra.Command {
	var force, all bool
	cmd := &cobra.Command{
		Use:   "rm NAME… | --all",
		Short: "Destroy sessions with their workspaces; a host folder stays",
		RunE: func(cmd *cobra.Command, names []string) error {
			if all == (len(names) > 0) {
				return sandbox.Errorf(sandbox.Invalid, "which sessions to remove?").WithHint("name them, or give --all")
			}
			svc, err := open[api.Sessions](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			if all {
				if names, err = sessionNames(cmd.Context(), svc); err != nil {
					return err
				}
			}
			var failed []error // one is no reason to leave the others
			for _, name := range names {
				failed = append(failed, svc.RemoveSession(cmd.Context(), name, force))
			}
			return errors.Join(failed...)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all sessions")
	cmd.Flags().BoolVar(&force, "force", false, "also while something runs in it")
	return cmd
}

func sessionVerb(cfg Config, verb, short string, do func(api.Pauser, context.Context, string) error) *cobra.Command {
	return &cobra.Command{
		Use:   verb + " NAME",
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			svc, err := open[api.Pauser](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			return do(svc, cmd.Context(), args[0])
		},
	}
}

func newSessionRenew(cfg Config) *cobra.Command {
	var idle, ttl sandbox.Duration
	cmd := &cobra.Command{
		Use:   "renew NAME",
		Short: "Set when a session's sandboxes end, counted from now",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			given := func(name string, d *sandbox.Duration) *sandbox.Duration {
				if !cmd.Flags().Changed(name) {
					return nil
				}
				return d
			}
			i, t := given("idle", &idle), given("ttl", &ttl)
			if i == nil && t == nil {
				return sandbox.Errorf(sandbox.Invalid, "nothing to renew").WithHint("give --idle or --ttl")
			}
			svc, err := open[api.Sessions](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			return svc.RenewSession(cmd.Context(), args[0], api.RenewOptions{Idle: i, TTL: t})
		},
	}
	durationVar(cmd.Flags(), &idle, "idle", 0, "end a sandbox that nobody has used for so long; 0 is never")
	durationVar(cmd.Flags(), &ttl, "ttl", 0, "end the sandboxes so long from now; 0 is never")
	return cmd
}

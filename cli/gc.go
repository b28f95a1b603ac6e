package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

func newGC(cfg Config) *cobra.Command {
	var opts api.SweepOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Remove what dead caisson processes left behind",
		Long: `Remove containers, volumes, folders, temporary sessions and records of changes
whose owner is gone. What was left with --keep stays, and so does a volume with the
agent that an engine elsewhere has, unless --kept is given.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			svc, err := open[api.Housekeeping](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			orphans, err := svc.Sweep(cmd.Context(), opts)
			if err != nil && len(orphans) == 0 {
				return err
			}
			if err = errors.Join(err, printOrphans(cfg, orphans, opts.DryRun, asJSON)); err != nil || opts.Kept || asJSON {
				return err
			}
			kept, err := svc.Sweep(cmd.Context(), api.SweepOptions{DryRun: true, Kept: true})
			if err != nil {
				return err
			}
			tellKept(cfg, kept, orphans)
			return nil
		},
	}
	cmd.Flags().BoolVar(&opts.DryRun, "dry-run", false, "only say what would be removed")
	cmd.Flags().BoolVar(&opts.Kept, "kept", false, "also remove what was left with --keep, and volumes with the agent")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printOrphans(cfg Config, orphans []sandbox.Orphan, dry, asJSON bool) error {
	if asJSON {
		if orphans == nil {
			orphans = []sandbox.Orphan{}
		}
		if err := json.NewEncoder(cfg.IO.Out).Encode(orphans); err != nil {
			return err
		}
		for _, o := range orphans {
			if o.Problem != nil {
				return exitCode(exitFailed)
			}
		}
		return nil
	}
	failed := 0
	for _, o := range orphans {
		what := "removed"
		switch {
		case dry:
			what = "would remove"
		case !o.Removed:
			what = "could not remove"
			failed++
		}
		line := fmt.Sprintf("%s %s %s", what, o.Kind, visible(o.Name))
		if p := o.Problem; p != nil {
			line += ": " + visible(p.Message)
			if p.Hint != "" {
				line += "; " + visible(p.Hint)
			}
		}
		if _, err := fmt.Fprintln(cfg.IO.Out, line); err != nil {
			return err
		}
	}
	if failed > 0 {
		return sandbox.Errorf(sandbox.Internal, "%d of %d could not be removed", failed, len(orphans)).WithHint("try again, or look at them with docker ps -a")
	}
	if len(orphans) == 0 {
		_, err := fmt.Fprintln(cfg.IO.Out, "nothing is left behind")
		return err
	}
	return nil
}

// tellKept names what stays for a reason.
func tellKept(cfg Config, kept, told []sandbox.Orphan) {
	for _, o := range kept {
		if slices.ContainsFunc(told, func(t sandbox.Orphan) bool { return t.Name == o.Name }) {
			continue
		}
		_, _ = fmt.Fprintf(cfg.IO.Err, "caisson: kept: %s %s; remove it with: caisson gc --kept\n", o.Kind, visible(o.Name)) // as in printError
	}
}

func newVersion(cfg Config) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				return writeVersion(cmd.Context(), cfg)
			}
			_, err := fmt.Fprintf(cfg.IO.Out, "caisson %s %s/%s %s\n", cfg.Version, runtime.GOOS, runtime.GOARCH, runtime.Version())
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// versionInfo is what `caisson version --json` prints.
type versionInfo struct {
	Version  string            `json:"version"`
	Platform string            `json:"platform"`
	Go       string            `json:"go"`
	Runtimes []api.RuntimeInfo `json:"runtimes,omitempty"`
}

func writeVersion(ctx context.Context, cfg Config) error {
	v := versionInfo{Version: cfg.Version, Platform: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version()}
	if cfg.Runtimes != nil {
		var err error
		if v.Runtimes, err = cfg.Runtimes(ctx); err != nil {
			return err
		}
	}
	return writeJSON(cfg.IO.Out, v)
}

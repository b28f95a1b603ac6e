package cli

import (
	"encoding/json"
	"fmt"
	"runtime"

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
		Long:  "Remove containers, volumes and folders whose owner is gone. What was left with --keep stays, unless --kept is given.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			svc, err := cfg.Service(cmd.Context())
			if err != nil {
				return err
			}
			orphans, err := svc.Sweep(cmd.Context(), opts)
			if err != nil {
				return err
			}
			return printOrphans(cfg, orphans, opts.DryRun, asJSON)
		},
	}
	cmd.Flags().BoolVar(&opts.DryRun, "dry-run", false, "only say what would be removed")
	cmd.Flags().BoolVar(&opts.Kept, "kept", false, "also remove what was left with --keep")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printOrphans(cfg Config, orphans []api.Orphan, dry, asJSON bool) error {
	if asJSON {
		if orphans == nil {
			orphans = []api.Orphan{}
		}
		if err := json.NewEncoder(cfg.IO.Out).Encode(orphans); err != nil {
			return err
		}
		for _, o := range orphans {
			if o.Error != "" {
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
		line := fmt.Sprintf("%s %s %s", what, o.Kind, o.Name)
		if o.Error != "" {
			line += ": " + o.Error
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

func newVersion(cfg Config) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(cfg.IO.Out, "caisson %s %s/%s %s\n", cfg.Version, runtime.GOOS, runtime.GOARCH, runtime.Version())
			return err
		},
	}
}

package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

func newImagesPin(cfg Config) *cobra.Command {
	return &cobra.Command{
		Use:   "pin [LANGUAGE|IMAGE…]",
		Short: "Write what images are now into the lock file; those of all languages without a name",
		RunE: func(cmd *cobra.Command, names []string) error {
			svc, err := open[api.ImageLock](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			pins, err := svc.PinImages(cmd.Context(), names)
			if err != nil {
				return err
			}
			for _, p := range pins {
				if _, err := fmt.Fprintf(cfg.IO.Out, "%s: %s\n", p.Ref, cmp.Or(p.Digest, p.ID)); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func newImagesVerify(cfg Config) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check that what there is, and what runs, is what was pinned; 1 where it is not",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			svc, err := open[api.ImageLock](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			checks, err := svc.VerifyImages(cmd.Context())
			if err != nil {
				return err
			}
			bad := false
			w := tabwriter.NewWriter(cfg.IO.Out, 0, 0, 2, ' ', 0)
			for _, c := range checks {
				bad = bad || c.State != sandbox.ImageMatches
				found := c.Found
				if found == "" {
					found = "-"
				}
				fmt.Fprintf(w, "%s\t%s\tpinned %s\tfound %s\t%s\n", c.Ref, c.State, c.Pinned, found, c.Sandbox)
				for _, change := range c.Changes {
					fmt.Fprintf(w, "  %s\n", visible(change))
				}
			}
			switch {
			case asJSON:
				err = json.NewEncoder(cfg.IO.Out).Encode(checks)
			case len(checks) == 0:
				_, err = fmt.Fprintln(cfg.IO.Out, "nothing is pinned; pin what is there with: caisson images pin")
			default:
				err = w.Flush()
			}
			if err == nil && bad {
				err = exitCode(exitUnwell)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newImagesPrune(cfg Config) *cobra.Command {
	var asJSON, dryRun bool
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove images that caisson made once and would not make now",
		Long: `Remove images that caisson made once and would not make now, and what it kept
to make them. What somebody else made or pulled, what the lock file pins and
what a container uses is left.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			svc, err := open[api.Images](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			pruned, err := svc.PruneImages(cmd.Context(), dryRun)
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(cfg.IO.Out).Encode(pruned)
			}
			for _, p := range pruned {
				what := "removed"
				switch {
				case p.InUse:
					what = "in use"
				case dryRun:
					what = "would remove"
				}
				if _, err := fmt.Fprintf(cfg.IO.Out, "%s %s (%s)\n", what, p.Name, p.Size.Human()); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only say what would be removed")
	return cmd
}

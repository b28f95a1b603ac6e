package cli

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

func newImagesUnpack(cfg Config) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "unpack [LANGUAGE|IMAGE…]",
		Short: "Unpack images for runtimes without an engine; list what is unpacked without a name",
		Long: `Unpack images into folders of the state folder, which --runtime bubblewrap takes
as the root of a sandbox where --image names one, read-only and without an engine.
An image that is missing is made present first, which needs the engine. Without a
name what is unpacked is listed. caisson images prune removes what a newer one has
taken the name of.`,
		Example: `  caisson images unpack shell
  caisson run --runtime bubblewrap --image caisson/shell:12 -- ls -l   # needs bubblewrap`,
		RunE: func(cmd *cobra.Command, names []string) error {
			svc, err := open[api.ImageRoots](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			roots := []sandbox.ImageRoot{}
			for _, name := range names {
				root, err := svc.UnpackImage(cmd.Context(), name)
				if err != nil {
					return err
				}
				roots = append(roots, root)
			}
			if len(names) == 0 {
				if roots, err = svc.UnpackedImages(cmd.Context()); err != nil {
					return err
				}
			}
			if asJSON {
				return writeJSON(cfg.IO.Out, roots)
			}
			w := tabwriter.NewWriter(cfg.IO.Out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "IMAGE\tID\tSIZE\tPATH")
			for _, r := range roots {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.Image.Ref, r.Image.ID, r.Size.Human(), r.Path)
			}
			return w.Flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

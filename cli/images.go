package cli

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

func newImages(cfg Config) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "images",
		Short: "The languages and their images",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newImagesList(cfg), newImagesBuild(cfg))
	return cmd
}

func newImagesList(cfg Config) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the languages, and which images are present",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			svc, err := cfg.Service(cmd.Context())
			if err != nil {
				return err
			}
			infos, err := svc.Languages(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(cfg.IO.Out).Encode(infos)
			}
			w := tabwriter.NewWriter(cfg.IO.Out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "LANGUAGE\tIMAGE\tPRESENT\tSIZE")
			for _, i := range infos {
				present, size := "no", "-"
				if i.Present {
					present, size = "yes", i.Size.Human()
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", i.Name, i.Image, present, size)
			}
			return w.Flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newImagesBuild(cfg Config) *cobra.Command {
	return &cobra.Command{
		Use:   "build [LANGUAGE…]",
		Short: "Make the images of languages present; of all of them without a name",
		RunE: func(cmd *cobra.Command, names []string) error {
			svc, err := cfg.Service(cmd.Context())
			if err != nil {
				return err
			}
			if len(names) == 0 {
				infos, err := svc.Languages(cmd.Context())
				if err != nil {
					return err
				}
				for _, i := range infos {
					names = append(names, i.Name)
				}
			}
			for _, name := range names {
				img, err := svc.EnsureImage(cmd.Context(), name)
				if err != nil {
					return err
				}
				if _, err := fmt.Fprintf(cfg.IO.Out, "%s: %s %s\n", name, img.Ref, img.ID); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

package cli

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

func newImages(cfg Config) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "images",
		Short: "The languages and their images",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newImagesList(cfg), newImagesBuild(cfg), newImagesPull(cfg), newImagesPrewarm(cfg), newImagesPin(cfg),
		newImagesUnpack(cfg), newImagesVerify(cfg), newImagesPrune(cfg))
	return cmd
}

func newImagesList(cfg Config) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"},
		Short: "List the languages, and which images are present",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			svc, err := open[api.Languages](cmd.Context(), cfg)
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

// imageRoles are what makes the images of languages.
type imageRoles interface {
	api.Languages
	api.Images
}

func newImagesBuild(cfg Config) *cobra.Command {
	var opts sandbox.MakeImageOptions
	cmd := &cobra.Command{
		Use:   "build [LANGUAGE…]",
		Short: "Make the images of languages present; of all of them without a name",
		Long: `Make the images of languages present; of all of them without a name.

An image that is missing is pulled where the catalogue names a registry's, else
built from its Dockerfile, else assembled from Debian packages. --from chooses
one of these ways, --again makes an image that is present as well.`,
		RunE: func(cmd *cobra.Command, names []string) error {
			svc, err := open[imageRoles](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			if len(names) == 0 {
				if names, err = usualLanguages(cmd, svc); err != nil {
					return err
				}
			}
			for _, name := range names {
				img, err := svc.MakeImage(cmd.Context(), name, opts)
				if err != nil {
					return err
				}
				if err := printImage(cfg, name, img); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar((*string)(&opts.Way), "from", "", "the only `WAY` to take: pull, build or assemble")
	cmd.Flags().BoolVar(&opts.Again, "again", false, "also where the image is present")
	return cmd
}

// usualLanguages are all but the versions beside the usual one.
func usualLanguages(cmd *cobra.Command, svc api.Languages) ([]string, error) {
	infos, err := svc.Languages(cmd.Context())
	var names []string
	for _, i := range infos {
		if !i.IsVersion() {
			names = append(names, i.Name)
		}
	}
	return names, err
}

func printImage(cfg Config, name string, img sandbox.Image) error {
	_, err := fmt.Fprintf(cfg.IO.Out, "%s: %s %s\n", name, img.Ref, img.ID)
	return err
}

func newImagesPull(cfg Config) *cobra.Command {
	var opts sandbox.PullImageOptions
	cmd := &cobra.Command{
		Use:     "pull IMAGE…",
		Short:   "Fetch images from their registries, also where they are present",
		Example: "  caisson images pull alpine:3.20                         # needs a registry\n  caisson images pull --repin registry.example/tool:2     # needs a registry",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			svc, err := open[api.Images](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			for _, name := range names {
				img, err := svc.PullImage(cmd.Context(), name, opts)
				if err != nil {
					return err
				}
				if err := printImage(cfg, name, img); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&opts.Repin, "repin", false, "take what the registry has now where it is not what is pinned, and pin that")
	return cmd
}

func newImagesPrewarm(cfg Config) *cobra.Command {
	return &cobra.Command{
		Use:   "prewarm [LANGUAGE|IMAGE…]",
		Short: "Make several images present at once; those of all languages without a name",
		RunE: func(cmd *cobra.Command, names []string) error {
			svc, err := open[imageRoles](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			if len(names) == 0 {
				if names, err = usualLanguages(cmd, svc); err != nil {
					return err
				}
			}
			results, err := svc.PrewarmImages(cmd.Context(), names)
			if err != nil {
				return err
			}
			failed := 0
			for _, r := range results {
				if r.Problem != nil {
					failed++
					printError(cfg.IO.Err, fmt.Errorf("%s: %w", r.Name, r.Problem.Err()))
					continue
				}
				if err := printImage(cfg, r.Name, r.Image); err != nil {
					return err
				}
			}
			if failed > 0 {
				return exitCode(exitFailed)
			}
			return nil
		},
	}
}

package cli

import (
	"encoding/json"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

func newPool(cfg Config) *cobra.Command {
	cmd := &cobra.Command{
		Use: "pool", Short: "Keep sandboxes ready before anybody asks",
		Long: `Keep sandboxes ready before anybody asks, as many as pool: in caisson.yaml says.
A server keeps them by itself. For commands that work without one, a process of
their own has to: caisson pool serve.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newPoolServe(cfg), newPoolList(cfg))
	return cmd
}

func newPoolServe(cfg Config) *cobra.Command {
	return &cobra.Command{
		Use: "serve", Short: "Keep the pool of this state folder, until interrupted", Args: cobra.NoArgs,
		Long: `Keep the pool of this state folder, until interrupted. Commands of the same
user with the same state folder take their sandboxes from it, and make their own
where none is ready. What is ready is destroyed at the end.`,
		Example: `  caisson pool serve    # needs to be interrupted`,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cfg.ServePool(cmd.Context()) },
	}
}

func newPoolList(cfg Config) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "Show which sandboxes are kept ready", Args: cobra.NoArgs,
		Long: `Show which sandboxes are kept ready, by this state folder's pool or the server's:
beside the kinds of caisson.yaml, those that were asked for lately.`,
		Example: `  caisson pool ls    # needs a pool`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			svc, err := open[api.Housekeeping](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			list, err := svc.PoolShelves(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(cfg.IO.Out).Encode(list)
			}
			return printShelves(cfg, list)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printShelves(cfg Config, list []sandbox.PoolShelf) error {
	t := newTable(cfg.IO.Out, "LANGUAGE", "RUNTIME", "IMAGE", "WORKSPACE", "READY", "MAKING", "TAKEN", "MISSED", "PROBLEM")
	for _, s := range list {
		t.row(s.Language, s.Runtime, s.Image, string(s.Workspace), strconv.Itoa(s.Ready)+"/"+strconv.Itoa(s.Size), strconv.Itoa(s.Making),
			strconv.Itoa(s.Taken), strconv.Itoa(s.Missed), oneLine(s.Problem, 60))
	}
	return t.flush()
}

package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/internal/shown"
	"github.com/caisson-dev/caisson/sandbox"
)

func newSessionNetwork(cfg Config) *cobra.Command {
	var change sandbox.NetworkChange
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "network NAME",
		Short: "Change which hosts a session may reach, also while it runs",
		Long:  "Change the lists of a session that was made with --network allow, also while something runs in it: its next\nconnection is held to them. Without a flag it prints them.",
		Example: `  caisson session create loader --network allow --allow python-packages
  caisson session network loader --allow example.org --deny pypi.org:80
  caisson session network loader --drop example.org --unlisted deny`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			svc, err := open[interface {
				api.Networks
				api.Sessions
			}](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			v, err := svc.Session(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			n := v.Network
			if cmd.Flags().Changed("allow") || cmd.Flags().Changed("deny") || cmd.Flags().Changed("drop") || cmd.Flags().Changed("unlisted") {
				if n, err = svc.ChangeNetwork(cmd.Context(), args[0], change); err != nil {
					return err
				}
			}
			if asJSON {
				return json.NewEncoder(cfg.IO.Out).Encode(n)
			}
			_, err = fmt.Fprintln(cfg.IO.Out, shown.Text(n.String()))
			return err
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&change.Allow, "allow", nil, "`HOST[:PORT]`, or a list's name, that may be reached, too (repeatable)")
	f.StringArrayVar(&change.Deny, "deny", nil, "`HOST[:PORT]` that may not be reached (repeatable)")
	f.StringArrayVar(&change.Drop, "drop", nil, "`HOST[:PORT]` to take out of the lists, as it stands there (repeatable)")
	f.Var((*verdictFlag)(&change.Unlisted), "unlisted", "`ask` about hosts that are on no list, or deny them")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

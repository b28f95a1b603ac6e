package cli

import (
	"cmp"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

func newToken(cfg Config) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Tokens that let callers ask a server",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newTokenCreate(cfg), newTokenList(cfg), newTokenRevoke(cfg))
	return cmd
}

func newTokenCreate(cfg Config) *cobra.Command {
	var o sandbox.TokenOptions
	var role string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "create [NAME]",
		Short: "Make a token and print it, once, as the last line",
		Long: `Make a token and print it, once, as the last line: only its hash is kept.

Roles: admin may do everything, of every owner; user runs and changes what is of
its own owner, and answers; viewer reads it; approver reads it, and answers what
policy asks. NAME stands in the audit for who asks.`,
		Example: "  caisson token create ci --owner research --ttl 720h\n  caisson token create boss --owner research --role approver",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.Name = args[0]
			}
			o.Access = sandbox.Access(role)
			svc, err := open[api.Tokens](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			t, err := svc.CreateToken(cmd.Context(), o)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(cfg.IO.Out, t)
			}
			fmt.Fprintf(cfg.IO.Err, "token %s of %s, role %s, %s; this is the only time it is shown\n", t.Name, cmp.Or(t.Owner, "the local user"), t.Access, expiry(t.Token))
			_, err = fmt.Fprintln(cfg.IO.Out, t.Secret)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Owner, "owner", "", "whose sessions and runs it is for; each owner sees only their own (default the local user)")
	f.StringVar(&role, "role", string(sandbox.AccessUser), "admin, user, viewer or approver")
	durationVar(f, &o.TTL, "ttl", 0, "it lets nobody in after so long; 0 is for good")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func expiry(t sandbox.Token) string {
	if t.Expires.IsZero() {
		return "for good"
	}
	return "until " + t.Expires.Local().Format(time.RFC3339)
}

func newTokenList(cfg Config) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the tokens, without what is secret of them", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			svc, err := open[api.Tokens](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			list, err := svc.Tokens(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(cfg.IO.Out, append([]sandbox.Token{}, list...))
			}
			t := newTable(cfg.IO.Out, "NAME", "OWNER", "ROLE", "CREATED", "EXPIRES")
			for _, one := range list {
				until := "never"
				if !one.Expires.IsZero() {
					until = one.Expires.Local().Format(time.DateTime)
				}
				t.row(one.Name, cmp.Or(one.Owner, "-"), string(one.Access), one.Created.Local().Format(time.DateTime), until)
			}
			return t.flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newTokenRevoke(cfg Config) *cobra.Command {
	return &cobra.Command{
		Use: "revoke NAME", Aliases: []string{"rm"}, Short: "End a token: it lets nobody in from then on", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			svc, err := open[api.Tokens](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			return svc.RevokeToken(cmd.Context(), args[0])
		},
	}
}

package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

// howCopied says what a copy of a workspace is.
func howCopied(by sandbox.CopiedBy) string {
	if by == sandbox.CopiedByOverlay {
		return "by overlay: nothing was copied"
	}
	return "by a copy of all its bytes"
}

const atRest = `The session's sandboxes end for it, and what runs in the background with them; the
next exec gets a new one. While an exec runs, it is refused.`

func newSessionSnapshot(cfg Config) *cobra.Command {
	var remove, asJSON bool
	cmd := &cobra.Command{
		Use:   "snapshot SESSION [NAME]",
		Short: "Keep a session's workspace as it is, to be restored or forked",
		Long: `Keep a session's workspace as it is, to be restored or forked.

` + atRest + `
Where caisson is root on the engine's host, a snapshot is an overlay's layer and
costs nothing; elsewhere it is a copy of all bytes. Which it was is said.
Snapshots go with their session. caisson session show lists them.`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := ""
			if len(args) == 2 {
				name = args[1]
			}
			svc, err := open[api.Snapshots](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			if remove {
				return svc.RemoveSnapshot(cmd.Context(), args[0], name)
			}
			s, err := svc.Snapshot(cmd.Context(), args[0], name)
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(cfg.IO.Out).Encode(s)
			}
			_, err = fmt.Fprintf(cfg.IO.Out, "snapshot %s of %s, %s\n", s.ID.Short(), args[0], howCopied(s.Copied))
			return err
		},
	}
	cmd.Flags().BoolVar(&remove, "rm", false, "forget the snapshot NAME: its name or id")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newSessionRestore(cfg Config) *cobra.Command {
	return &cobra.Command{
		Use:   "restore SESSION SNAPSHOT",
		Short: "Make a session's workspace what a snapshot kept",
		Long: `Make a session's workspace what a snapshot kept: its name, its id or the
beginning of that. What the workspace held is gone, unless another snapshot has
it. The snapshot stays.

` + atRest,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			svc, err := open[api.Snapshots](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			s, err := svc.RestoreSession(cmd.Context(), args[0], args[1])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cfg.IO.Out, "%s is snapshot %s again, %s\n", args[0], s.ID.Short(), howCopied(s.Copied))
			return err
		},
	}
}

func newSessionFork(cfg Config) *cobra.Command {
	var o api.ForkOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "fork SESSION [NAME]",
		Short: "Make a session with a copy of another's workspace",
		Long: `Make a session with a copy of another's workspace, with its settings and its user.
The two are independent from then on. What was recorded of the origin can be
shown and undone in the fork too.

` + atRest + ` With --snapshot, the origin goes on undisturbed.
Where caisson is root on the engine's host, both lie on the same layers, and
nothing is copied; elsewhere all bytes are. Which it was is said.`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				o.Name = args[1]
			}
			svc, err := open[api.Snapshots](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			f, err := svc.ForkSession(cmd.Context(), args[0], o)
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(cfg.IO.Out).Encode(f)
			}
			_, err = fmt.Fprintf(cfg.IO.Out, "%s is a fork of %s, %s\n", f.Session.Name, args[0], howCopied(f.Copied))
			return err
		},
	}
	cmd.Flags().BoolVar(&o.Live, "live", false, "copy while it is frozen, so that what runs in the origin goes on")
	cmd.Flags().StringVar(&o.Snapshot, "snapshot", "", "of this `SNAPSHOT` of the origin, not of what it holds now")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

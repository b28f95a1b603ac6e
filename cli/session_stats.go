package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

func newSessionStats(cfg Config) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "stats NAME",
		Short: "Read what a session's sandboxes use now",
		Long:  "Read what a session's sandboxes use now. That is no use of them: their idle time goes on. caisson top shows all sandboxes as they go on.",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			svc, err := open[api.Insight](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			all, err := svc.SessionStats(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(cfg.IO.Out, all)
			}
			t := newTable(cfg.IO.Out, "SANDBOX", "LANGUAGE", "STATE", "CPU TIME", "MEMORY", "LIMIT", "PROCESSES", "WORKSPACE", "RUNNING")
			for _, s := range all.Sandboxes {
				t.row(statsCells(s)...)
			}
			return t.flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// statsCells are a sandbox's: "-" stands for what could not be read.
func statsCells(s sandbox.Stats) []string {
	cells := []string{s.ID.Short(), oneLine(s.Language, 12), string(s.State), "-", "-", "-", "-", "-", fmt.Sprint(s.Running)}
	if p := s.Sample; !p.Time.IsZero() {
		copy(cells[3:], []string{
			time.Duration(p.CPU).Round(time.Millisecond).String(), p.Memory.Human(), limitText(p.MemoryLimit), fmt.Sprint(p.Processes), p.Workspace.Human(),
		})
	}
	return cells
}

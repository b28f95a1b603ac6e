package cli

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

// process is one of a session.
type process struct {
	Session string `json:"session"`
	api.Process
}

// psRoles are what it takes to list what runs.
type psRoles interface {
	api.Sessions
	api.Execs
}

func newPS(cfg Config) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ps [SESSION]",
		Short: "List what runs in a session, or in all, and what has output to read",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			svc, err := open[psRoles](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			list, err := processes(cmd.Context(), svc, names)
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(cfg.IO.Out).Encode(list)
			}
			t := newTable(cfg.IO.Out, "SESSION", "EXEC", "AGE", "STATE", "PROCESSES", "OUTPUT", "COMMAND")
			for _, p := range list {
				state := "ended"
				if p.Running {
					state = "running"
				}
				t.row(p.Session, string(p.ID), (time.Duration(p.AgeMS) * time.Millisecond).Round(time.Second).String(), state,
					strconv.Itoa(p.Processes), sandbox.Bytes(p.Stdout+p.Stderr).Human(), oneLine(strings.Join(p.Command, " "), 60))
			}
			return t.flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// processes are those of one session, or of all. Of all, one that goes away
// meanwhile, or that can say nothing while it is paused, has none.
func processes(ctx context.Context, svc psRoles, names []string) ([]process, error) {
	all := len(names) == 0
	if all {
		var err error
		if names, err = sessionNames(ctx, svc); err != nil {
			return nil, err
		}
	}
	list := []process{}
	for _, name := range names {
		found, err := svc.Processes(ctx, name)
		if all && (errors.Is(err, sandbox.NotFound) || errors.Is(err, sandbox.Conflict)) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, p := range found {
			list = append(list, process{name, p})
		}
	}
	return list, nil
}

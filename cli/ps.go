package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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

// psOptions are those of ps.
type psOptions struct {
	labels []string
	after  string
	limit  int
	asJSON bool
}

func newPS(cfg Config) *cobra.Command {
	var opts psOptions
	cmd := &cobra.Command{
		Use:   "ps [SESSION]",
		Short: "List what runs in a session, or in all, and what has output to read",
		Long: `List what runs in a session, or in all, and what has output to read. With --label, --after or --limit the newest is
the first, whatever its session. Where the settings have starts seen, what an exec has started stands below it.`,
		Example: "  caisson ps\n  caisson ps --label step=train --limit 10",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			labels, err := labelsOf(opts.labels)
			if err != nil {
				return usageError(cmd, err)
			}
			svc, err := open[psRoles](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			var list []process
			if len(labels) > 0 || opts.after != "" || opts.limit > 0 {
				list, err = processPage(cmd.Context(), svc, names, labels, opts)
			} else {
				list, err = processes(cmd.Context(), svc, names)
			}
			if err != nil {
				return err
			}
			if opts.asJSON {
				return json.NewEncoder(cfg.IO.Out).Encode(list)
			}
			return printProcesses(cfg, list)
		},
	}
	f := cmd.Flags()
	labelFilterFlag(f, &opts.labels)
	limitFlag(f, &opts.limit, 0, "at most so many")
	f.StringVar(&opts.after, "after", "", "only those behind this `EXEC`: the last one of the page before")
	f.BoolVar(&opts.asJSON, "json", false, "print JSON")
	return cmd
}

func printProcesses(cfg Config, list []process) error {
	t := newTable(cfg.IO.Out, "SESSION", "EXEC", "AGE", "STATE", "PROCESSES", "OUTPUT", "COMMAND")
	for _, p := range list {
		state := "ended"
		if p.Running {
			state = "running"
		}
		t.row(p.Session, string(p.ID), (time.Duration(p.AgeMS) * time.Millisecond).Round(time.Second).String(), state,
			strconv.Itoa(p.Processes), sandbox.Bytes(p.Stdout+p.Stderr).Human(), oneLine(strings.Join(p.Command, " "), 60))
		var tree startTree
		below := func(line string) { t.row("", "", "", "", "", "", "  "+line) }
		for _, s := range p.Starts {
			below(startLine(s, tree.place(s)))
		}
		if p.StartsLeftOut > 0 {
			below(fmt.Sprintf("and %d more", p.StartsLeftOut))
		}
		if p.StartsUnjudged > 0 {
			below(unjudged(p.StartsUnjudged))
		}
	}
	return t.flush()
}

// processPage is a page of them, the newest first. The records tell which those
// are, and their sandboxes what they do.
func processPage(ctx context.Context, svc psRoles, names []string, labels sandbox.Labels, opts psOptions) ([]process, error) {
	filter := sandbox.ExecFilter{Labels: labels}
	if len(names) > 0 {
		filter.Session = names[0]
		if _, err := svc.Session(ctx, names[0]); err != nil {
			return nil, err
		}
	}
	records, err := svc.ListExecs(ctx, filter)
	if err != nil {
		return nil, err
	}
	records = slices.DeleteFunc(records, func(e sandbox.ExecRecord) bool { return e.Session == "" })
	if opts.after != "" {
		at := slices.IndexFunc(records, func(e sandbox.ExecRecord) bool { return strings.HasPrefix(string(e.ID), opts.after) })
		if at < 0 {
			return nil, sandbox.Errorf(sandbox.NotFound, "no exec %s", visible(opts.after)).WithHint("--after takes one of the page before: see caisson ps")
		}
		records = records[at+1:]
	}
	if opts.limit > 0 {
		records = records[:min(opts.limit, len(records))]
	}
	place := map[sandbox.ID]int{}
	var sessions []string
	for i, e := range records {
		place[e.ID] = i
		sessions = append(sessions, e.Session)
	}
	slices.Sort(sessions)
	list, err := processesOf(ctx, svc, slices.Compact(sessions), len(names) == 0)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(p process) bool { _, ok := place[p.ID]; return !ok })
	slices.SortFunc(list, func(a, b process) int { return place[a.ID] - place[b.ID] })
	return list, nil
}

// processes are those of one session, or of all.
func processes(ctx context.Context, svc psRoles, names []string) ([]process, error) {
	if len(names) > 0 {
		return processesOf(ctx, svc, names, false)
	}
	names, err := sessionNames(ctx, svc)
	if err != nil {
		return nil, err
	}
	return processesOf(ctx, svc, names, true)
}

// processesOf are those of sessions. With lax, one that goes away meanwhile, or
// that can say nothing while it is paused, has none.
func processesOf(ctx context.Context, svc api.Execs, names []string, lax bool) ([]process, error) {
	list := []process{}
	for _, name := range names {
		found, err := svc.Processes(ctx, name)
		if lax && (errors.Is(err, sandbox.NotFound) || errors.Is(err, sandbox.Conflict)) {
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

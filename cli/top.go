package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

// topStale is how old the newest sample of a sandbox may be that top shows: the
// process that sampled it may be gone.
const topStale = 10 * time.Second

// topOptions are those of top.
type topOptions struct {
	plain, asJSON, all bool
	sort               string
	count              int
	given              []string
	labels             sandbox.Labels
	every              sandbox.Duration
}

func newTop(cfg Config) *cobra.Command {
	opts := topOptions{}
	cmd := &cobra.Command{
		Use: "top", Short: "Show what sandboxes use, those of other processes too", Args: cobra.NoArgs,
		Long: `On a terminal it shows a live table with graphs; keys sort it, and q ends it. Elsewhere, and with --plain, --all, --count or
--json, it prints lines.`,
		Example: "  caisson top --plain --count 1\n  caisson top --json --count 1 --sort memory",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if opts.labels, err = labelsOf(opts.given); err != nil {
				return usageError(cmd, err)
			}
			if topOrders[opts.sort] == nil {
				return usageError(cmd, sandbox.Errorf(sandbox.Invalid, "--sort %s: it takes cpu, memory, processes, workspace, age or session", visible(opts.sort)))
			}
			if opts.every < sandbox.Duration(100*time.Millisecond) {
				return usageError(cmd, sandbox.Errorf(sandbox.Invalid, "--every %v: it takes at least 100ms", opts.every))
			}
			svc, err := open[api.Monitoring](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			in, out, terminal := onTerminal(cfg)
			if terminal && !opts.plain && !opts.asJSON && !opts.all && opts.count == 0 {
				return showTop(cmd.Context(), svc, opts, in, out)
			}
			return printTop(cmd.Context(), cfg, svc, opts)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&opts.plain, "plain", false, "print tables one below the other, for logs and pipes")
	f.BoolVar(&opts.asJSON, "json", false, "print one JSON line for each sandbox and look")
	f.BoolVarP(&opts.all, "all", "a", false, "also sandboxes that are gone, with their peak")
	labelFilterFlag(f, &opts.given)
	f.StringVar(&opts.sort, "sort", "cpu", "by cpu, memory, processes, workspace, age or session")
	f.VarP(count[int]{&opts.count}, "count", "n", "end after so many looks; 0 is never")
	durationVar(f, &opts.every, "every", sandbox.Duration(2*time.Second), "between two looks")
	return cmd
}

// topOrders are what top can be sorted by.
var topOrders = map[string]func(a, b sandbox.Reading) int{
	"cpu":       func(a, b sandbox.Reading) int { return cmp.Compare(b.Now.CPU, a.Now.CPU) },
	"memory":    func(a, b sandbox.Reading) int { return cmp.Compare(b.Now.MemoryBytes, a.Now.MemoryBytes) },
	"processes": func(a, b sandbox.Reading) int { return cmp.Compare(b.Now.ProcessCount, a.Now.ProcessCount) },
	"workspace": func(a, b sandbox.Reading) int { return cmp.Compare(b.Sample.Workspace, a.Sample.Workspace) },
	"age":       func(a, b sandbox.Reading) int { return a.First.Compare(b.First) },
	"session":   func(a, b sandbox.Reading) int { return strings.Compare(a.Session, b.Session) },
}

// lookTop is what one look shows, sorted.
func lookTop(ctx context.Context, svc api.Monitoring, opts topOptions) ([]sandbox.Reading, error) {
	filter := sandbox.ReadingFilter{Live: true, Since: time.Now().Add(-topStale), Labels: opts.labels}
	if opts.all {
		filter = sandbox.ReadingFilter{Labels: opts.labels}
	}
	list, err := svc.Readings(ctx, filter)
	order := topOrders[opts.sort]
	slices.SortStableFunc(list, func(a, b sandbox.Reading) int { return cmp.Or(order(a, b), cmp.Compare(a.Sandbox, b.Sandbox)) })
	return list, err
}

// printTop prints looks as lines.
func printTop(ctx context.Context, cfg Config, svc api.Monitoring, opts topOptions) error {
	for n := 1; ; n++ {
		list, err := lookTop(ctx, svc, opts)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		if opts.asJSON {
			for _, r := range list {
				if err := writeJSON(cfg.IO.Out, r); err != nil {
					return err
				}
			}
		} else if err := topTable(cfg, list, opts.all); err != nil {
			return err
		}
		if n == opts.count {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Duration(opts.every)):
		}
	}
}

func topTable(cfg Config, list []sandbox.Reading, all bool) error {
	t := newTable(cfg.IO.Out, "SESSION", "SANDBOX", "LANGUAGE", "CPU", "MEMORY", "LIMIT", "PROCESSES", "WORKSPACE", "NET IN/OUT", "EXECS", "AGE")
	for _, r := range list {
		f, age := r.Now, time.Since(r.First)
		if all && !r.Ended.IsZero() {
			f, age = r.Peak, r.Ended.Sub(r.First)
		}
		t.row(topCells(r, f, age)...)
	}
	return t.flush()
}

// topCells are a sandbox's.
func topCells(r sandbox.Reading, f sandbox.Figures, age time.Duration) []string {
	s := r.Sample
	session := oneLine(r.Session, 20)
	if session == "" {
		session = "-"
	}
	return []string{
		session, r.Sandbox.Short(), oneLine(r.Language, 12), fmt.Sprintf("%.0f%%", f.CPU), sandbox.Bytes(f.MemoryBytes).Human(), limitText(s.MemoryLimit),
		fmt.Sprintf("%.0f", f.ProcessCount), s.Workspace.Human(), s.NetworkReceived.Human() + "/" + s.NetworkSent.Human(),
		fmt.Sprint(len(r.Execs)), age.Round(time.Second).String(),
	}
}

func limitText(b sandbox.Bytes) string {
	if b == 0 {
		return "-"
	}
	return b.Human()
}

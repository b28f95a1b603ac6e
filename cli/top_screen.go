package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/term"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

// history is how many looks a graph shows.
const history = 20

// screen is top on a terminal.
type screen struct {
	ctx    context.Context //nolint:containedctx // of the program that it is the model of, which hands none to commands
	svc    api.Monitoring
	opts   topOptions
	list   []sandbox.Reading
	firing []sandbox.Alert
	graphs map[sandbox.ID]*graphs
	width  int
	height int
	err    error
}

// graphs are what was seen of one sandbox, the newest last, in percent.
type graphs struct {
	cpu, memory []float64
	last        time.Time
}

// looked is what one look brought.
type looked struct {
	list   []sandbox.Reading
	firing []sandbox.Alert
	err    error
}

// onTerminal reports whether top can take the whole screen.
func onTerminal(cfg Config) (in, out *os.File, ok bool) {
	in, isFile := cfg.IO.In.(*os.File)
	out, isToo := cfg.IO.Out.(*os.File)
	return in, out, isFile && isToo && term.IsTerminal(int(in.Fd())) && term.IsTerminal(int(out.Fd()))
}

// showTop shows a live table until somebody quits it.
func showTop(ctx context.Context, svc api.Monitoring, opts topOptions, in, out *os.File) error {
	s := &screen{ctx: ctx, svc: svc, opts: opts, graphs: map[sandbox.ID]*graphs{}, width: 100, height: 24}
	_, err := tea.NewProgram(s, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out)).Run()
	if err != nil && ctx.Err() == nil && !errors.Is(err, tea.ErrInterrupted) {
		return sandbox.Errorf(sandbox.Internal, "show top: %w", err).WithHint("caisson top --plain prints lines")
	}
	return s.err
}

// Init looks for the first time.
func (s *screen) Init() tea.Cmd { return s.look }

func (s *screen) look() tea.Msg {
	list, err := lookTop(s.ctx, s.svc, s.opts)
	if err != nil {
		return looked{err: err}
	}
	firing, err := s.svc.Alerts(s.ctx, sandbox.AlertFilter{Firing: true, Limit: 50})
	return looked{list, firing, err}
}

// topKeys are what sorts by which key.
var topKeys = map[string]string{"c": "cpu", "m": "memory", "p": "processes", "w": "workspace", "a": "age", "s": "session"}

// Update takes in what happened.
func (s *screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		s.width, s.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		key := msg.String()
		if key == "q" || key == "esc" || key == "ctrl+c" {
			return s, tea.Quit
		}
		if order, ok := topKeys[key]; ok {
			s.opts.sort = order
			slices.SortStableFunc(s.list, topOrders[order])
		}
	case looked:
		if msg.err != nil {
			s.err = msg.err
			return s, tea.Quit
		}
		s.take(msg)
		return s, tea.Tick(time.Duration(s.opts.every), func(time.Time) tea.Msg { return s.look() })
	}
	return s, nil
}

// take adds a look to the graphs. Those of sandboxes that are gone go.
func (s *screen) take(l looked) {
	s.list, s.firing = l.list, l.firing
	slices.SortStableFunc(s.list, topOrders[s.opts.sort])
	kept := map[sandbox.ID]*graphs{}
	for _, r := range s.list {
		g := s.graphs[r.Sandbox]
		if g == nil {
			g = &graphs{}
		}
		if r.Sample.Time.After(g.last) {
			g.last = r.Sample.Time
			g.cpu, g.memory = append(g.cpu, r.Now.CPU), append(g.memory, r.Now.Memory)
			g.cpu, g.memory = g.cpu[max(0, len(g.cpu)-history):], g.memory[max(0, len(g.memory)-history):]
		}
		kept[r.Sandbox] = g
	}
	s.graphs = kept
}

// bars are the heights of a graph.
var bars = []rune("▁▂▃▄▅▆▇█")

// sparkline draws percentages.
func sparkline(values []float64) string {
	line := []rune(strings.Repeat(" ", history-len(values)))
	for _, v := range values {
		line = append(line, bars[min(len(bars)-1, max(0, int(v/100*float64(len(bars)))))])
	}
	return string(line)
}

// View draws the screen.
func (s *screen) View() tea.View {
	var b strings.Builder
	fmt.Fprintf(&b, "caisson top: %d sandboxes, by %s", len(s.list), s.opts.sort)
	if len(s.firing) > 0 {
		fmt.Fprintf(&b, ", %d alerts: %s", len(s.firing), alertNames(s.firing))
	}
	b.WriteString("\n\n")
	fmt.Fprintf(&b, "%-16s %-12s %5s %-*s %10s %5s %-*s %5s %10s %6s %8s\n", "SESSION", "SANDBOX", "CPU", history, "", "MEMORY", "", history, "", "PROCS", "WORKSPACE", "EXECS", "AGE")
	rows := max(0, s.height-5)
	for i, r := range s.list {
		if i == rows {
			fmt.Fprintf(&b, "… %d more", len(s.list)-rows)
			break
		}
		b.WriteString(s.row(r) + "\n")
	}
	for n := strings.Count(b.String(), "\n"); n < s.height-1; n++ {
		b.WriteByte('\n')
	}
	b.WriteString("sort: c cpu  m memory  p processes  w workspace  a age  s session    q quit")
	lines := strings.Split(b.String(), "\n")
	for i, line := range lines {
		if text := []rune(line); len(text) > s.width {
			lines[i] = string(text[:s.width])
		}
	}
	v := tea.NewView(strings.Join(lines, "\n"))
	v.AltScreen = true
	v.WindowTitle = "caisson top"
	return v
}

func (s *screen) row(r sandbox.Reading) string {
	g, session, f := s.graphs[r.Sandbox], oneLine(r.Session, 16), r.Now
	if session == "" {
		session = "-"
	}
	return fmt.Sprintf("%-16s %-12s %4.0f%% %s %10s %4.0f%% %s %5.0f %10s %6d %8s", session, r.Sandbox.Short(), f.CPU, sparkline(g.cpu),
		sandbox.Bytes(f.MemoryBytes).Human(), f.Memory, sparkline(g.memory), f.ProcessCount, r.Sample.Workspace.Human(), len(r.Execs), time.Since(r.First).Round(time.Second))
}

// alertNames are the rules that fire, each once.
func alertNames(firing []sandbox.Alert) string {
	var names []string
	for _, a := range firing {
		if name := oneLine(a.Rule, 24); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

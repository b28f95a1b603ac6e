package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

func newChanges(cfg Config) *cobra.Command {
	var opts api.ChangesOptions
	var exec string
	var diff, stat, asJSON bool
	cmd := &cobra.Command{
		Use:   "changes SESSION [--exec ID] [--diff|--stat]",
		Short: "What execs changed in a session's workspace",
		Long: `What execs changed in a session's workspace, the oldest first. A change that no
exec made (a background process, a file operation, the host) is the session's.
With --diff, and no --exec, all that differs since the session began.

A path stands behind A (created), M (modified), D (deleted), R (renamed), or
m (its mode alone); a + behind that says that others may have done it too.`,
		Example: `  caisson changes work
  caisson changes work --diff`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if diff && stat {
				return sandbox.Errorf(sandbox.Invalid, "--diff and --stat at once").WithHint("give one of them")
			}
			ctx := cmd.Context()
			svc, err := open[api.Changes](ctx, cfg)
			if err != nil {
				return err
			}
			if exec != "" {
				if opts.Exec, err = changedExec(ctx, svc, args[0], exec); err != nil {
					return err
				}
			}
			out := bufio.NewWriter(cfg.IO.Out)
			switch {
			case diff || stat:
				err = showDiffs(ctx, svc, out, args[0], opts, diffStyle{json: asJSON, stat: stat, color: colored(cfg)})
			default:
				err = showRecords(ctx, svc, out, args[0], opts, asJSON)
			}
			if err != nil {
				return err
			}
			return out.Flush()
		},
	}
	f := cmd.Flags()
	f.StringVar(&exec, "exec", "", "of this exec alone: its `ID` or the beginning of it")
	f.BoolVar(&diff, "diff", false, "print unified diffs of texts")
	f.BoolVar(&stat, "stat", false, "print lines added and removed, and sizes")
	f.BoolVar(&asJSON, "json", false, "print JSON, one object a line")
	f.BoolVar(&opts.Exact, "exact", false, "walk the whole workspace first, whatever its watches say")
	f.BoolVar(&opts.Recorded, "recorded", false, "what is recorded already, without a look at the workspace")
	limitFlag(f, &opts.Limit, 0, "the newest records alone")
	return cmd
}

// changedExec completes the beginning of the id of an exec that has a record.
func changedExec(ctx context.Context, svc api.Changes, session, prefix string) (sandbox.ID, error) {
	if id := sandbox.ID(prefix); id.Valid() {
		return id, nil
	}
	records, err := svc.Changes(ctx, session, api.ChangesOptions{Recorded: true})
	if err != nil {
		return "", err
	}
	found := map[sandbox.ID]bool{}
	for _, r := range records {
		if r.Exec != "" && strings.HasPrefix(string(r.Exec), prefix) {
			found[r.Exec] = true
		}
	}
	if len(found) != 1 {
		return "", sandbox.Errorf(sandbox.NotFound, "%d execs with changes begin with %q", len(found), prefix).
			WithHint("see them with: caisson changes %s", session)
	}
	for id := range found {
		return id, nil
	}
	return "", nil
}

var opLetters = map[sandbox.ChangeOp]string{
	sandbox.OpCreated: "A", sandbox.OpModified: "M", sandbox.OpDeleted: "D", sandbox.OpRenamed: "R", sandbox.OpMode: "m",
}

func showRecords(ctx context.Context, svc api.Changes, w io.Writer, session string, opts api.ChangesOptions, asJSON bool) error {
	records, err := svc.Changes(ctx, session, opts)
	if err != nil {
		return err
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, r := range records {
		if asJSON {
			if err := enc.Encode(r); err != nil {
				return err
			}
			continue
		}
		if len(r.Changes) == 0 && len(r.Undoes) == 0 {
			continue
		}
		printRecord(w, r)
	}
	return nil
}

func printRecord(w io.Writer, r sandbox.ChangeRecord) {
	who := "session"
	if r.Exec != "" {
		who = "exec " + string(r.Exec)
	}
	if len(r.Undoes) > 0 {
		who = "undo " + string(r.Exec) + ", of"
		for _, id := range r.Undoes {
			who += " " + strconv.FormatInt(id, 10)
		}
	}
	_, _ = fmt.Fprintf(w, "%d  %s  %s\n", r.ID, r.Time.Format(time.RFC3339), who) // Flush tells
	if r.Partial != "" {
		_, _ = fmt.Fprintf(w, "   not all of it was looked at: %s\n", visible(r.Partial))
	}
	for _, c := range r.Changes {
		mark := " "
		if c.By == sandbox.ByShared {
			mark = "+"
		}
		_, _ = fmt.Fprintf(w, "   %s%s %s\n", opLetters[c.Op], mark, changeLine(c))
	}
}

// changeLine names a change's path and what is to be said of it.
func changeLine(c sandbox.FileChange) string {
	name := shownName(c.Path)
	switch c.Kind() {
	case sandbox.KindDir:
		name += "/"
	case sandbox.KindLink:
		name += " -> " + shownName(string(c.After.Target))
	default: // a file needs no sign
	}
	switch c.Op {
	case sandbox.OpRenamed:
		name = shownName(c.From) + " => " + name
	case sandbox.OpMode:
		return fmt.Sprintf("%s (%04o to %04o)", name, c.Before.Mode, c.After.Mode)
	default: // sizes follow
	}
	if c.Kind() == sandbox.KindFile {
		name += fmt.Sprintf(" (%s)", sizes(c))
	}
	if c.After.Unread() {
		name += " (not read)"
	}
	return name
}

func sizes(c sandbox.FileChange) string {
	switch {
	case c.Op == sandbox.OpCreated:
		return sandbox.Bytes(c.After.Size).Human()
	case c.Op == sandbox.OpDeleted:
		return sandbox.Bytes(c.Before.Size).Human()
	case c.Before.Size == c.After.Size:
		return sandbox.Bytes(c.After.Size).Human()
	}
	return sandbox.Bytes(c.Before.Size).Human() + " to " + sandbox.Bytes(c.After.Size).Human()
}

// shownName is a name that cannot act on a terminal or be taken for another: one
// with control characters, quotes or bytes that are not UTF-8 is quoted.
func shownName(name string) string {
	odd := func(r rune) bool { return !unicode.IsPrint(r) || r == '"' || r == '\\' || r == utf8.RuneError }
	if utf8.ValidString(name) && !strings.ContainsFunc(name, odd) && strings.TrimSpace(name) == name {
		return name
	}
	return strconv.Quote(name)
}

// colored reports whether output goes to a terminal that wants colours.
func colored(cfg Config) bool {
	f, ok := cfg.IO.Out.(*os.File)
	if !ok || cfg.getenv("NO_COLOR") != "" || cfg.getenv("TERM") == "dumb" {
		return false
	}
	return isTerminal(f)
}

// diffStyle says how differences are printed.
type diffStyle struct{ json, stat, color bool }

func showDiffs(ctx context.Context, svc api.Changes, w io.Writer, session string, opts api.ChangesOptions, style diffStyle) error {
	diffs, err := svc.Diff(ctx, session, opts)
	if err != nil {
		return err
	}
	if style.json {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		for _, d := range diffs {
			if err := enc.Encode(d); err != nil {
				return err
			}
		}
		return nil
	}
	if style.stat {
		return printStat(w, diffs)
	}
	for _, d := range diffs {
		printDiff(w, d, style.color)
	}
	return nil
}

func printStat(w io.Writer, diffs []sandbox.FileDiff) error {
	t := newTable(w, "OP", "ADDED", "REMOVED", "BEFORE", "AFTER", "PATH")
	for _, d := range diffs {
		added, removed := strconv.Itoa(d.Added), strconv.Itoa(d.Removed)
		if d.Note != "" {
			added, removed = "-", d.Note
		}
		name := shownName(d.Path)
		if d.Op == sandbox.OpRenamed {
			name = shownName(d.From) + " => " + name
		}
		t.row(string(d.Op), added, removed, strconv.FormatInt(d.Before.Size, 10), strconv.FormatInt(d.After.Size, 10), name)
	}
	return t.flush()
}

// Colours of a terminal.
const (
	bold, red, green, yellow, cyan, plain = "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[36m", "\x1b[0m"
)

func printDiff(w io.Writer, d sandbox.FileDiff, color bool) {
	line := func(c, text string) {
		if color && c != "" {
			text = c + text + plain
		}
		_, _ = fmt.Fprintln(w, text) // Flush tells
	}
	from, to := "a/"+d.Path, "b/"+d.Path
	if d.Op == sandbox.OpRenamed {
		from = "a/" + d.From
	}
	head := fmt.Sprintf("diff %s %s", shownName(from), shownName(to))
	line(bold, head)
	switch {
	case d.Op == sandbox.OpCreated:
		line(bold, fmt.Sprintf("new %s mode %04o", d.After.Kind, d.After.Mode))
	case d.Op == sandbox.OpDeleted:
		line(bold, fmt.Sprintf("deleted %s mode %04o", d.Before.Kind, d.Before.Mode))
	case d.Before.Mode != d.After.Mode:
		line(bold, fmt.Sprintf("mode %04o to %04o", d.Before.Mode, d.After.Mode))
	}
	if d.Note != "" {
		line("", fmt.Sprintf("%s: %d to %d bytes", d.Note, d.Before.Size, d.After.Size))
	}
	if d.Unified == "" {
		return
	}
	if d.Op == sandbox.OpCreated {
		from = "/dev/null"
	}
	if d.Op == sandbox.OpDeleted {
		to = "/dev/null"
	}
	line(bold, "--- "+shownName(from))
	line(bold, "+++ "+shownName(to))
	for text := range strings.Lines(d.Unified) {
		text = strings.TrimSuffix(text, "\n")
		c := map[byte]string{'@': cyan, '+': green, '-': red}[text[0]]
		line(c, shownText(text))
	}
}

// shownText is a line of a text that cannot act on a terminal: tabs stay.
func shownText(line string) string {
	parts := strings.Split(line, "\t")
	for i := range parts {
		parts[i] = visible(parts[i])
	}
	return strings.Join(parts, "\t")
}

func newUndo(cfg Config) *cobra.Command {
	var opts api.UndoOptions
	var exec string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "undo SESSION --exec ID",
		Short: "Take back what an exec changed in a session's workspace",
		Long: `Take back what an exec changed in a session's workspace: contents, modes, links
and times. What something later touched is refused; what was not kept too (see
docs/changes.md). The undo is recorded like an exec and can be undone.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if exec == "" {
				return sandbox.Errorf(sandbox.Invalid, "no exec").WithHint("name it with --exec; see: caisson changes %s", args[0])
			}
			svc, err := open[api.Changes](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			if opts.Exec, err = changedExec(cmd.Context(), svc, args[0], exec); err != nil {
				return err
			}
			u, err := svc.Undo(cmd.Context(), args[0], opts)
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(cfg.IO.Out).Encode(u)
			}
			if u.Record.ID == 0 {
				_, err := fmt.Fprintln(cfg.IO.Out, "nothing differs")
				return err
			}
			printRecord(cfg.IO.Out, u.Record)
			for _, p := range u.Skipped {
				_, _ = fmt.Fprintf(cfg.IO.Err, "caisson: left as it is, since its old content was not kept: %s\n", shownName(p)) // as in printError
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&exec, "exec", "", "the exec: its `ID` or the beginning of it")
	f.BoolVar(&opts.Since, "since", false, "take back everything since before it, whoever did it")
	f.BoolVar(&opts.Force, "force", false, "also what was touched later; leaves out what was not kept")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

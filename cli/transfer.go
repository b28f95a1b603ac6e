package cli

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/bridge/transfer"
	"github.com/caisson-dev/caisson/sandbox"
)

// transferFlags are those of push and pull.
type transferFlags struct {
	transfer.Options
	json bool
}

func (t *transferFlags) add(f *pflag.FlagSet) {
	f.BoolVar(&t.DryRun, "dry-run", false, "name what would be moved, and move nothing")
	f.BoolVar(&t.Ignore, "gitignore", false, "leave out what .gitignore files say, and .git")
	f.BoolVar(&t.All, "all", false, "also what is there already with the same size, mode and time")
	f.BoolVar(&t.Force, "force", false, "also in place of files that are read-only")
	f.BoolVar(&t.json, "json", false, "print JSON")
}

// watch shows progress on a terminal, and names entries in a dry run.
func (t *transferFlags) watch(cfg Config, ref string) (done func()) {
	if t.DryRun {
		t.Each = func(s transfer.Step) { t.print(cfg, s) }
		return func() {}
	}
	progress := NewProgress(cfg.IO.Err)
	if !progress.terminal {
		return func() {}
	}
	t.Progress = func(done, total int64) {
		progress.Show(sandbox.Progress{Ref: ref, Current: sandbox.Bytes(done), Total: sandbox.Bytes(total)})
	}
	return func() { _ = progress.Close() } // never fails
}

func (t *transferFlags) print(cfg Config, s transfer.Step) {
	switch {
	case t.json:
		_ = json.NewEncoder(cfg.IO.Out).Encode(s) // as in printError
	case s.Skip != "":
		_, _ = fmt.Fprintf(cfg.IO.Out, "leaves out %s: %s\n", shownName(s.Path), s.Skip)
	default:
		_, _ = fmt.Fprintf(cfg.IO.Out, "moves %s %s\n", shownName(s.Path), map[string]string{
			"file": sandbox.Bytes(s.Size).Human(), "dir": "folder", "link": "link",
		}[s.Type])
	}
}

// report says what a transfer came to.
func (t *transferFlags) report(cfg Config, w io.Writer, m sandbox.Moved) error {
	if t.DryRun {
		return nil
	}
	for _, name := range m.LeftOut {
		if !strings.HasSuffix(name, "it is ignored") {
			_, _ = fmt.Fprintf(cfg.IO.Err, "caisson: left out %s\n", visible(name)) // as in printError
		}
	}
	if t.json {
		return json.NewEncoder(w).Encode(m)
	}
	text := fmt.Sprintf("%d moved, %s", m.Files, sandbox.Bytes(m.Bytes).Human())
	if m.Same > 0 {
		text += fmt.Sprintf("; %d were there", m.Same)
	}
	if m.Left > 0 {
		text += fmt.Sprintf("; %d left out", m.Left)
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

func newFilesPush(cfg Config) *cobra.Command {
	t := &transferFlags{}
	cmd := &cobra.Command{
		Use:   "push SESSION SRC [DST]",
		Short: "Copy a folder of this host into the workspace, what differs alone",
		Long: `Copy a folder of this host into the workspace, what differs alone: a file that is
there with the same size, mode and time is not moved again, so that a push that
was cut off goes on where it ended.

What is in a folder SRC goes into DST (default the workspace itself); a file SRC
becomes DST (default its own name), or goes into it where that is a folder or ends
in /. With - as SRC, a tar stream is read from standard input and unpacked in DST.`,
		Example: `  caisson files push work ./project --gitignore
  tar c data | caisson files push work -`,
		Args: cobra.RangeArgs(2, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withFiles(cmd.Context(), cfg, args, func(ctx context.Context, f api.Files, a []string) error {
				src, dst := a[0], "."
				if len(a) == 2 {
					dst = a[1]
				}
				if st, err := os.Stat(src); err == nil && !st.IsDir() {
					at, err := f.Stat(ctx, inWorkspace(dst))
					if err == nil && at.Type == "dir" || strings.HasSuffix(dst, "/") {
						dst = path.Join(dst, filepath.Base(src))
					}
				}
				if src == "-" {
					m, err := f.PutTar(ctx, inWorkspace(dst), cfg.IO.In)
					return errors.Join(err, t.report(cfg, cfg.IO.Out, m))
				}
				done := t.watch(cfg, "push "+src)
				m, err := transfer.Push(ctx, f, src, inWorkspace(dst), t.Options)
				done()
				if err != nil {
					return err
				}
				return t.report(cfg, cfg.IO.Out, m)
			})
		},
	}
	t.add(cmd.Flags())
	return cmd
}

// inWorkspace is a path below the workspace.
func inWorkspace(p string) string {
	if rest, ok := strings.CutPrefix(p, sandbox.WorkspaceDir); ok && (rest == "" || rest[0] == '/') {
		p = strings.TrimPrefix(rest, "/")
	}
	return path.Clean(p)
}

func newFilesPull(cfg Config) *cobra.Command {
	t := &transferFlags{}
	var changed bool
	var exec string
	cmd := &cobra.Command{
		Use:   "pull SESSION SRC DST",
		Short: "Copy a folder of the workspace to this host, what differs alone",
		Long: `Copy a folder of the workspace to this host, what differs alone: a file that is
there with the same size and time is not moved again, and a large one that was
cut off goes on where it ended.

What is in a folder SRC (. is the workspace) goes into the folder DST, which is
made; so does a file SRC. Links that lead out of it are left out, and so is what
is neither file, folder nor link. With - as DST, a tar stream of files and folders
goes to standard output.

With --only-changes, what execs have changed since the session began, or with
--exec what that one has. What they removed is not removed here.`,
		Example: `  caisson files pull work . ./out --only-changes
  caisson files pull work . - | tar t`,
		Args: cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			svc, err := open[api.Changes](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			return withFiles(cmd.Context(), cfg, args, func(ctx context.Context, f api.Files, a []string) error {
				opts := transfer.PullOptions{}
				src := inWorkspace(a[0])
				if changed || exec != "" {
					if opts.Paths, err = changedPaths(ctx, svc, args[0], exec, src); err != nil {
						return err
					}
					opts.Only = true
				}
				info, err := f.Stat(ctx, src)
				if err != nil {
					return err
				}
				if info.Type != "dir" {
					opts.Paths, opts.Only = []string{path.Base(src)}, true
					src = path.Dir(src)
				}
				if a[1] == "-" {
					return tarOut(ctx, cfg, f, src, opts)
				}
				done := t.watch(cfg, "pull "+a[0])
				opts.Options = t.Options
				m, err := transfer.Pull(ctx, f, src, a[1], opts)
				done()
				if err != nil {
					return err
				}
				return t.report(cfg, cfg.IO.Out, m)
			})
		},
	}
	t.add(cmd.Flags())
	cmd.Flags().BoolVar(&changed, "only-changes", false, "what execs have changed since the session began")
	cmd.Flags().StringVar(&exec, "exec", "", "what this exec has changed: its `ID` or the beginning of it")
	return cmd
}

// changedPaths lists what is there of what execs have changed, below a folder.
func changedPaths(ctx context.Context, svc api.Changes, session, exec, dir string) ([]string, error) {
	opts := api.ChangesOptions{Names: true}
	if exec != "" {
		var err error
		if opts.Exec, err = changedExec(ctx, svc, session, exec); err != nil {
			return nil, err
		}
	}
	diffs, err := svc.Diff(ctx, session, opts)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, d := range diffs {
		if d.Op == sandbox.OpDeleted {
			continue
		}
		name := d.Path
		if dir != "." {
			var below bool
			if name, below = strings.CutPrefix(name, dir+"/"); !below {
				continue
			}
		}
		paths = append(paths, name)
	}
	return paths, nil
}

// tarOut writes a folder as a tar stream. What comes from the sandbox is written
// anew: names that lead out, and what is neither file nor folder nor a link that
// stays inside, do not get into it.
func tarOut(ctx context.Context, cfg Config, f api.Files, src string, opts transfer.PullOptions) error {
	if opts.Only && len(opts.Paths) == 0 {
		return tar.NewWriter(cfg.IO.Out).Close()
	}
	m, err := transfer.Tar(ctx, f, src, opts.Paths, cfg.IO.Out)
	for _, name := range m.LeftOut {
		_, _ = fmt.Fprintf(cfg.IO.Err, "caisson: left out %s\n", visible(name)) // as in printError
	}
	return err
}

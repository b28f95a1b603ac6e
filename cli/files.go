package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

func newFiles(cfg Config) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "files",
		Short: "The files of a session's workspace",
		Long: `The files of a session's workspace, as its user sees them. Paths are relative to
/workspace, and nothing leads out of it. ls, stat, cat, write, get, mkdir, mv and rm
also reach /tmp, /var/tmp and the home folder, /home/sandbox, by absolute paths:
those of the session's first sandbox, with which they end.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newFilesList(cfg), newFilesPut(cfg), newFilesGet(cfg), newFilesRemove(cfg), newFilesWatch(cfg), newFilesPush(cfg), newFilesPull(cfg),
		filesVerb(cfg, "cat SESSION PATH", "Print a file", 2, func(ctx context.Context, f api.Files, a []string) error {
			_, err := f.Read(ctx, a[0], 0, 0, cfg.IO.Out)
			return err
		}),
		newFilesWrite(cfg),
		filesVerb(cfg, "stat SESSION PATH", "Describe an entry as JSON", 2, func(ctx context.Context, f api.Files, a []string) error {
			info, err := f.Stat(ctx, a[0])
			if err != nil {
				return err
			}
			return json.NewEncoder(cfg.IO.Out).Encode(info)
		}),
		filesVerb(cfg, "mkdir SESSION PATH", "Make a folder and those above it", 2, func(ctx context.Context, f api.Files, a []string) error {
			return f.Mkdir(ctx, a[0], 0)
		}),
		filesVerb(cfg, "mv SESSION FROM TO", "Move an entry", 3, func(ctx context.Context, f api.Files, a []string) error {
			return f.Move(ctx, a[0], a[1])
		}))
	return cmd
}

// filesVerb is a command with n arguments, the first of which is the session.
func filesVerb(cfg Config, use, short string, n int, do func(context.Context, api.Files, []string) error) *cobra.Command {
	return &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.ExactArgs(n),
		RunE:  func(cmd *cobra.Command, args []string) error { return withFiles(cmd.Context(), cfg, args, do) },
	}
}

func withFiles(ctx context.Context, cfg Config, args []string, do func(context.Context, api.Files, []string) error) error {
	svc, err := open[api.Workspaces](ctx, cfg)
	if err != nil {
		return err
	}
	f, err := svc.Files(ctx, args[0])
	if err != nil {
		return err
	}
	return do(ctx, f, args[1:])
}

func newFilesList(cfg Config) *cobra.Command {
	var depth int
	var asJSON bool
	cmd := &cobra.Command{
		Use: "ls SESSION [PATH]", Aliases: []string{"list"},
		Short: "List a folder",
		Args:  cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withFiles(cmd.Context(), cfg, args, func(ctx context.Context, f api.Files, a []string) error {
				dir := "."
				if len(a) == 1 {
					dir = a[0]
				}
				enc := json.NewEncoder(cfg.IO.Out)
				t := newTable(cfg.IO.Out, "MODE", "SIZE", "MODIFIED", "PATH")
				for info, err := range f.Tree(ctx, dir, depth) {
					if err != nil {
						return err
					}
					if asJSON {
						if err := enc.Encode(info); err != nil {
							return err
						}
						continue
					}
					name := shownName(info.Path)
					switch info.Type {
					case "dir":
						name += "/"
					case "link":
						name += " -> " + shownName(info.Target)
					}
					t.row(os.FileMode(info.Mode).String(), fmt.Sprint(info.Size), info.MTime.Format(time.RFC3339), name)
				}
				if asJSON {
					return nil
				}
				return t.flush()
			})
		},
	}
	countVar(cmd.Flags(), &depth, "depth", 1, "how many levels; 0 is all of them")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON lines")
	return cmd
}

func newFilesWrite(cfg Config) *cobra.Command {
	var force bool
	return forceFlag(filesVerb(cfg, "write SESSION PATH", "Write standard input into a file", 2, func(ctx context.Context, f api.Files, a []string) error {
		if !force {
			if err := respect(ctx, f, a[0]); err != nil {
				return err
			}
		}
		_, err := f.Write(ctx, a[0], 0, cfg.IO.In)
		return err
	}), &force)
}

func newFilesPut(cfg Config) *cobra.Command {
	var force bool
	return forceFlag(&cobra.Command{
		Use:   "put SESSION SRC[:DST]…",
		Short: "Copy files and folders of this host into the workspace",
		Args:  cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var files []sandbox.File
			var held contents
			for _, spec := range args[1:] {
				list, err := held.files(spec)
				if err != nil {
					return err
				}
				files = append(files, list...)
			}
			return withFiles(cmd.Context(), cfg, args, func(ctx context.Context, f api.Files, _ []string) error {
				var names []string
				for _, file := range files {
					names = append(names, file.Path)
				}
				if !force {
					if err := respect(ctx, f, names...); err != nil {
						return err
					}
				}
				return f.Put(ctx, files, sandbox.Local{Contents: held.open})
			})
		},
	}, &force)
}

func newFilesGet(cfg Config) *cobra.Command {
	var force bool
	return forceFlag(&cobra.Command{
		Use:   "get SESSION PATH [DST]",
		Short: "Copy a file or a folder of the workspace to this host",
		Long:  "Copy a file or a folder of the workspace to this host. Links are left out: what they lead to may not be theirs to show.",
		Args:  cobra.RangeArgs(2, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withFiles(cmd.Context(), cfg, args, func(ctx context.Context, f api.Files, a []string) error {
				dst := path.Base(a[0])
				if len(a) == 2 {
					dst = a[1]
				}
				return getTree(ctx, cfg, f, a[0], dst, force)
			})
		},
	}, &force)
}

// getTree copies an entry to dst. Below dst it works through os.Root, so that
// no name from the sandbox can lead elsewhere.
func getTree(ctx context.Context, cfg Config, f api.Files, src, dst string, force bool) error {
	info, err := f.Stat(ctx, src)
	if err != nil {
		return err
	}
	if st, err := os.Stat(dst); err == nil && st.IsDir() && info.Type != "dir" {
		dst = filepath.Join(dst, path.Base(info.Path))
	}
	if info.Type == "file" {
		return getFile(ctx, f, info, dst, hostFolder{os.Stat, os.Remove, os.OpenFile}, force)
	}
	if info.Type != "dir" {
		return sandbox.Errorf(sandbox.Invalid, "%s is neither a file nor a folder", src).WithHint("get what it leads to by its own name")
	}
	if err := os.MkdirAll(dst, 0o755); err != nil {
		return sandbox.Errorf(sandbox.Invalid, "%w", err).WithHint("choose another destination")
	}
	root, err := os.OpenRoot(dst)
	if err != nil {
		return err
	}
	defer root.Close()
	for e, err := range f.Tree(ctx, info.Path, 0) {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(filepath.FromSlash(info.Path), filepath.FromSlash(e.Path))
		if err != nil {
			return err
		}
		if err := getEntry(ctx, cfg, f, root, e, rel, force); err != nil {
			return err
		}
	}
	return nil
}

func getEntry(ctx context.Context, cfg Config, f api.Files, root *os.Root, e sandbox.FileInfo, rel string, force bool) error {
	switch e.Type {
	case "dir":
		err := root.Mkdir(rel, 0o755)
		if errors.Is(err, os.ErrExist) {
			return nil
		}
		return err
	case "file":
		return getFile(ctx, f, e, rel, hostFolder{root.Stat, root.Remove, root.OpenFile}, force)
	}
	_, _ = fmt.Fprintf(cfg.IO.Err, "caisson: left out %s, which is neither a file nor a folder\n", shownName(e.Path)) // as in printError
	return nil
}

// hostFolder is where a file of this host is made.
type hostFolder struct {
	stat   func(string) (os.FileInfo, error)
	remove func(string) error
	open   func(string, int, os.FileMode) (*os.File, error)
}

func getFile(ctx context.Context, f api.Files, info sandbox.FileInfo, dst string, at hostFolder, force bool) error {
	if err := respectHost(dst, at.stat); err != nil {
		if !force {
			return err
		}
		if err := at.remove(dst); err != nil {
			return sandbox.Errorf(sandbox.Denied, "%w", err).WithHint("choose another destination")
		}
	}
	out, err := at.open(dst, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, os.FileMode(info.Mode)&0o777)
	if err != nil {
		return sandbox.Errorf(sandbox.Invalid, "%w", err).WithHint("choose another destination")
	}
	_, err = f.Read(ctx, info.Path, 0, 0, io.Writer(out))
	return errors.Join(err, out.Close())
}

func newFilesRemove(cfg Config) *cobra.Command {
	var recursive bool
	cmd := filesVerb(cfg, "rm SESSION PATH", "Remove an entry", 2, func(ctx context.Context, f api.Files, a []string) error {
		return f.Remove(ctx, a[0], recursive)
	})
	cmd.Flags().BoolVarP(&recursive, "recursive", "r", false, "also a folder with something in it")
	return cmd
}

func newFilesWatch(cfg Config) *cobra.Command {
	return &cobra.Command{
		Use:   "watch SESSION [PATH]",
		Short: "Print changes as JSON lines, until interrupted",
		Args:  cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withFiles(cmd.Context(), cfg, args, func(ctx context.Context, f api.Files, a []string) error {
				dir := "."
				if len(a) == 1 {
					dir = a[0]
				}
				enc := json.NewEncoder(cfg.IO.Out)
				for e, err := range f.Watch(ctx, dir, true) {
					if err != nil {
						return err
					}
					if err := enc.Encode(e); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

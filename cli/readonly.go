package cli

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

// forceFlag adds --force, without which a file that is read-only stays as it is.
func forceFlag(cmd *cobra.Command, force *bool) *cobra.Command {
	cmd.Flags().BoolVar(force, "force", false, "also in place of a file that is read-only")
	return cmd
}

func readOnly(name string) error {
	return sandbox.Errorf(sandbox.Denied, "%s is read-only", shownName(name)).WithHint("--force puts another in its place")
}

// respect refuses names that are files of the workspace which nobody may write.
func respect(ctx context.Context, f api.Files, names ...string) error {
	mine := map[string]bool{}
	for _, name := range names {
		mine[inWorkspace(name)] = true
	}
	looked := map[string]bool{}
	for name := range mine {
		top, _, _ := strings.Cut(name, "/")
		if top == "" {
			top = name // beside the workspace: one file
		}
		if looked[top] {
			continue
		}
		looked[top] = true
		if err := respectBelow(ctx, f, top, mine); err != nil {
			return err
		}
	}
	return nil
}

func respectBelow(ctx context.Context, f api.Files, top string, mine map[string]bool) error {
	check := func(info sandbox.FileInfo) error {
		if mine[info.Path] && info.Type == "file" && info.Mode&0o222 == 0 {
			return readOnly(info.Path)
		}
		return nil
	}
	info, err := f.Stat(ctx, top)
	if errors.Is(err, sandbox.NotFound) {
		return nil
	}
	if err != nil || info.Type != "dir" {
		return errors.Join(err, check(info))
	}
	for info, err := range f.Tree(ctx, top, 0) {
		if err != nil {
			return err
		}
		if err := check(info); err != nil {
			return err
		}
	}
	return nil
}

// respectHost refuses a file of this host that nobody may write. The
// superuser could: it is not what the file says.
func respectHost(name string, stat func(string) (fs.FileInfo, error)) error {
	if st, err := stat(name); err == nil && st.Mode().IsRegular() && st.Mode()&0o222 == 0 {
		return readOnly(name)
	}
	return nil
}

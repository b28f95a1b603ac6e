package caisson

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/caisson-dev/caisson/sandbox"
)

// userRules are the folders below CAISSON_POLICY_RULES, each a bundle of rules
// of its own. Rules that lie beside them are refused.
func (c *Caisson) userRules() (map[string]fs.FS, error) {
	dir := c.getenv("CAISSON_POLICY_RULES")
	if dir == "" {
		return nil, nil
	}
	if err := isFolder("CAISSON_POLICY_RULES", dir); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "CAISSON_POLICY_RULES: %w", err).WithHint("check the folder's permissions")
	}
	bundles := map[string]fs.FS{}
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		if strings.HasPrefix(e.Name(), ".") {
			continue // of git, of an editor, of what mounts the folder
		}
		st, err := os.Stat(name) // follows a link
		switch {
		case err != nil:
			return nil, sandbox.Errorf(sandbox.Invalid, "CAISSON_POLICY_RULES: %w", err).WithHint("mend the link, or remove it")
		case st.IsDir():
			bundles[e.Name()] = os.DirFS(name)
		case filepath.Ext(name) == ".rego":
			return nil, sandbox.Errorf(sandbox.Invalid, "CAISSON_POLICY_RULES: %s is in no bundle, so that nothing would read it", name).
				WithHint("move it into a folder, such as %s, with `package caisson.user.team`", filepath.Join(dir, "team", e.Name()))
		}
	}
	return bundles, nil
}

func isFolder(variable, dir string) error {
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		return sandbox.Errorf(sandbox.Invalid, "%s: %s is not a folder", variable, dir).WithHint("set it to a folder, or unset it")
	}
	return nil
}

// overlay is the shipped rules with an operator's data in place of ours, file
// by file: hosts.yaml in the folder stands for data/hosts.yaml.
type overlay struct{ base, data fs.FS }

// Open opens the operator's file where there is one.
func (o overlay) Open(name string) (fs.File, error) {
	if path.Dir(name) == "data" {
		f, err := o.data.Open(path.Base(name))
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
	}
	return o.base.Open(name)
}

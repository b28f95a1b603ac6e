package gate

import (
	"bytes"
	"context"
	"path"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/policy"
)

// importPython finds the files of the workspace that an import loads.
func (w *walker) importPython(ctx context.Context, from *unit, r policy.Ref) error {
	module := strings.TrimLeft(r.Name, ".")
	dots := len(r.Name) - len(module)
	var roots []string
	if dots > 0 {
		base := path.Dir(from.name)
		for range dots - 1 {
			base = path.Dir(base)
		}
		roots = []string{base}
	} else {
		roots = from.roots
	}
	var parts []string
	if module != "" {
		parts = strings.Split(module, ".")
	}
	anywhere := dots == 0 && w.wanders
	for _, root := range roots {
		found, err := w.pythonIn(ctx, from, root, r.Name[:dots], parts, r.Names)
		if found && !anywhere || err != nil {
			return err
		}
	}
	if dots > 0 && r.By != "import" && r.By != "from" {
		// By a call, which may name the package that it is relative to.
		return w.addAll(ctx, from, []string{".py", ".pyc", ".so"}, from.staged)
	}
	if !anywhere {
		return nil // of the image
	}
	if bytes.Contains(from.code, []byte("sys.path")) || bytes.Contains(from.code, []byte("PYTHONPATH")) {
		if err := w.archives(ctx); err != nil {
			return err
		}
	}
	// It looks in folders of its own choosing: any folder may be meant.
	infos, err := w.everything(ctx)
	if err != nil {
		return err
	}
	for _, i := range infos {
		if i.Type != "dir" || strings.Contains(i.Path, "__pycache__") {
			continue
		}
		if _, err := w.pythonIn(ctx, from, i.Path, r.Name[:dots], parts, r.Names); err != nil {
			return err
		}
	}
	return nil
}

// archives tells of the archives that Python can import from.
func (w *walker) archives(ctx context.Context) error {
	infos, err := w.everything(ctx)
	if err != nil {
		return err
	}
	for _, i := range infos {
		switch path.Ext(i.Path) {
		case ".zip", ".egg", ".whl", ".pyz":
			w.cannot(i.Path, "Python imports out of archives that it is told to look in")
		}
	}
	return nil
}

// pythonIn looks for a module in one folder, as Python does: a package, a
// module, a folder. as is what from calls that folder.
func (w *walker) pythonIn(ctx context.Context, from *unit, dir, as string, parts, names []string) (bool, error) {
	for n, part := range parts {
		entries, err := w.list(ctx, dir)
		if err != nil {
			return true, err
		}
		sub := path.Join(dir, part)
		if as != "" && !strings.HasSuffix(as, ".") {
			as += "."
		}
		as += part
		var inner map[string]string
		if entries[part] == "dir" || entries[part] == "link" {
			if inner, err = w.list(ctx, sub); err != nil {
				return true, err
			}
		}
		switch {
		case inner["__init__.py"] != "":
			if err := w.addModule(ctx, from, path.Join(sub, "__init__.py"), as+policy.PackageInit); err != nil {
				return true, err
			}
		case entries[part+".py"] != "":
			return true, w.addModule(ctx, from, sub+".py", as)
		case w.machine(dir, entries, part):
			return true, nil
		case inner == nil:
			return n > 0, nil
		}
		dir = sub
	}
	for _, name := range names {
		if name == "*" {
			entries, err := w.list(ctx, dir)
			if err != nil {
				return true, err
			}
			for e := range entries {
				if m, ok := strings.CutSuffix(e, ".py"); ok {
					names = append(slices.Clone(names), m)
				}
			}
			break
		}
	}
	for _, name := range names {
		if name == "*" || strings.Contains(name, ".") {
			continue
		}
		if _, err := w.pythonIn(ctx, from, dir, as, []string{name}, nil); err != nil {
			return true, err
		}
	}
	return true, nil
}

// machine reports a module that is no source text.
func (w *walker) machine(dir string, entries map[string]string, module string) bool {
	for e := range entries {
		if strings.HasPrefix(e, module+".") && (strings.HasSuffix(e, ".so") || strings.HasSuffix(e, ".pyc")) {
			w.loads = true
			w.cannot(path.Join(dir, e), "it is compiled")
			return true
		}
	}
	return false
}

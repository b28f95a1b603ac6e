package gate

import (
	"context"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/policy"
	"github.com/caisson-dev/caisson/sandbox"
)

// Files that are staged beside a program are judged as if they lay in the
// workspace, each by itself and with what it imports of the others.

// staging is a workspace with staged files laid over it.
type staging struct {
	manager.Workspace
	files map[string][]byte
}

func newStaging(q *manager.ExecQuestion) manager.Workspace {
	if len(q.Staged) == 0 {
		return q.Workspace
	}
	s := &staging{Workspace: q.Workspace, files: map[string][]byte{}}
	for _, f := range q.Staged {
		s.files[f.Name] = f.Data
	}
	return s
}

// ReadFile implements [manager.Workspace].
func (s *staging) ReadFile(ctx context.Context, name string, most int64) ([]byte, error) {
	b, ok := s.files[path.Clean(name)]
	switch {
	case !ok:
		return s.Workspace.ReadFile(ctx, name, most)
	case int64(len(b)) > most:
		return nil, sandbox.Errorf(sandbox.Exhausted, "%s has more than %s", name, sandbox.Bytes(most).Human())
	}
	return b, nil
}

// List implements [manager.Workspace].
func (s *staging) List(ctx context.Context, dir string, depth int) ([]sandbox.FileInfo, error) {
	below, err := s.Workspace.List(ctx, dir, depth)
	if err != nil {
		return nil, err
	}
	found := map[string]sandbox.FileInfo{}
	for _, i := range below {
		found[i.Path] = i
	}
	for name, b := range s.files {
		for kind := "file"; name != "."; name, kind = path.Dir(name), "dir" {
			rest, ok := strings.CutPrefix(name, path.Clean(dir)+"/")
			if path.Clean(dir) == "." {
				rest, ok = name, true
			}
			if ok && (depth == 0 || strings.Count(rest, "/") < depth) {
				found[name] = sandbox.FileInfo{Path: name, Type: kind, Size: int64(len(b))}
			}
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b sandbox.FileInfo) int { return strings.Compare(a.Path, b.Path) }), nil
}

// loadable are the suffixes of files that may be run without being named.
var loadable = []string{".py", ".pyc", ".so", ".js", ".cjs", ".mjs", ".node"}

// examineStaged judges all staged files that may be run. Imports are looked for
// in each of the folders that they are staged in.
func (e *execution) examineStaged(ctx context.Context) error {
	roots := slices.Clone(e.w.search)
	for _, f := range e.q.Staged {
		if top, _, in := strings.Cut(f.Name, "/"); in && !slices.Contains(roots, top) {
			roots = append(roots, top)
		}
	}
	for _, f := range e.q.Staged {
		lang := languageOf(f.Name, f.Data)
		if lang == "" && !slices.Contains(loadable, path.Ext(f.Name)) {
			continue
		}
		if e.isShipped(lang, string(f.Data)) {
			e.w.units[f.Name] = &unit{name: f.Name, lang: lang, code: f.Data, staged: true}
			e.w.ship(e.w.units[f.Name])
			continue
		}
		start := e.w.handedTo("", policy.Ref{})
		if err := e.w.addFileStarted(ctx, f.Name, lang, true, roots, start); err != nil {
			return err
		}
	}
	return nil
}

// own reports whether the run's code is one of caisson's own: then what it finds
// staged is all that it runs, and it need not be judged itself.
func (e *execution) own() bool { return e.f.code && slices.Contains(e.ours, e.q.Run.Code) }

// isShipped reports whether a text is one of caisson's own that need not be judged.
func (e *execution) isShipped(lang, code string) bool {
	return lang == "python" && slices.Contains(e.shipped, code)
}

// ship takes a text of caisson's own as it is. What it loads must have been judged, as
// what is run in its place sees to.
func (w *walker) ship(u *unit) {
	u.shipped, w.loads = true, true
	w.order = append(w.order, u)
}

package gate

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/internal/lazyregexp"
	"github.com/caisson-dev/caisson/policy"
	"github.com/caisson-dev/caisson/sandbox"
)

// starters are programs that run what they find by starting it, and not in their own
// process.
var starters = []string{"make", "gmake", "git", "npm", "npx", "pnpm", "go", "cargo", "ninja", "just", "parallel"}

// followProgram looks at what a program runs that it finds in the workspace.
func (w *walker) followProgram(ctx context.Context, from *unit, r policy.Ref) error {
	w.loads = true
	switch r.Name {
	case "pytest":
		for _, word := range r.Args {
			if strings.Contains(word, "doctest") || path.Ext(word) == ".txt" || path.Ext(word) == ".rst" {
				w.cannot(word, "pytest runs the examples in it, which are not judged")
			} else if name, _, _ := strings.Cut(word[strings.Index(word, "=")+1:], "::"); !w.within(name) {
				w.cannot(word, "pytest runs what is in it, outside the workspace")
			}
		}
		py := &unit{roots: from.roots}
		if err := w.settings(ctx, "pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg"); err != nil {
			return err
		}
		return w.addAll(ctx, py, []string{".py", ".pyc", ".so"}, false)
	case "coverage":
		return w.addAll(ctx, &unit{roots: from.roots}, []string{".py", ".pyc", ".so"}, false)
	case "node --test":
		return w.addAll(ctx, &unit{}, suffixesOf("javascript"), false)
	case "git":
		return w.hooks(ctx)
	case "make", "gmake":
		found, err := w.holds(ctx, "GNUmakefile", "makefile", "Makefile")
		if err != nil || !found && !slices.ContainsFunc(r.Args, func(word string) bool { return strings.HasPrefix(word, "-") }) {
			return err
		}
	case "go":
		if plainGo(r.Args) {
			w.unknown = append(w.unknown, map[string]any{"name": "go " + r.Args[0], "language": "go"})
			return nil
		}
	case "pip", "pip3":
		if !slices.ContainsFunc(r.Args, localPackage) {
			return nil // of an index: the rules about networks and installing speak of it
		}
	}
	w.cannot(r.Name, "it runs what it finds in the workspace, which is not followed")
	return nil
}

// within reports whether a path leads into the workspace, or to what programs cannot
// write.
func (w *walker) within(name string) bool {
	if !path.IsAbs(name) {
		name = path.Join(w.dir, name)
	}
	name = w.followed(name)
	_, in := inWorkspace(name)
	return in || !w.writable(path.Dir(name))
}

// plainGo reports whether the words of a go command compile and run Go alone, which is
// a language that nothing judges, and no other program by a flag.
func plainGo(words []string) bool {
	return len(words) > 0 && slices.Contains([]string{"build", "run", "test"}, words[0]) && !slices.ContainsFunc(words, func(word string) bool {
		return strings.HasPrefix(word, "-") && (strings.Contains(word, "exec") || strings.Contains(word, "tool") || strings.Contains(word, "overlay"))
	})
}

// localPackage reports whether a word names a package of the workspace to pip,
// or a file that does.
func localPackage(word string) bool {
	return strings.HasPrefix(word, ".") || strings.Contains(word, "/") || word == "-e" || word == "-r" || word == "--editable" || word == "--requirement" ||
		strings.HasSuffix(word, ".whl") || strings.HasSuffix(word, ".zip") || strings.HasSuffix(word, ".gz")
}

// holds reports that a file of one of some names lies in the workspace.
func (w *walker) holds(ctx context.Context, names ...string) (bool, error) {
	infos, err := w.everything(ctx)
	return slices.ContainsFunc(infos, func(i sandbox.FileInfo) bool { return slices.Contains(names, path.Base(i.Path)) }), err
}

// settings watches files that steer a program, where they are there.
func (w *walker) settings(ctx context.Context, names ...string) error {
	entries, err := w.list(ctx, ".")
	if err != nil {
		return err
	}
	for _, name := range names {
		if entries[name] == "" || w.units[name] != nil {
			continue
		}
		b, err := w.ws.ReadFile(ctx, name, mostFile)
		if err != nil {
			w.cannot(name, "it cannot be read before: "+err.Error())
			continue
		}
		u := &unit{name: name, lang: "settings", code: b, inPlace: true}
		w.units[name] = u
		w.order = append(w.order, u)
	}
	return nil
}

// gitRuns are settings of git's that name programs.
var gitRuns = lazyregexp.New(`(?im)^\s*(fsmonitor|hookspath|sshcommand|pager|editor|askpass|command|helper|textconv|clean|smudge|process|external|driver|program|proxy|gitproxy|uploadpack|receivepack|path|cmd|packobjectshook|sequence|tool|[a-z0-9-]+\s*=\s*"?!)`)

// hooks tells of what a repository of the workspace has git start.
func (w *walker) hooks(ctx context.Context) error {
	infos, err := w.everything(ctx)
	if err != nil {
		return err
	}
	for _, i := range infos {
		dir, base := path.Split(i.Path)
		switch {
		case i.Type == "dir":
		case path.Base(dir) == "hooks" && !strings.HasSuffix(base, ".sample"):
			w.cannot(i.Path, "git starts it, which is not judged")
		case base == "config" || base == "config.worktree":
			b, err := w.ws.ReadFile(ctx, i.Path, mostFile)
			if err != nil || gitRuns().Match(b) || strings.Contains(strings.ToLower(string(b)), "[include") {
				w.cannot(i.Path, "git may start what it says, which is not judged")
			}
		}
	}
	return ctx.Err()
}

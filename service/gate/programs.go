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
	case "make", "gmake":
		return w.followMake(ctx, r)
	case "git":
		return w.followGit(ctx, r)
	case "npm", "npx", "yarn", "pnpm":
		return w.followNPM(ctx, r)
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

// elsewhere reports whether a program works in another folder than the run's:
// it is told to, or a text goes there first.
func (w *walker) elsewhere(r policy.Ref, flags ...string) bool {
	return w.wanders || slices.ContainsFunc(r.Args, func(word string) bool {
		return slices.ContainsFunc(flags, func(f string) bool {
			return word == f || strings.HasPrefix(word, f+"=") || len(f) == 2 && strings.HasPrefix(word, f)
		})
	})
}

// folders are the run's folder, or all of the workspace for what works
// elsewhere, as far as they hold one of some files.
func (w *walker) folders(ctx context.Context, all bool, names ...string) ([]string, error) {
	var found []string
	if dir, in := inWorkspace(w.dir); in && !all {
		entries, err := w.list(ctx, dir)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(names, func(n string) bool { return entries[n] != "" }) {
			found = append(found, dir)
		}
		return found, nil
	}
	infos, err := w.everything(ctx)
	if err != nil {
		return nil, err
	}
	for _, i := range infos {
		if dir := path.Dir(i.Path); slices.Contains(names, path.Base(i.Path)) && !slices.Contains(found, dir) && !strings.Contains("/"+dir+"/", "/node_modules/") {
			found = append(found, dir)
		}
	}
	return found, nil
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

var (
	makeVariable = lazyregexp.New(`\$[({]([A-Za-z0-9_.]+)[)}]`)
	makeShell    = lazyregexp.New(`\$[({]shell ([^)}]*)[)}]`)
	makeAssign   = lazyregexp.New(`^(?:export )?\s*(?:[^\s:=#]+(?: +[^\s:=#]+)*\s*:\s*(?:export\s+)?)?([A-Za-z_][A-Za-z0-9_]*)\s*([:?+]?:?=)\s*(.*)$`)
	makeOdd      = lazyregexp.New(`^\s*(define|override\s+define)\b|\.RECIPEPREFIX|\$[({](eval|call|file|guile|foreach)\b|^\s*\.ONESHELL`)
	makeCode     = lazyregexp.New(`MAKEFLAGS\b[^\n]*--(eval|file|makefile)`)
	makeInclude  = lazyregexp.New(`^\s*(-?include|sinclude|load)\b`)
)

// makefiles are the names that make looks for, the first first.
var makefiles = []string{"GNUmakefile", "makefile", "Makefile"}

// followMake judges the recipes of the Makefiles that are meant, each as the
// shell script that they come to.
func (w *walker) followMake(ctx context.Context, r policy.Ref) error {
	given := map[string]string{}
	for i, word := range r.Args {
		name, value, assigns := strings.Cut(word, "=")
		name = strings.TrimRight(name, ":?+")
		if assigns && !strings.HasPrefix(word, "-") {
			given[name] = value
		}
		switch {
		case word == "-e" || word == "--environment-overrides":
			w.cannot("make", word+" has variables in place of what the Makefile says")
		case strings.HasPrefix(word, "--eval"):
			w.cannot("make", "--eval is code of make's")
		case assigns && !strings.HasPrefix(word, "-") && strings.ContainsAny(value, " \t/;$`|&<>"):
			w.cannot("make", name+" is set to "+value+", which its recipes may run")
		case word == "-f" || word == "--file" || word == "--makefile":
			if i+1 < len(r.Args) {
				if err := w.makefile(ctx, r.Args[i+1], given); err != nil {
					return err
				}
			}
		case strings.HasPrefix(word, "-f"), strings.HasPrefix(word, "--file="), strings.HasPrefix(word, "--makefile="):
			w.cannot("make", "write -f and its file apart: "+word)
		}
	}
	dirs, err := w.folders(ctx, w.elsewhere(r, "-C", "--directory"), makefiles...)
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		entries, err := w.list(ctx, dir)
		if err != nil {
			return err
		}
		for _, n := range makefiles {
			if entries[n] != "" {
				if err := w.judgeMakefile(ctx, path.Join(dir, n), path.Join(sandbox.WorkspaceDir, dir), given); err != nil {
					return err
				}
				break
			}
		}
	}
	return nil
}

// makefile judges a Makefile that a command line names.
func (w *walker) makefile(ctx context.Context, word string, given map[string]string) error {
	name, in := inWorkspace(word)
	if dir, ok := inWorkspace(w.dir); ok && !path.IsAbs(word) {
		name = path.Join(dir, word)
	}
	if !in || word == "-" || w.wanders {
		w.cannot(word, "make is told to read it, and where it lies is not known before")
		return nil
	}
	return w.judgeMakefile(ctx, name, w.dir, given)
}

// judgeMakefile judges a Makefile with the variables that its command line gives,
// which stand in place of its own, and with those of the environment.
func (w *walker) judgeMakefile(ctx context.Context, name, dir string, given map[string]string) error {
	if w.units[name] != nil {
		return nil
	}
	code, err := w.ws.ReadFile(ctx, name, mostFile)
	if err != nil {
		w.cannot(name, "it cannot be read before: "+err.Error())
		return nil
	}
	file := &unit{name: name, lang: "makefile", code: code, inPlace: true}
	w.units[name] = file
	script, odd := recipes(string(code), given)
	if odd != "" {
		w.cannot(name, odd)
	}
	u := &unit{name: name, lang: "bash", code: []byte(script), shown: true, dir: dir, by: w.by, start: w.passedOn(w.by, &unit{}, policy.Ref{})}
	u.start.Sealed = false                                  // make has variables of its own
	u.start.Args = []policy.Given{{From: []string{"argv"}}} // $@ is make's own
	for n, value := range given {
		u.start.Env[n] = policy.Passed()
		if value != "" {
			u.start.Env[n] = policy.Told(value)
		}
	}
	odd = ""
	for _, n := range []string{"MAKEFLAGS", "GNUMAKEFLAGS", "MAKEFILES"} {
		if flags, ok := u.start.Env[n]; ok && (n == "MAKEFILES" || !ordinaryFlags(flags)) {
			odd = n
		}
	}
	if odd != "" || slices.ContainsFunc(w.order, func(o *unit) bool { return makeCode().Match(o.code) }) {
		w.cannot("make", firstOf(odd, "MAKEFLAGS")+" may hold code of make's, or other Makefiles")
	}
	w.units[name+" (recipes)"] = u
	return w.examine(ctx, u)
}

// ordinaryFlags reports whether flags of make's say how it works, and not on what.
func ordinaryFlags(v policy.Given) bool {
	return !slices.ContainsFunc(v.Alts, func(s string) bool {
		return strings.Contains(s, "eval") || strings.Contains(s, "file") || strings.Contains(s, "=") && !strings.HasPrefix(s, "-j")
	})
}

// recipes turns a Makefile into a shell script, line by line so that lines stay
// what they are.
func recipes(text string, given map[string]string) (script, odd string) {
	var b strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		switch {
		case strings.HasPrefix(line, "\t"):
			line = strings.TrimLeft(line, "\t @-+")
		case makeInclude().MatchString(line):
			odd, line = "it includes other files", ""
		case makeOdd().MatchString(line):
			odd, line = "it makes rules of text, or sets what a recipe begins with", ""
		case strings.TrimSpace(line) == "" || strings.HasPrefix(strings.TrimSpace(line), "#"):
			line = ""
		default:
			assign := makeAssign().FindStringSubmatch(line)
			switch {
			case assign != nil && assign[1] == "SHELL" && !strings.HasSuffix(assign[3], "sh"):
				odd, line = "it sets SHELL", ""
			case assign != nil:
				line = assignment(assign[1], assign[2], assign[3], given)
			case strings.Contains(line, ";"):
				_, line, _ = strings.Cut(line, ";")
			case makeShell().MatchString(line):
			default:
				line = "" // a rule's head, a condition
			}
		}
		line = makeShell().ReplaceAllString(line, "$$($1)")
		line = makeVariable().ReplaceAllStringFunc(line, func(s string) string {
			name := s[2 : len(s)-1]
			if strings.ContainsAny(name, ".") {
				return s
			}
			return "${" + name + "}"
		})
		b.WriteString(strings.ReplaceAll(line, "$$", "$") + "\n")
	}
	return b.String(), odd
}

// assignment is a Makefile's assignment as a shell's: the command line's value
// goes before it, and the environment's before one that asks for that.
func assignment(name, op, value string, given map[string]string) string {
	word := quote(value)
	if makeShell().MatchString(value) {
		word = value
	}
	if own, ok := given[name]; ok && own != "" {
		word, op = quote(own), "="
	}
	switch op {
	case "?=":
		return name + "=${" + name + "-" + word + "}"
	case "+=":
		return name + `="$` + name + ` "` + word
	}
	return name + "=" + word
}

// gitRuns are settings of git's that name programs.
var gitRuns = lazyregexp.New(`(?im)^\s*(fsmonitor|hookspath|sshcommand|pager|editor|askpass|command|helper|textconv|clean|smudge|process|external|driver|program|proxy|gitproxy|uploadpack|receivepack|path|cmd|packobjectshook|sequence|tool|[a-z0-9-]+\s*=\s*"?!)`)

// followGit judges a repository's hooks, and what its settings run.
func (w *walker) followGit(ctx context.Context, r policy.Ref) error {
	dir, in := inWorkspace(w.dir)
	// Where it is told to go, where .git is a file that names another place, and
	// in a folder that is a repository itself, any repository may be meant.
	if !in || w.elsewhere(r, "-C", "--git-dir", "--work-tree", "-c") {
		return w.repositories(ctx)
	}
	for ; ; dir = path.Dir(dir) {
		entries, err := w.list(ctx, dir)
		if err != nil {
			return err
		}
		if kind := entries[".git"]; kind == "file" || kind == "link" || entries["HEAD"] != "" && entries["objects"] != "" {
			return w.repositories(ctx)
		} else if kind != "" {
			if err := w.repository(ctx, path.Join(dir, ".git")); err != nil {
				return err
			}
		}
		if dir == "." {
			return nil
		}
	}
}

// repositories judges every folder that git could take for a repository.
func (w *walker) repositories(ctx context.Context) error {
	infos, err := w.everything(ctx)
	if err != nil {
		return err
	}
	for _, i := range infos {
		switch path.Base(i.Path) {
		case "config", "hooks", "config.worktree":
			if err := w.repository(ctx, path.Dir(i.Path)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *walker) repository(ctx context.Context, git string) error {
	hooks, err := w.list(ctx, path.Join(git, "hooks"))
	if err != nil {
		return err
	}
	for h := range hooks {
		if strings.HasSuffix(h, ".sample") {
			continue
		}
		if err := w.addFile(ctx, path.Join(git, "hooks", h), "", false, nil); err != nil {
			return err
		}
	}
	for _, name := range []string{"config", "config.worktree"} {
		if err := w.gitConfig(ctx, path.Join(git, name)); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) gitConfig(ctx context.Context, name string) error {
	if w.units[name] != nil {
		return nil
	}
	b, err := w.ws.ReadFile(ctx, name, mostFile)
	if err != nil {
		return ctx.Err() // a folder without one is no repository
	}
	u := &unit{name: name, lang: "settings", code: b, inPlace: true}
	w.units[name] = u
	w.order = append(w.order, u)
	if m := gitRuns().Find(b); m != nil {
		w.cannot(name, "it sets "+strings.TrimSpace(string(m))+", which runs programs")
	}
	if strings.Contains(strings.ToLower(string(b)), "[include") {
		w.cannot(name, "it includes other settings")
	}
	return nil
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

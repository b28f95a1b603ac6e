package gate

import (
	"context"
	"encoding/json"
	"path"
	"regexp"
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
		found, err := w.pythonIn(ctx, from, root, parts, r.Names)
		if found && !anywhere || err != nil {
			return err
		}
	}
	if !anywhere {
		return nil // of the image
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
		if _, err := w.pythonIn(ctx, from, i.Path, parts, r.Names); err != nil {
			return err
		}
	}
	return nil
}

// pythonIn looks for a module in one folder, as Python does: a package, a
// module, a folder.
func (w *walker) pythonIn(ctx context.Context, from *unit, dir string, parts, names []string) (bool, error) {
	for n, part := range parts {
		entries, err := w.list(ctx, dir)
		if err != nil {
			return true, err
		}
		sub := path.Join(dir, part)
		var inner map[string]string
		if entries[part] == "dir" || entries[part] == "link" {
			if inner, err = w.list(ctx, sub); err != nil {
				return true, err
			}
		}
		switch {
		case inner["__init__.py"] != "":
			if err := w.addFile(ctx, path.Join(sub, "__init__.py"), "python", from.staged, from.roots); err != nil {
				return true, err
			}
		case entries[part+".py"] != "":
			return true, w.addFile(ctx, sub+".py", "python", from.staged, from.roots)
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
		if _, err := w.pythonIn(ctx, from, dir, []string{name}, nil); err != nil {
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

// followProgram looks at what a program runs that it finds in the workspace.
func (w *walker) followProgram(ctx context.Context, from *unit, r policy.Ref) error {
	w.loads = true
	switch r.Name {
	case "pytest":
		py := &unit{roots: from.roots}
		if err := w.settings(ctx, "pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg"); err != nil {
			return err
		}
		return w.addAll(ctx, py, []string{".py", ".pyc", ".so"}, false)
	case "node --test":
		return w.addAll(ctx, &unit{}, suffixesOf("javascript"), false)
	case "make", "gmake":
		return w.followMake(ctx, r)
	case "git":
		return w.followGit(ctx)
	}
	return w.followNPM(ctx, r)
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
	makeVariable = regexp.MustCompile(`\$[({]([A-Za-z0-9_.]+)[)}]`)
	makeShell    = regexp.MustCompile(`\$[({]shell ([^)}]*)[)}]`)
	makeAssign   = regexp.MustCompile(`^(?:export )?\s*([A-Za-z_][A-Za-z0-9_]*)\s*[:?+]?:?=\s*(.*)$`)
	makeInclude  = regexp.MustCompile(`^\s*(-?include|sinclude|load)\b`)
)

// followMake judges the recipes of a Makefile, as the shell script that they
// come to.
func (w *walker) followMake(ctx context.Context, r policy.Ref) error {
	dir, _ := inWorkspace(w.dir)
	entries, err := w.list(ctx, dir)
	if err != nil {
		return err
	}
	name := ""
	for _, n := range []string{"GNUmakefile", "makefile", "Makefile"} {
		if name == "" && entries[n] != "" {
			name = path.Join(dir, n)
		}
	}
	if name == "" || w.units[name] != nil {
		return nil
	}
	code, err := w.ws.ReadFile(ctx, name, mostFile)
	if err != nil {
		w.cannot(name, "it cannot be read before: "+err.Error())
		return nil
	}
	file := &unit{name: name, lang: "makefile", code: code, inPlace: true}
	w.units[name] = file
	script, odd := recipes(string(code))
	if odd != "" {
		w.cannot(name, odd)
	}
	u := &unit{name: name, lang: "bash", code: []byte(script), shown: true}
	w.units[name+" (recipes)"] = u
	return w.examine(ctx, u)
}

// recipes turns a Makefile into a shell script, line by line so that lines stay
// what they are.
func recipes(text string) (script, odd string) {
	var b strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		switch {
		case strings.HasPrefix(line, "\t"):
			line = strings.TrimLeft(line, "\t @-+")
		case makeInclude.MatchString(line):
			odd, line = "it includes other files", ""
		case strings.TrimSpace(line) == "" || strings.HasPrefix(strings.TrimSpace(line), "#"):
			line = ""
		default:
			assign := makeAssign.FindStringSubmatch(line)
			switch {
			case assign != nil && assign[1] == "SHELL" && !strings.HasSuffix(assign[2], "sh"):
				odd, line = "it sets SHELL", ""
			case assign != nil:
				line = assign[1] + "=" + quote(assign[2])
				if makeShell.MatchString(assign[2]) {
					line = assign[1] + "=" + assign[2]
				}
			case strings.Contains(line, ";"):
				_, line, _ = strings.Cut(line, ";")
			case makeShell.MatchString(line):
			default:
				line = "" // a rule's head, a condition
			}
		}
		line = makeShell.ReplaceAllString(line, "$$($1)")
		line = makeVariable.ReplaceAllStringFunc(line, func(s string) string {
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

// gitRuns are settings of git's that name programs.
var gitRuns = regexp.MustCompile(`(?im)^\s*(fsmonitor|hookspath|sshcommand|pager|editor|askpass|command|helper|textconv|clean|smudge|process|external|driver|program|proxy|gitproxy|uploadpack|receivepack|path|cmd|packobjectshook|sequence|tool|[a-z0-9-]+\s*=\s*"?!)`)

// followGit judges a repository's hooks, and what its settings run.
func (w *walker) followGit(ctx context.Context) error {
	dir, in := inWorkspace(w.dir)
	if !in {
		return nil
	}
	for ; ; dir = path.Dir(dir) {
		entries, err := w.list(ctx, path.Join(dir, ".git"))
		if err != nil {
			return err
		}
		if len(entries) > 0 {
			if err := w.repository(ctx, path.Join(dir, ".git")); err != nil {
				return err
			}
		}
		if dir == "." {
			return nil
		}
	}
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
	name := path.Join(git, "config")
	if w.units[name] != nil {
		return nil
	}
	b, err := w.ws.ReadFile(ctx, name, mostFile)
	if err != nil {
		return nil //nolint:nilerr // a folder of that name is no repository
	}
	u := &unit{name: name, lang: "settings", code: b}
	w.units[name] = u
	w.order = append(w.order, u)
	if m := gitRuns.Find(b); m != nil {
		w.cannot(name, "it sets "+strings.TrimSpace(string(m))+", which runs programs")
	}
	if strings.Contains(strings.ToLower(string(b)), "[include") {
		w.cannot(name, "it includes other settings")
	}
	return nil
}

// followNPM judges the scripts of a package.json.
func (w *walker) followNPM(ctx context.Context, r policy.Ref) error {
	dir, _ := inWorkspace(w.dir)
	name := path.Join(dir, "package.json")
	entries, err := w.list(ctx, dir)
	if err != nil {
		return err
	}
	if entries["node_modules"] != "" {
		w.cannot(path.Join(dir, "node_modules"), r.Name+" runs programs out of it, which are not followed")
	}
	if entries["package.json"] == "" || w.units[name] != nil {
		return nil
	}
	b, err := w.ws.ReadFile(ctx, name, mostFile)
	if err != nil {
		w.cannot(name, "it cannot be read before: "+err.Error())
		return nil
	}
	w.units[name] = &unit{name: name, lang: "settings", code: b, inPlace: true}
	var p struct {
		Scripts map[string]string `json:"scripts"`
	}
	if err := json.Unmarshal(b, &p); err != nil {
		w.cannot(name, "it is not JSON")
		return nil
	}
	for _, key := range sortedKeys(p.Scripts) {
		u := &unit{name: name + " (" + key + ")", lang: "bash", code: []byte(p.Scripts[key]), shown: true}
		w.units[u.name] = u
		if err := w.examine(ctx, u); err != nil {
			return err
		}
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

package gate

import (
	"context"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/internal/lazyregexp"
	"github.com/caisson-dev/caisson/policy"
	"github.com/caisson-dev/caisson/sandbox"
)

// A shell script does what its arguments and variables say. Those of a run are
// known; those that one text gives to another are, as far as it says them. What
// is not known there is nobody's choice, and is judged as such.

// mostStarts is how many ways of starting one file are judged for themselves.
const mostStarts = 8

// mostGiven bounds the arguments and variables that a text is judged with.
const mostGiven = 64 << 10

// variables are those of an environment.
func variables(env []string) map[string]policy.Given {
	m := make(map[string]policy.Given, len(env))
	for _, kv := range env {
		if name, value, ok := strings.Cut(kv, "="); ok {
			m[name] = policy.Told(value)
		}
	}
	return m
}

// words are arguments that are known.
func words(args []string) []policy.Given {
	out := make([]policy.Given, len(args))
	for i, a := range args {
		out[i] = policy.Told(a)
	}
	return out
}

// begun is how the run itself starts its text.
func (w *walker) begun(name string, args []string) policy.Start {
	s := policy.Start{Known: true, Sealed: true, Args: words(args), Env: w.env}
	if name != "" {
		s.Name = path.Join(sandbox.WorkspaceDir, name)
	}
	return s
}

// startOf is what a text is judged with: those variables alone that it may mean.
func (w *walker) startOf(u *unit) policy.Start {
	if u.lang != "bash" && !u.told || !u.start.Known {
		return policy.Start{Modules: u.modules, Links: u.links}
	}
	s := u.start
	s.Files, s.Modules, s.Links = u.files, u.modules, u.links
	s.Env = map[string]policy.Given{}
	size := 0
	all := u.lang == "bash" && indirectly().Match(u.code)
	for name, v := range u.start.Env {
		if all || strings.Contains(string(u.code), name) {
			s.Env[name] = v
			size += len(name) + length(v)
		}
	}
	w.doubt(u, s.Env)
	for i, v := range s.Args {
		if size += length(v); size > mostGiven {
			s.Args = append(slices.Clone(s.Args[:i]), policy.Passed())
			break
		}
	}
	if size > mostGiven {
		for name := range s.Env {
			s.Env[name] = policy.Passed()
		}
	}
	return s
}

// indirectly finds texts that may mean a variable whose name does not stand
// there, and meant the names that do.
var (
	indirectly = lazyregexp.New(`\$\{!|\b(eval|declare|local|typeset|printenv|env|export|set|compgen)\b`)
	meant      = lazyregexp.New(`\$\{?[!#]?([A-Za-z_][A-Za-z0-9_]*)`)
)

// doubt adds to the variables that a text is judged with those that whatever
// starts it may have set in a way that could not be followed.
func (w *walker) doubt(u *unit, env map[string]policy.Given) {
	if u.by == nil {
		return
	}
	names := map[string]bool{}
	for _, m := range meant().FindAllSubmatch(u.code, -1) {
		names[string(m[1])] = true
	}
	for by, depth := u.by, 0; by != nil && depth < mostStarts && len(names) > 0; by, depth = by.by, depth+1 {
		any, mentioned := setsOthers(by)
		for name := range names {
			_, told := env[name]
			if _, isPlace := plainNames[name]; !isPlace && (any && !told || mentioned && mentionsName(by.code, name)) {
				env[name] = policy.Passed()
			}
		}
	}
}

// plainNames are variables that every program has.
var plainNames = map[string]bool{"HOME": true, "PATH": true, "PWD": true, "OLDPWD": true, "USER": true, "SHELL": true, "TMPDIR": true, "IFS": true}

// How programs set variables of what they start: by names that are not known
// before, or that stand somewhere in their text.
var (
	pythonSetsAny = lazyregexp.New(`environb?\s*\[\s*(?:[^'"\s]|['"][^'"]*['"]\s*\+)|environb?\s*\.\s*(update|setdefault|__setitem__)\(\s*[^{'")\s=]+\s*[),(.\[]|environb?\s*\|=\s*[^{\s]|putenv\(\s*[^'"\s]|load_dotenv`)
	pythonSets    = lazyregexp.New(`\benv\b\s*[=:,)]|environb?\s*(\||=|\.\s*(update|setdefault|copy|__setitem__))|\*\*\s*(os\.)?environ|dict\(\s*(os\.)?environ|putenv|(exec|spawn)[lv]p?e\b|posix_spawn`)
	nodeSetsAny   = lazyregexp.New(`\benv\s*\[\s*(?:[^'"\s\]]|['"][^'"]*['"]\s*\+)|dotenv`)
	nodeSets      = lazyregexp.New(`\benv\b`)
)

// setsOthers reports whether a text sets variables of any name, and whether it
// may set those that it mentions, in ways that are no facts.
func setsOthers(by *unit) (anyName, mentioned bool) {
	switch by.lang {
	case "python":
		return pythonSetsAny().Match(by.code), pythonSets().Match(by.code)
	case "javascript", "typescript":
		return nodeSetsAny().Match(by.code), nodeSets().Match(by.code)
	case "bash":
		return exportsAny(by.code), false
	}
	return false, false
}

// exporters finds what a shell exports, and what env and its like are given.
var exporters = lazyregexp.New(`\b(?:export|declare|typeset|readonly|env|eval|read|printf\s+-v)\b([^;|&\n]*)`)

// exportsAny reports whether a shell's text sets variables whose names it does
// not say: export "$x", env $(cat file).
func exportsAny(code []byte) bool {
	for _, m := range exporters().FindAllSubmatch(code, -1) {
		for _, word := range strings.Fields(string(m[1])) {
			if word = strings.TrimLeft(word, `"'`); strings.HasPrefix(word, "$") || strings.HasPrefix(word, "`") {
				return true
			}
			if strings.HasPrefix(string(m[0]), "env") && !strings.HasPrefix(word, "-") && !strings.Contains(word, "=") {
				break // the command
			}
		}
	}
	return false
}

// mentionsName reports whether a name stands in a text, as a word.
func mentionsName(code []byte, name string) bool {
	for rest := string(code); ; {
		i := strings.Index(rest, name)
		if i < 0 {
			return false
		}
		before, after := rest[:i], rest[i+len(name):]
		if !nameEnds().MatchString(before) && !nameBegins().MatchString(after) {
			return true
		}
		rest = after
	}
}

var (
	nameEnds   = lazyregexp.New(`[A-Za-z0-9_]$`)
	nameBegins = lazyregexp.New(`^[A-Za-z0-9_]`)
)

func length(v policy.Given) int {
	n := 0
	for _, a := range v.Alts {
		n += len(a)
	}
	return n
}

// asksFor finds programs that look at their arguments.
var asksFor = lazyregexp.New(`\b(argv|argparse|optparse|getopt|click)\b|Deno\.args`)

// tells reports whether there is more to know about a program than its text: it
// looks at arguments that are known, or at variables of the run.
func (w *walker) tells(u *unit) bool {
	switch {
	case u.lang == "bash" || !judgeable(u.lang) || !u.start.Known:
		return false
	case len(u.start.Args) > 0 && len(u.start.Args[0].Alts) > 0 && asksFor().Match(u.code):
		return true
	}
	for name := range u.start.Env {
		if !plainNames[name] && name != "PYTHONPATH" && mentionsName(u.code, name) {
			return true
		}
	}
	return false
}

// lying are the texts of files that a shell sources, with those that these
// source, and of those that it starts after it may have gone to another folder;
// nil where there are none.
func (w *walker) lying(u *unit, refs []policy.Ref) map[string]string {
	if u.lang != "bash" || !u.start.Known {
		return nil
	}
	files := map[string]string{}
	size := 0
	for _, r := range refs {
		name, in := inWorkspace(r.Path)
		other := w.units[name]
		sourced := r.By == "." || r.By == "source"
		if r.Kind != policy.RefFile || !in || other == nil || other == u || !judgeable(other.lang) || !sourced && !wandering().Match(u.code) {
			continue
		}
		files[path.Join(sandbox.WorkspaceDir, name)] = string(other.code)
		maps.Copy(files, other.files)
	}
	for _, text := range files {
		size += len(text)
	}
	if len(files) == 0 || size > mostGiven {
		return nil
	}
	return files
}

// addStarted judges a file that a text starts or sources, in each way that
// texts start it.
func (w *walker) addStarted(ctx context.Context, from *unit, name string, r policy.Ref) error {
	name = path.Clean(name)
	old := w.units[name]
	if r.By == "." || r.By == "source" {
		defer func() { from.took(w.units[name]) }()
	}
	if old == nil {
		return w.addFileStarted(ctx, name, r.Lang, false, w.rootsOf(path.Dir(name)), w.passedOn(from, &unit{name: name}, r))
	}
	old.inPlace = true
	if old.imported { // it is a program too
		old.imported = false
		if err := w.together(ctx, old); err != nil {
			return err
		}
	}
	again := *old
	again.by = from
	again.start = w.passedOn(from, old, r)
	key := name + policy.StartKey(w.startOf(&again))
	if again.lang != "bash" {
		again.told = w.tells(&again)
		if key = name + policy.StartKey(w.startOf(&again)); !again.told {
			return nil
		}
	}
	if w.units["start:"+key] != nil {
		return nil
	}
	if w.started[name]++; w.started[name] > mostStarts {
		again.start.Args = []policy.Given{policy.Passed()}
		again.start.Env = maps.Clone(again.start.Env)
		for n := range again.start.Env {
			again.start.Env[n] = policy.Passed()
		}
		if w.started[name] > mostStarts+1 {
			return nil
		}
	}
	again.shown = true
	w.units["start:"+key] = &again
	return w.examine(ctx, &again)
}

// passedOn is how a text, or where that is nil the run, starts another: with the words that it says, and the
// variables that it got or sets. A sourced one has all of its variables, and,
// without words of its own, its arguments.
func (w *walker) passedOn(from, u *unit, r policy.Ref) policy.Start {
	s := policy.Start{Known: true, Sealed: true, Args: r.Start.Args, Env: map[string]policy.Given{}}
	if u.name != "" && !path.IsAbs(u.name) {
		s.Name = path.Join(sandbox.WorkspaceDir, u.name)
	}
	sourced := r.By == "." || r.By == "source"
	if sourced && len(s.Args) == 0 && from != nil {
		s.Args, s.Name = from.start.Args, from.start.Name
	}
	if !r.Start.Known || sourced && len(s.Args) == 0 && (from == nil || !from.start.Known) {
		s.Args = []policy.Given{policy.Passed()}
	}
	base := w.env
	if from != nil && from.start.Env != nil {
		base = from.start.Env
	}
	maps.Copy(s.Env, base)
	if from != nil && from.lang == "bash" {
		maps.Copy(s.Env, from.extra)
		maps.Copy(s.Env, assigned(from.code))
	}
	maps.Copy(s.Env, r.Start.Env)
	return s
}

// sets finds what sets variables in a shell's text, reads what does so by name;
// plainly finds those that are set to a text that stands there.
var (
	sets    = lazyregexp.New(`([A-Za-z_][A-Za-z0-9_]*)(?:\[[^]\n]*\])?:?\+?=`)
	reads   = lazyregexp.New(`\b(?:read|mapfile|readarray|getopts|printf|for|select|nameref)\b([^;|&\n]*)`)
	plainly = lazyregexp.New(`(?m)(?:^|[\s;&|({])([A-Za-z_][A-Za-z0-9_]*)=("[^"$\x60\\\n]*"|'[^'\n]*'|[A-Za-z0-9_./:@%,+-]*)(?:[\s;&|)}]|$)`)
	aWord   = lazyregexp.New(`[A-Za-z_][A-Za-z0-9_]*`)
)

// took adds the variables of a sourced text to those of the one that sources it.
func (u *unit) took(sourced *unit) {
	if sourced == nil || sourced.lang != "bash" {
		return
	}
	if u.extra == nil {
		u.extra = map[string]policy.Given{}
	}
	maps.Copy(u.extra, sourced.extra)
	maps.Copy(u.extra, assigned(sourced.code))
}

// assigned are the variables that a shell's text may set. What it does not set
// to a plain text alone could not be told.
func assigned(code []byte) map[string]policy.Given {
	const unknown = 1000
	ways := map[string]int{}
	for _, m := range sets().FindAllSubmatch(code, -1) {
		ways[string(m[1])]++
	}
	for _, m := range reads().FindAllSubmatch(code, -1) {
		for _, name := range aWord().FindAll(m[1], -1) {
			ways[string(name)] += unknown
		}
	}
	values := map[string][]string{}
	for _, m := range plainly().FindAllSubmatch(code, -1) {
		values[string(m[1])] = append(values[string(m[1])], strings.Trim(string(m[2]), `"'`))
	}
	env := map[string]policy.Given{}
	for name, n := range ways {
		env[name] = policy.Passed()
		if texts := values[name]; n > 0 && len(texts) == n {
			if v := policy.Told(texts...); v.Known() {
				v.Open = true // not on every way, and not for every program
				env[name] = v
			}
		}
	}
	return env
}

package gate

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/internal/lazyregexp"
	"github.com/caisson-dev/caisson/policy"
	"github.com/caisson-dev/caisson/sandbox"
)

// A shell script does what its arguments and variables say. Those of a run are known.
// What one text starts is judged with what it gets when that happens. Where that cannot
// be, a file that is started is judged before, with the words that stand behind its name
// there; the variables that a text gives to another are nobody's choice.

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
	if !s.Sealed {
		for _, m := range meant().FindAllSubmatch(u.code, -1) {
			if name := string(m[1]); !plainNames[name] {
				v, told := s.Env[name]
				if v.Open = true; !told {
					v = policy.Passed()
				}
				s.Env[name] = v
			}
		}
	}
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

// plainNames are variables that every program has.
var plainNames = map[string]bool{"HOME": true, "PATH": true, "PWD": true, "OLDPWD": true, "USER": true, "SHELL": true, "TMPDIR": true, "IFS": true}

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

// lying are the texts of files that a shell sources, with those that these source, and
// of those that it starts after it may have gone to another folder; nil where there are
// none.
func (w *walker) lying(u *unit, refs []policy.Ref) map[string]string {
	if u.lang != "bash" || !u.start.Known {
		return nil
	}
	files := map[string]string{}
	size := 0
	for _, r := range refs {
		name, in := inWorkspace(r.Path)
		other := w.units[name]
		if r.Kind != policy.RefFile || !in || other == nil || other == u || !judgeable(other.lang) || !sources(r) && !wandering().Match(u.code) {
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

// sources reports that a shell runs a file in its own place.
func sources(r policy.Ref) bool { return r.By == "." || r.By == "source" }

// own reports that what a reference leads to becomes a part of the program that has it:
// it imports, sources or evaluates that, or a function of its language loads it.
func own(r policy.Ref) bool {
	if r.Kind == policy.RefProgram {
		return false
	}
	if r.Kind == policy.RefImport || r.Kind == policy.RefSearch {
		return true
	}
	switch policy.InterpreterLanguage(r.By) {
	case "python", "javascript":
		return false
	case "bash":
		return sources(r)
	}
	return strings.Contains(r.By, ".") || r.By == "eval" || isImport(r) && r.Kind == policy.RefAny
}

// later reports that a reference needs no look: what a text starts is judged when that
// happens. The command that is asked about is what happens now, and what its text starts
// is looked at where it is there already, and can be read.
func (w *walker) later(ctx context.Context, from *unit, r policy.Ref) (bool, error) {
	if own(r) || from.command && !slices.Contains(starters, r.Name) && !w.yetToCome(ctx, r) {
		return false, nil
	}
	return w.judgesStarts(ctx)
}

// yetToCome reports a file that a text in a command starts, and that is not there now, or
// is machine code.
func (w *walker) yetToCome(ctx context.Context, r policy.Ref) bool {
	name, in := inWorkspace(r.Path)
	if r.Kind == policy.RefOutside && isBeside(r.Path) && !w.begins {
		return r.Nested
	}
	if !r.Nested || r.Known || r.Kind != policy.RefFile || !in {
		return false
	}
	code, err := w.ws.ReadFile(ctx, name, mostFile)
	return errors.Is(err, sandbox.NotFound) || bytes.HasPrefix(code, []byte(elf))
}

// judgesStarts reports whether what the run starts is judged when that happens.
func (w *walker) judgesStarts(ctx context.Context) (bool, error) {
	if w.starts == nil || w.judged {
		return w.judged, nil
	}
	var err error
	w.judged, err = w.starts(ctx)
	return w.judged, err
}

// addStarted judges a file that a text starts or sources; one that is started in
// several ways once more, for any words.
func (w *walker) addStarted(ctx context.Context, from *unit, name string, r policy.Ref) error {
	name = path.Clean(name)
	old := w.units[name]
	start := w.handedTo(name, r)
	if old == nil {
		return w.addFileStarted(ctx, name, r.Lang, false, w.rootsOf(path.Dir(name)), start)
	}
	old.inPlace = true
	if old.imported { // it is a program too
		old.imported = false
		if err := w.together(ctx, old); err != nil {
			return err
		}
	}
	if sources(r) || policy.StartKey(old.start) == policy.StartKey(start) || w.units["again:"+name] != nil {
		return nil
	}
	again := *old
	again.start, again.shown = start, true
	again.start.Args = []policy.Given{policy.Passed()}
	w.units["again:"+name] = &again
	return w.examine(ctx, &again)
}

// handedTo is how a text starts another: with the words that it says. What is sourced is
// judged in its place, with all that it finds there.
func (w *walker) handedTo(name string, r policy.Ref) policy.Start {
	if sources(r) {
		return policy.Start{}
	}
	s := policy.Start{Known: true, Args: r.Start.Args, Env: w.env}
	if !r.Start.Known {
		s.Args = []policy.Given{policy.Passed()}
	}
	if name != "" && !path.IsAbs(name) {
		s.Name = path.Join(sandbox.WorkspaceDir, name)
	}
	return s
}

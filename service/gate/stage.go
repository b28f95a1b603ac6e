package gate

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/caisson-dev/caisson/internal/pyboot"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// What runs are the judged bytes. The interpreter is started on a small program
// of ours in the agent's staging place, which puts everything as it would be had
// the program been run from its own place, and which takes imports from the
// judged copies. A module of the workspace that was not judged cannot be loaded
// that way.

//go:embed boot.cjs
var bootNode string

// mostInline is how much of a script fits into an argv.
const mostInline = 96 << 10

// stageable reports whether the run's file can be run from a copy.
func (e *execution) stageable() bool {
	if len(e.f.interpreter) == 0 || e.begins {
		return false
	}
	switch e.f.lang {
	case "python", "bash":
		return true
	case "javascript":
		ext := path.Ext(e.f.file)
		return len(e.f.interpreter) == 1 && (ext == ".js" || ext == ".cjs")
	}
	return false
}

// program is what runs in place of what was asked about.
func (e *execution) program() *manager.Program {
	q := e.q
	p := &manager.Program{Argv: q.Argv, Env: q.Env, Stdin: e.stdin, Watched: e.w.watched()}
	if q.Stage != nil {
		name := path.Base(e.stagedCode())
		p.Stage = append([]manager.StageFile{{Name: name, Data: q.Stage}}, q.Staged...)
	}
	// Python's folder of the user's own is one that programs can write, and
	// anything may start Python.
	p.Env = append(slices.Clone(p.Env), "PYTHONNOUSERSITE=1")
	switch {
	case e.own():
		p.Env = without(p.Env, "PYTHONPATH")
	case e.f.lang == "python" && (e.f.code || e.f.file != "" && e.main != nil && e.main.staged):
		e.python(p)
	case e.f.lang == "javascript" && (e.f.code || e.f.file != "" && e.main != nil && e.main.staged):
		e.node(p)
	case e.f.lang == "bash" && e.f.file != "" && e.main != nil && e.main.staged:
		e.shell(p)
	}
	return p
}

// stagedCode is where the run's own code lies while it runs.
func (e *execution) stagedCode() string {
	dir := path.Dir(manager.StagePath(e.q.ID, "x"))
	for _, a := range e.q.Argv {
		if path.Dir(a) == dir {
			return a
		}
	}
	return dir + "/main"
}

// copies stages all judged modules that are not staged yet, and returns, as pairs, their
// places in the workspace and their copies.
func (e *execution) copies(p *manager.Program, lang string) [][2]string {
	var pairs [][2]string
	for _, u := range e.w.order {
		if !u.staged || u.name == "" || u.lang != lang {
			continue
		}
		name := u.name
		if !slices.ContainsFunc(e.q.Staged, func(f manager.StageFile) bool { return f.Name == name && bytes.Equal(f.Data, u.code) }) {
			name = "m" + strconv.Itoa(len(pairs))
			p.Stage = append(p.Stage, manager.StageFile{Name: name, Data: u.code})
		}
		pairs = append(pairs, [2]string{path.Join(sandbox.WorkspaceDir, u.name), manager.StagePath(e.q.ID, name)})
	}
	return pairs
}

func (e *execution) python(p *manager.Program) {
	p.Env = without(p.Env, "PYTHONPATH")
	if e.f.code && !e.w.loads && len(e.q.Tools) == 0 && !e.q.Run.Program {
		return // the workspace is not looked at for modules at all
	}
	mods := e.copies(p, "python")
	main, shown := e.stagedCode(), ""
	if e.f.file != "" {
		shown = path.Join(sandbox.WorkspaceDir, e.f.file)
	}
	paths := []string{}
	for _, r := range e.main.roots {
		paths = append(paths, path.Join(sandbox.WorkspaceDir, r))
	}
	var b strings.Builder
	for _, m := range mods {
		fmt.Fprintf(&b, "%s: %s, ", pyString(m[0]), pyString(m[1]))
		if m[0] == shown {
			main = m[1]
		}
	}
	if shown == "" {
		shown = main
	}
	list := make([]string, len(paths))
	for i, s := range paths {
		list[i] = pyString(s)
	}
	given := []string{
		"{" + b.String() + "}", e.unjudged(), pyString(e.w.link), "[" + strings.Join(list, ", ") + "]", pyString(shown), pyString(firstOf(e.f.shown, shown)),
		pyString(main), pyBool(e.q.Run.Program), pyBool(len(e.q.Tools) > 0),
	}
	boot := pyboot.Text + "exec(*_boot(" + strings.Join(given, ", ") + "))\n"
	p.Stage = append(p.Stage, manager.StageFile{Name: "boot.py", Data: []byte(boot)})
	interpreter := e.f.interpreter
	if e.f.code {
		interpreter = e.q.Language.RunCode[:1]
	}
	p.Argv = slices.Concat(interpreter, []string{manager.StagePath(e.q.ID, "boot.py")}, e.f.args)
}

func pyBool(b bool) string {
	if b {
		return "True"
	}
	return "False"
}

// unjudged is a list, in Python and JavaScript, of the folders from which nothing
// may be loaded that was not judged.
func (e *execution) unjudged() string {
	list := []string{}
	for _, place := range slices.Concat(e.w.places, aliases) {
		list = append(list, pyString(place))
	}
	if e.w.link != "" {
		list = append(list, pyString(e.w.link))
	}
	return "[" + strings.Join(list, ", ") + "]"
}

// pyString is a string of Python's and JavaScript's, for any bytes that a path
// may have.
func pyString(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return `""`
	}
	return string(b)
}

func (e *execution) node(p *manager.Program) {
	if e.f.code && !e.w.loads {
		return
	}
	mods := e.copies(p, "javascript")
	table := map[string]string{}
	for _, m := range mods {
		table[m[0]] = m[1]
	}
	text, err := json.Marshal(table)
	if err != nil {
		text = []byte("{}")
	}
	main := "null"
	if e.f.file != "" {
		main = pyString(path.Join(sandbox.WorkspaceDir, e.f.file))
	}
	boot := strings.NewReplacer("@MAIN@", main, "@MODULES@", string(text), "@WRITABLE@", e.unjudged()).Replace(bootNode)
	p.Stage = append(p.Stage, manager.StageFile{Name: "boot.cjs", Data: []byte(boot)})
	at := manager.StagePath(e.q.ID, "boot.cjs")
	if e.f.file != "" {
		p.Argv = slices.Concat(e.f.interpreter, []string{at}, e.f.args)
		return
	}
	p.Argv = slices.Concat(p.Argv[:1], []string{"-r", at}, p.Argv[1:])
}

// sourceName: a script that is run by its name is its own source, and one that
// comes on a command line has none.
var sourceName = strings.NewReplacer("${BASH_SOURCE[0]}", "${0}", "${BASH_SOURCE}", "${0}", "$BASH_SOURCE", "${0}")

// shell runs a script from the command line, where its name is $0.
func (e *execution) shell(p *manager.Program) {
	name := firstOf(e.f.shown, path.Join(sandbox.WorkspaceDir, e.f.file))
	code := sourceName.Replace(string(e.main.code))
	if len(code) > mostInline {
		p.Stage = append(p.Stage, manager.StageFile{Name: "script", Data: e.main.code})
		code = ". " + quote(manager.StagePath(e.q.ID, "script"))
	}
	p.Argv = slices.Concat(e.f.interpreter, []string{"-c", code, name}, e.f.args)
}

func without(env []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
}

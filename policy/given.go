package policy

import (
	"path"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
	"github.com/caisson-dev/caisson/sandbox"
)

// provenance tells apart two sorts of what could not be told: what a caller, a
// user, the environment or a program of the system hands to the program, and
// what the program itself hides, received, or makes of pieces.
type provenance struct {
	d *facts.Document
	// writable are the folders that programs can write in; nil is those of an
	// image without volumes.
	writable []string
	// evals are the places where text is run as Python, once they were asked for.
	evals map[facts.Pos]bool
}

// made are origins of a text that the program decoded, received, or put
// together in a way that could not be followed.
func made(from string) bool {
	switch from {
	case "decoded", "encoded", "encrypted", "input", "stdin", "clipboard", "namespace", "computed", "cut", facts.FromOwnText:
		return true
	}
	return strings.HasPrefix(from, "net")
}

// maxFrom is where a list of origins may be cut off.
const maxFrom = 8

// callers are the origins of what whoever starts a program hands to it, of what
// stands around it, and of what programs of the system print.
var callers = []string{"param", "argv0", "argv", "env", "command", "file", "own_process", "own_folder", facts.FromAbove, "cwd", "elsewhere", facts.FromFunction, facts.FromSourced}

// named are those of the name of a program or a file.
var named = append(slices.Clip(callers), facts.FromListed)

// given reports that d is of the first sort. A function that nothing calls is
// given what its caller has. Elsewhere it depends on what d can do: a module is
// no more than its name until something of it is called, and a program that is
// given nothing that matters does what whoever names it wants.
func (p *provenance) given(d *facts.Dynamic) bool {
	from, file := "", false
	code := d.Kind == facts.DynOpaqueCode || d.Kind == facts.DynEval
	for _, f := range d.From {
		if f == "namespace" && d.Kind == facts.DynCall && d.Inert && slices.Contains(d.From, "param") {
			continue // a function that was handed in, perhaps one out of a namespace
		}
		if made(f) && (!d.Idle || f != "namespace" && f != facts.FromOwnText && (f != "computed" || d.Lang != facts.Python)) {
			return false
		}
		if f == facts.FromOwnFile || f == facts.FromFiltered || f == facts.FromChosen { // on the way, and no origin
			continue
		}
		if f == "handed" || f == "program" {
			if code && !d.Idle {
				return false
			}
			continue
		}
		if f == "words" {
			if code && !d.Idle && !p.evaluates(d) {
				return false
			}
			continue
		}
		kind, path, _ := strings.Cut(f, ":")
		if name, beside := strings.CutPrefix(f, facts.FromBeside); beside {
			file = file || p.writtenBeside(name)
			from += kind + " "
			continue
		}
		file = file || kind == facts.FromListed && p.writtenLike(path) || kind == "file" && (p.written(path) || path != "" && p.foreign(path))
		from += kind + " "
	}
	if d.Idle {
		return true
	}
	if d.Lang == facts.Shell && d.Kind == facts.DynEval {
		return true // the text is known, and judged for itself
	}
	if d.Kind == facts.DynFile && slices.Contains(d.From, "argv0") {
		file = false // the program itself, or what lies beside it
	}
	if len(d.From) >= maxFrom || file {
		return false
	}
	told := func(kinds ...string) bool {
		for _, k := range strings.Fields(from) {
			ok := false
			for _, want := range kinds {
				ok = ok || k == want
			}
			if !ok {
				return false
			}
		}
		return from != ""
	}
	switch d.Kind {
	case facts.DynImport:
		return from == "" || inPackage(d) || told("param", "file", "module", "command", "self") ||
			d.Depth == 0 && told("param", "file", "module", "command", "self", "argv", "env")
	case facts.DynCall:
		return d.Inert
	case facts.DynCommand:
		return d.Inert && (d.Lang != facts.Shell || told(named...))
	case facts.DynFile:
		return told(named...) || from == "" && p.ownScript(d)
	case facts.DynOpaqueCode, facts.DynEval:
		switch {
		case d.Lang == facts.Shell: // a line of a file of the workspace that the script picks is as good as a file that is sourced
			return told(callers...) && (!strings.Contains(from, "command") || !p.namesCode()) && (!strings.Contains(from, "file") || picked(d.From) && told("file", "argv0", "argv", "env", "own_folder"))
		case strings.Contains(from, "file"):
			return told("file", "param", "module") || d.Depth == 0 && told("file", "param", "module", "argv", "env")
		}
		return d.Lang == facts.Python && told("param", "module", "own_folder", "own_process", "argv0")
	}
	return false
}

// ownScript reports that a file of Python which could not be told is as good as a
// module whose name could not be: the program writes none.
func (p *provenance) ownScript(d *facts.Dynamic) bool {
	return d.Lang == facts.Python && !p.written("")
}

// picked: lines that the script picks out of a text, and leaves as they are.
func picked(from []string) bool {
	return slices.Contains(from, facts.FromChosen) && !slices.Contains(from, facts.FromFiltered)
}

// unvouched are folders that no part of an image's programs lies in: what is there
// came from elsewhere.
var unvouched = []string{"/var", "/dev", "/run", "/proc", "/sys", "/home", "/root", "/mnt", "/media", "/srv"}

// foreign: a place where programs of the sandbox can put files, and not the
// workspace, whose files are judged; or one that nobody vouches for.
func (p *provenance) foreign(name string) bool {
	if !strings.HasPrefix(name, "/") {
		return true
	}
	folder := path.Clean(name + "x") // a file, or one of a folder that is named
	if sandbox.Within(folder, []string{sandbox.WorkspaceDir}) {
		return false
	}
	places := p.writable
	if places == nil {
		places = sandbox.Writable(nil)
	}
	return sandbox.Within(folder, unvouched) || sandbox.Within(folder, places)
}

// evaluates reports that text is run as Python, and not as a command.
func (p *provenance) evaluates(d *facts.Dynamic) bool {
	if d.Lang != facts.Python || d.Kind == facts.DynEval {
		return d.Lang == facts.Python
	}
	if p.evals == nil {
		p.evals = map[facts.Pos]bool{}
		for i := range p.d.Dynamic {
			if e := &p.d.Dynamic[i]; e.Kind == facts.DynEval && e.Lang == facts.Python {
				p.evals[e.Pos] = true
			}
		}
	}
	return p.evals[d.Pos]
}

// inPackage reports that a module is one of a package that is named.
func inPackage(d *facts.Dynamic) bool { return strings.HasSuffix(d.Detail, ".") && d.Detail != "." }

// written reports that the program writes that file, or may.
func (p *provenance) written(path string) bool {
	for i := range p.d.Files {
		f := &p.d.Files[i]
		switch f.Op {
		case facts.OpWrite, facts.OpAppend, facts.OpCopyDst, facts.OpMoveDst, facts.OpLink:
			if path == "" || f.Path == path || strings.HasSuffix(path, "/") && strings.HasPrefix(f.Path, path) || !f.Folded && mayBe(f, path) {
				return true
			}
		}
	}
	return false
}

// writtenBeside reports that the program writes a file of that name, or may.
func (p *provenance) writtenBeside(name string) bool {
	for i := range p.d.Files {
		f := &p.d.Files[i]
		switch f.Op {
		case facts.OpWrite, facts.OpAppend, facts.OpCopyDst, facts.OpMoveDst, facts.OpLink:
			moved := f.Op != facts.OpWrite && f.Op != facts.OpAppend
			if f.Folded && (moved || strings.HasSuffix(f.Path, "/"+name)) || !f.Folded && !p.elsewhere(f, name) {
				return true
			}
		}
	}
	return false
}

// elsewhere reports that a file of which only a part of the path is known is
// none of that name beside the program: one that the caller names, or another.
func (p *provenance) elsewhere(f *facts.File, name string) bool {
	kind, other, _ := strings.Cut(f.Where, ":")
	switch {
	case kind == facts.FromOwnFile && other != "" && (f.Op == facts.OpWrite || f.Op == facts.OpAppend):
		return other != name
	case f.Op != facts.OpWrite && f.Op != facts.OpAppend:
		return false
	case f.Path == "":
		return slices.Contains([]string{"argv", "env", "param", "own_process"}, kind)
	}
	return p.foreign(strings.TrimSuffix(f.Path, "/") + "/")
}

// mayBe reports that a file of which only the beginning is known may be path.
// Where nothing is known of it but that the caller names it, the caller would
// have to name the program's own.
func mayBe(f *facts.File, path string) bool {
	if f.Path == "" {
		kind, _, _ := strings.Cut(f.Where, ":")
		return !slices.Contains([]string{"argv", "env", "param", "own_process"}, kind)
	}
	return strings.HasPrefix(path, f.Path)
}

package policy

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/internal/lazyregexp"
	"github.com/caisson-dev/caisson/policy/facts"
	"github.com/caisson-dev/caisson/sandbox"
)

// RefKind is how a text reaches other code.
type RefKind string

// The kinds.
const (
	// RefFile is a file that is run or sourced: Path, or a pattern.
	RefFile RefKind = "file"
	// RefImport is a module by its Name, with the Names that are taken of it.
	RefImport RefKind = "import"
	// RefAny is a module or file whose name is not known.
	RefAny RefKind = "any"
	// RefOutside is a file that is run and that lies outside the workspace,
	// where programs can write.
	RefOutside RefKind = "outside"
	// RefProgram is a program that runs what it finds in the workspace, such as
	// make, npm, git and pytest: Name, and all words behind it as Args.
	RefProgram RefKind = "program"
	// RefStartup is a shell that reads files of the home folder at its start.
	RefStartup RefKind = "startup"
	// RefInput is an interpreter that reads commands from standard input once its
	// program has ended.
	RefInput RefKind = "input"
	// RefSearch is a variable, its Name, that says where programs look for others
	// or for their settings, with what it is set to as its Path.
	RefSearch RefKind = "search"
	// RefForeign is a program of a language that nothing judges: Path, as it is
	// named.
	RefForeign RefKind = "foreign"
)

// Ref is other code that a text loads or starts. It is never altered.
type Ref struct {
	Kind RefKind
	// Lang is the language of the code; "" where its name or first line tells.
	Lang string
	// Path is absolute in the sandbox.
	Path  string
	Name  string
	Names []string
	Args  []string
	By    string // what loads it
	Line  int
	// Text is what the file holds where the text itself writes it.
	Text []byte
	// Known says that Text is what will be there.
	Known bool
	// Nested says of a file that a text starts it which is code in another one.
	Nested bool
	// Start is how the code is started, as far as this text says: of shells.
	Start Start `json:",omitzero"`
}

// runners are programs that run what they find in the workspace.
var runners = map[string]bool{
	"make": true, "gmake": true, "npm": true, "npx": true, "yarn": true, "pnpm": true, "git": true,
	"pytest": true, "py.test": true, "pytest-3": true, "tox": true, "nox": true, "nosetests": true, "coverage": true,
	"pip": true, "pip3": true, "pipx": true, "poetry": true, "uv": true, "hatch": true, "jupyter": true,
	"cargo": true, "go": true, "mvn": true, "gradle": true, "ant": true, "bazel": true, "cmake": true, "ninja": true, "meson": true,
	"rake": true, "bundle": true, "composer": true, "just": true, "parallel": true,
}

// pythonRunners are modules of Python's that run other programs, with what they
// are followed as.
var pythonRunners = map[string]string{
	"pip": "pip", "coverage": "coverage", "cProfile": "coverage", "profile": "coverage", "trace": "coverage", "runpy": "coverage",
	"pdb": "pdb", "doctest": "doctest", "timeit": "timeit", "code": "code", "IPython": "ipython", "asyncio": "code", "idlelib": "code",
	"pydoc": "coverage", "inspect": "coverage", "test": "coverage", "smtpd": "coverage", "lib2to3": "coverage",
}

// pythonPrograms are those of them that are programs, too.
var pythonPrograms = map[string]bool{"pdb": true, "pydoc": true}

// foreign are programs whose -f names a program in a language of their own.
var foreign = map[string]bool{"awk": true, "gawk": true, "mawk": true, "nawk": true, "sed": true, "gsed": true}

// refsOf reads off what a text loads. writable is [Request.Writable].
func refsOf(doc *facts.Document, writable []string) []Ref {
	var refs []Ref
	for i := range doc.Imports {
		m := &doc.Imports[i]
		if m.Module != "" {
			refs = append(refs, Ref{Kind: RefImport, Lang: string(m.Lang), Name: m.Module, Names: m.Names, By: m.How, Line: m.Line})
		}
	}
	for i := range doc.Dynamic {
		switch d := &doc.Dynamic[i]; d.Kind {
		case facts.DynImport:
			refs = append(refs, Ref{Kind: RefAny, Lang: string(d.Lang), By: d.Detail, Line: d.Line})
		case facts.DynOpaqueCode:
			refs = append(refs, codeRefs(d)...)
		case facts.DynCommand:
			if d.Lang == facts.Shell { // $(cat file): elsewhere a file is data, of which a part is a name
				refs = append(refs, codeRefs(d)...)
			}
		}
	}
	for i := range doc.Env {
		if e := &doc.Env[i]; e.Op == "write" && (e.Name == "PATH" || e.Name == "HOME") && e.Value != "" {
			refs = append(refs, Ref{Kind: RefSearch, Name: e.Name, Path: e.Value, By: string(e.Lang), Line: e.Line})
		}
	}
	var known *starts
	for i := range doc.Files {
		if f := &doc.Files[i]; f.Op == facts.OpExec {
			if known == nil {
				known = startsOf(doc)
			}
			refs = append(refs, fileRefs(known, f, writable)...)
		}
	}
	for i := range doc.Commands {
		refs = append(refs, commandRefs(&doc.Commands[i])...)
	}
	return refs
}

// interpreterOf gives the language that a program reads, and whether it reads
// code at all.
func interpreterOf(name string) (lang string, is bool) {
	base := strings.TrimRight(path.Base(name), "0123456789.")
	switch base {
	case "python", "pypy":
		return string(facts.Python), true
	case "node", "nodejs":
		return string(facts.JavaScript), true
	case "bash", "sh", "dash", "ash", "ksh", "zsh", "source", "":
		return string(facts.Shell), base != "" || name == "."
	case "exec":
		return "", false
	}
	return base, true
}

// opened finds paths by which a process gets at what is open, but for standard input.
var opened = lazyregexp.New(`^(/dev/fd|/proc/[^/]+(/task/[^/]+)?/fd)/([1-9]|0.)`)

// codeRefs are the files whose text is run as code, as exec(open(x).read())
// does.
func codeRefs(d *facts.Dynamic) []Ref {
	var refs []Ref
	for _, from := range d.From {
		name, known := strings.CutPrefix(from, "file:")
		switch {
		case strings.HasPrefix(from, facts.FromBeside):
			refs = append(refs, Ref{Kind: RefAny, By: "eval", Line: d.Line})
		case known && strings.HasPrefix(name, "/workspace/"):
			refs = append(refs, Ref{Kind: RefFile, Lang: string(d.Lang), Path: name, By: "eval", Line: d.Line})
		case known:
			refs = append(refs, Ref{Kind: RefOutside, Path: name, By: "eval", Line: d.Line})
		case from == "file":
			refs = append(refs, Ref{Kind: RefAny, By: "eval", Line: d.Line})
		}
	}
	return refs
}

func fileRefs(known *starts, f *facts.File, writable []string) []Ref {
	lang, interpreter := interpreterOf(f.By)
	r := Ref{Kind: RefFile, Lang: lang, Path: f.Path, By: f.By, Line: f.Line, Nested: f.Depth > 0}
	if lang == "" || lang == string(facts.Shell) || lang == string(facts.Python) || lang == string(facts.JavaScript) {
		var ok bool
		if r.Start, ok = known.of(f); !ok {
			return []Ref{{Kind: RefAny, Lang: lang, By: f.By, Line: f.Line}}
		}
	}
	switch {
	case !f.Folded:
		if !interpreter {
			return nil // a program that is not known is a finding of its own
		}
		r.Kind = RefAny
	case (lang == string(facts.Python) || lang == string(facts.JavaScript)) && opened().MatchString(f.Path):
		r.Kind = RefOutside
	case f.Class == "workspace" || strings.HasPrefix(f.Path, "/workspace/"):
		r.Text, r.Known = known.written(f)
	case slices.Contains([]string{"tmp", "outside", "shm", "runtime", "home", "relative", "unknown", "other_home", "public"}, f.Class) || sandbox.Within(path.Clean(f.Path), writable):
		r.Kind = RefOutside
		r.Text, r.Known = known.written(f)
	default:
		return nil // of the image, which nothing in the sandbox can write
	}
	return []Ref{r}
}

func commandRefs(c *facts.Command) []Ref {
	lang, interpreter := interpreterOf(c.Name)
	has := func(flags ...string) bool {
		return slices.ContainsFunc(flags, func(f string) bool { return slices.Contains(c.Flags, f) })
	}
	words := c.Argv[min(1, len(c.Argv)):]
	switch {
	case interpreter && lang == string(facts.Shell) && c.Name != "." && c.Name != "source" && has("l", "login", "i", "interactive", "rcfile", "init-file"):
		return []Ref{{Kind: RefStartup, By: c.Name, Line: c.Line}}
	case interpreter && (lang == string(facts.Python) || lang == string(facts.JavaScript)) && has("i", "interactive"):
		return []Ref{{Kind: RefInput, By: c.Name, Line: c.Line}}
	case c.Name == "perl" && has("I"):
		return []Ref{{Kind: RefProgram, Name: "perl -I", Args: words, By: c.Name, Line: c.Line}}
	case foreign[c.Name] && has("f", "file"):
		return []Ref{{Kind: RefForeign, Path: c.Values["-f"], By: c.Name, Line: c.Line}}
	}
	if interpreter && lang == string(facts.Python) {
		if slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(strings.TrimPrefix(w, "-X"), "pycache_prefix=") }) {
			return []Ref{{Kind: RefProgram, Name: "-X pycache_prefix", Args: words, By: c.Name, Line: c.Line}}
		}
		module := c.Values["-m"]
		switch {
		case module == "pytest" || module == "unittest" || module == "nose":
			return []Ref{{Kind: RefProgram, Name: "pytest", Args: words, By: c.Name, Line: c.Line}}
		case pythonRunners[module] != "":
			return []Ref{{Kind: RefProgram, Name: pythonRunners[module], Args: words, By: c.Name, Line: c.Line}}
		case module != "":
			return []Ref{{Kind: RefImport, Lang: lang, Name: module, Names: []string{"__main__"}, By: "-m", Line: c.Line}}
		}
		return nil
	}
	if interpreter && lang == string(facts.JavaScript) && slices.Contains(c.Flags, "test") {
		return []Ref{{Kind: RefProgram, Name: "node --test", Args: words, By: c.Name, Line: c.Line}}
	}
	if pythonPrograms[lang] {
		return []Ref{{Kind: RefProgram, Name: pythonRunners[lang], Args: words, By: c.Name, Line: c.Line}}
	}
	if !runners[c.Name] {
		return nil
	}
	name := c.Name
	if strings.HasPrefix(name, "py") || name == "tox" || name == "nox" || name == "nosetests" {
		name = "pytest"
	}
	return []Ref{{Kind: RefProgram, Name: name, Args: words, By: c.Name, Line: c.Line}}
}

// InterpreterLanguage gives the language that a program of this name reads,
// such as "python" for python3.11, or the name itself where there is no
// extractor for it.
func InterpreterLanguage(name string) string {
	lang, _ := interpreterOf(name)
	return lang
}

// Plain reports whether nothing is known of a program by its base name: what it does
// with its arguments stands in no table, it reads no language that is judged, and runs
// nothing that it finds.
func Plain(t *facts.Tables, name string) bool {
	lang, interprets := interpreterOf(name)
	switch lang {
	case string(facts.Python), string(facts.JavaScript), string(facts.Shell):
		return !interprets
	}
	if runners[name] || pythonPrograms[lang] {
		return false
	}
	for _, n := range []string{name, strings.TrimRight(name, "0123456789.")} {
		if _, known := t.Programs.Get(n); known || n == "" {
			return false
		}
	}
	return true
}

// ShebangLanguage gives the language of a text by its first line, and whether
// that names an interpreter.
func ShebangLanguage(code []byte) (lang string, ok bool) {
	first, _, _ := bytes.Cut(code[:min(len(code), 256)], []byte("\n"))
	line, ok := strings.CutPrefix(string(first), "#!")
	if !ok {
		return "", false
	}
	for _, word := range strings.Fields(line) {
		if path.Base(word) == "env" || strings.HasPrefix(word, "-") || strings.Contains(word, "=") {
			continue
		}
		return InterpreterLanguage(path.Base(word)), true
	}
	return "", true
}

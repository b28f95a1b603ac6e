package gate

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/caisson-dev/caisson/internal/lazyregexp"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/policy"
	"github.com/caisson-dev/caisson/sandbox"
)

// What is looked at of one run. Beyond that it is not judged, which is a
// finding.
const (
	mostFiles = 400
	mostBytes = 4 << 20
	mostFile  = 1 << 20
)

// unit is one text that a run executes.
type unit struct {
	name string // below the workspace; "" is the run's own code
	lang string
	code []byte
	// staged: the interpreter gets these bytes. inPlace: it reads the file
	// itself, later. Both may hold.
	staged, inPlace bool
	// shown: it is a part of another text, such as a recipe of a Makefile.
	shown bool
	// shipped: it is caisson's own, and not judged with what imports it either.
	shipped bool
	dir     string            // where it begins, absolute; "" is where the run does
	roots   []string          // where its imports are looked for, beside its own folder
	command bool              // it is the command that is asked about
	start   policy.Start      // how it is started
	files   map[string]string // what lies in files that it sources
	told    bool              // it is judged with its arguments and variables, beside what it is for any
	// The modules of the workspace that it imports, by the names that it calls
	// them by, and the texts that it is judged with.
	imports  map[string]*unit
	modules  map[string]string
	links    map[string]string
	imported bool // it came as a module
}

// walker finds and judges all units of one run.
type walker struct {
	p     Policy
	ws    manager.Workspace
	owner string
	dir   string // working directory, absolute
	room
	about map[string]any // what rules see beside each text

	units     map[string]*unit
	order     []*unit
	total     int
	full      bool
	env       map[string]policy.Given             // the run's own variables
	starts    func(context.Context) (bool, error) // [manager.ExecQuestion.JudgesStarts]
	judged    bool                                // starts said so
	begins    bool                                // it is a start of a running exec: what it names can be read
	decision  sandbox.Decision
	unjudged  []map[string]any
	unknown   []any // texts of languages that cannot be judged
	told      map[string]bool
	lists     map[string]map[string]string // of folders: name → type
	coming    map[string]chan listed       // of folders that are being listed
	tree      []sandbox.FileInfo           // of the whole workspace, once looked at
	loads     bool                         // something of the workspace is loaded, or may be
	search    []string                     // where Python is told to look beside a program's own folder
	spec      string                       // as what a program for Node imports what is looked for
	importing bool                         // what is added next is a module
	wanders   bool                         // a text changes where modules are looked for
	input     bool                         // there is standard input
	moved     []envFinding                 // PATH and HOME as texts set them
}

// wandering finds texts that change where they, or what they start, look for
// modules.
var wandering = lazyregexp.New(`\b(cd|pushd|chdir|cwd|sys\.path|addsitedir|PYTHONPATH)\b|env (-\S+ )*-C`)

// wanderers are in every text that wandering finds: to look for them takes a
// hundredth of its time.
var wanderers = [][]byte{[]byte("cd"), []byte("pushd"), []byte("chdir"), []byte("cwd"), []byte("sys.path"), []byte("addsitedir"), []byte("PYTHONPATH"), []byte("-C")}

func mentions(code []byte, words [][]byte) bool {
	return slices.ContainsFunc(words, func(word []byte) bool { return bytes.Contains(code, word) })
}

// debuggers finds what makes a Python program take commands from its input.
var debuggers = lazyregexp.New(`\b(breakpoint\s*\(|pdb\b|code\.interact|InteractiveConsole)`)

// pathAssign finds assignments of PATH that are no facts, since they export
// nothing.
var pathAssign = lazyregexp.New(`(?:^|[\s;&|({'\x60])PATH=("[^"\n]*"|'[^'\n]*'|[^\s;&|)'"]*)`)

// searched looks at what a text sets PATH or HOME to. Parts that are not known
// are empty, or still as they were written.
func (w *walker) searched(name, value string) {
	for _, dir := range strings.Split(strings.Trim(value, `"'`), ":") {
		if dir == "" || dir == "$PATH" || dir == "${PATH}" || name == "HOME" && dir == sandbox.HomeDir || !w.writable(dir) {
			continue
		}
		w.moved = append(w.moved, envFinding{"name": name, "value": value, "class": "search"})
		return
	}
}

func newWalker(p Policy, q *manager.ExecQuestion, owner string, at room) *walker {
	dir := path.Clean(path.Join(sandbox.WorkspaceDir, q.Dir))
	if path.IsAbs(q.Dir) {
		dir = at.followed(q.Dir)
	}
	return &walker{
		p: p, ws: newStaging(q), owner: owner, room: at, dir: dir, input: q.Stdin != nil, units: map[string]*unit{}, env: variables(q.Env), starts: q.JudgesStarts, told: map[string]bool{}, lists: map[string]map[string]string{}, coming: map[string]chan listed{},
		decision: sandbox.Decision{Verdict: sandbox.Allow, Level: sandbox.Safe, PolicyRevision: p.Revision()},
	}
}

// cannot says that something is run which was not judged.
func (w *walker) cannot(name, why string) {
	if key := name + "\x00" + why; !w.told[key] && len(w.told) < 100 {
		w.told[key] = true
		w.unjudged = append(w.unjudged, map[string]any{"name": name, "why": why})
	}
}

// extractors are the languages that can be judged.
func judgeable(lang string) bool {
	switch lang {
	case "bash", "python", "javascript", "typescript":
		return true
	}
	return false
}

// examine judges one text, and then everything that it loads.
func (w *walker) examine(ctx context.Context, u *unit) error {
	w.order = append(w.order, u)
	if !judgeable(u.lang) {
		if u.lang == "" { // which may well be one that is judged
			w.cannot(title(u), "code in a language that its name and first line do not tell is not judged")
		} else if len(w.unknown) < 100 {
			w.unknown = append(w.unknown, map[string]any{"name": title(u), "language": u.lang})
		}
		return nil
	}
	w.ahead(ctx, u)
	w.wanders = w.wanders || mentions(u.code, wanderers) && wandering().Match(u.code)
	if w.input && u.lang == "python" && debuggers().Match(u.code) {
		w.cannot("standard input", title(u)+" may take commands from it, in a debugger or console")
	}
	if u.lang == "bash" {
		for _, m := range pathAssign().FindAllSubmatch(u.code, -1) {
			w.searched("PATH", string(m[1]))
		}
	}
	refs, err := w.scan(ctx, u)
	if err != nil {
		return err
	}
	if err := w.followAll(ctx, u, refs); err != nil {
		return err
	}
	// What a shell sources may set what it does then: it is judged in its place too. Other programs are
	// judged for any arguments first, and then for those that they get, with the
	// modules that they call.
	u.files, u.told = w.lying(u, refs), w.tells(u)
	return w.together(ctx, u)
}

// together judges a text once more, with what is known of others by then.
func (w *walker) together(ctx context.Context, u *unit) error {
	u.modules, u.links = modulesOf(u)
	if u.files == nil && !u.told && u.modules == nil {
		return nil
	}
	refs, err := w.scan(ctx, u)
	if err != nil {
		return err
	}
	return w.followAll(ctx, u, refs)
}

// scan judges a text by itself.
func (w *walker) scan(ctx context.Context, u *unit) ([]policy.Ref, error) {
	code, prefix := w.prefixed(u)
	d, refs := w.p.Examine(ctx, policy.Request{Language: u.lang, Code: code, File: u.name, Owner: w.owner, Start: w.startOf(u), Writable: w.places, Link: w.link, Context: w.about})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := w.p.Err(); err != nil {
		return nil, err
	}
	d = unprefixed(d, prefix)
	if u.files != nil || u.told || u.modules != nil { // most of it was found before
		if u.modules != nil {
			d = followed(d)
		}
		d.Findings = slices.DeleteFunc(slices.Clone(d.Findings), func(f sandbox.Finding) bool {
			return slices.ContainsFunc(w.decision.Findings, func(o sandbox.Finding) bool {
				return o.ID == f.ID && o.Message == f.Message && (u.modules != nil || o.File == f.File && o.Line == f.Line)
			})
		})
	}
	w.decision = merge(w.decision, d)
	if prefix > 0 {
		refs = slices.DeleteFunc(refs, func(r policy.Ref) bool { // may be ours, and is of the standard library
			return r.Kind == policy.RefImport && r.Line == 1 && r.Name == "os"
		})
	}
	return refs, nil
}

func (w *walker) followAll(ctx context.Context, u *unit, refs []policy.Ref) error {
	for _, r := range refs {
		if err := w.follow(ctx, u, r, refs); err != nil {
			return err
		}
	}
	return nil
}

func title(u *unit) string {
	if u.name == "" {
		return "the code"
	}
	return u.name
}

// prefixed puts before a text that it begins in a folder other than the
// workspace, so that relative paths in it mean what they will mean.
func (w *walker) prefixed(u *unit) ([]byte, int) {
	dir := firstOf(u.dir, w.dir)
	if dir == sandbox.WorkspaceDir {
		return u.code, 0
	}
	var p string
	switch u.lang {
	case "bash":
		p = "cd " + quote(dir) + "; "
	case "python":
		p = fmt.Sprintf("import os; os.chdir(%q); ", dir)
	default:
		p = fmt.Sprintf("process.chdir(%q); ", dir)
	}
	return append([]byte(p), u.code...), len(p)
}

// unprefixed takes findings back to where they stand in the text.
func unprefixed(d sandbox.Decision, prefix int) sandbox.Decision {
	if prefix == 0 {
		return d
	}
	d.Findings = slices.Clone(d.Findings)
	for i := range d.Findings {
		f := &d.Findings[i]
		if f.Line == 1 {
			f.Column = max(0, f.Column-prefix)
		}
		if f.EndLine == 1 {
			f.EndColumn = max(0, f.EndColumn-prefix)
		}
	}
	return d
}

// quote makes a word of a shell. One that is no text has its bytes as numbers: what has
// them as they are would be no script.
func quote(s string) string {
	if utf8.ValidString(s) {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	b := []byte("$'")
	for i := range len(s) {
		if c := s[i]; c >= utf8.RuneSelf || c == '\\' || c == '\'' {
			b = fmt.Appendf(b, `\%03o`, c)
		} else {
			b = append(b, c)
		}
	}
	return string(append(b, '\''))
}

// follow finds what a reference leads to.
func (w *walker) follow(ctx context.Context, from *unit, r policy.Ref, all []policy.Ref) error {
	if later, err := w.later(ctx, from, r); later || err != nil {
		return err
	}
	switch r.Kind {
	case policy.RefImport:
		if r.Lang == "python" {
			return w.importPython(ctx, from, r)
		}
		return w.importNode(ctx, from, r)
	case policy.RefAny:
		if r.Lang == from.lang && r.By != "" || r.Path == "" && isImport(r) {
			return w.addAll(ctx, from, suffixesOf(r.Lang), from.staged)
		}
		if !slices.ContainsFunc(all, func(o policy.Ref) bool { return o.Kind == policy.RefFile && o.Line == r.Line }) {
			w.cannot(title(from), fmt.Sprintf("line %d: the file that %s runs is not known before", r.Line, r.By))
		}
	case policy.RefOutside:
		if r.Known {
			return w.addText(ctx, from, r)
		}
		if path.IsAbs(r.Path) && !w.writable(path.Dir(r.Path)) {
			return nil // of the image, which nothing in the sandbox can write
		}
		if w.begins && isBeside(r.Path) {
			return w.addStarted(ctx, from, r.Path, r)
		}
		w.cannot(firstOf(r.Path, "a file"), "it lies outside the workspace, where it cannot be read before")
	case policy.RefStartup:
		w.cannot(r.By, fmt.Sprintf("line %d: as a login shell, or one for a person, it begins with files of the home folder, which programs can write", r.Line))
	case policy.RefInput:
		if w.input {
			w.cannot("standard input", fmt.Sprintf("line %d: %s -i takes commands from it after its program", r.Line, r.By))
		}
	case policy.RefSearch:
		w.searched(r.Name, r.Path)
	case policy.RefForeign:
		w.cannot(firstOf(r.Path, "a file"), fmt.Sprintf("line %d: it is a program of %s's, which is not judged", r.Line, r.By))
	case policy.RefProgram:
		return w.followProgram(ctx, from, r)
	case policy.RefFile:
		name, ok := inWorkspace(r.Path)
		if !ok {
			return nil
		}
		if r.Known {
			return w.addText(ctx, from, r)
		}
		if strings.ContainsAny(name, "*?[") {
			return w.addPattern(ctx, name, r)
		}
		return w.addStarted(ctx, from, name, r)
	}
	return nil
}

// rootsOf are where Python looks for the modules of a program that lies in dir.
func (w *walker) rootsOf(dir string) []string {
	if path.IsAbs(dir) && !w.writable(dir) {
		return w.search // of the image
	}
	roots := append([]string{dir}, w.search...)
	slices.Sort(roots[1:])
	return slices.Compact(roots)
}

func isImport(r policy.Ref) bool {
	switch r.By {
	case "python3", "python", "node", "bash", "sh", ".", "source":
		return false
	}
	return r.Lang == "python" || r.Lang == "javascript" || r.Lang == "typescript"
}

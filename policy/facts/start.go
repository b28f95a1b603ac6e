package facts

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Start is how a text is started, as far as that is known beforehand. The zero
// value says nothing: its arguments and variables are whatever its caller
// wants.
type Start struct {
	// Known says that Args are all arguments, Sealed that Env has all variables
	// that it gets beside those that every process has. One that could not be
	// told is [Passed]; a variable whose value is open may not be set.
	Known  bool `json:"known,omitempty"`
	Sealed bool `json:"sealed,omitempty"`
	// Name is what the text knows itself by ($0): an absolute path, "" where it
	// lies in no file of its own.
	Name string `json:"name,omitempty"`
	// Zero is what it gets in a name's place, as sh -c CODE ZERO ARGS does.
	Zero *Value           `json:"zero,omitempty"`
	Args []Value          `json:"args,omitempty"`
	Env  map[string]Value `json:"env,omitempty"`
	// Files are what lies in files that the text sources or starts, by their
	// absolute paths.
	Files map[string]string `json:"files,omitempty"`
	// Modules are the texts of modules of the workspace that the text, or one of
	// them, imports. In Python they go by the names that it imports them by, where
	// those of a package end in [PackageInit]; in JavaScript by names of which
	// Links say what they are to whoever imports them, see [LinkName].
	Modules map[string]string `json:"modules,omitempty"`
	Links   map[string]string `json:"links,omitempty"`
}

// LinkName is what the module from, "" for the text itself, imports as spec.
func LinkName(from, spec string) string { return from + "\n" + spec }

// PackageInit ends the name of a package in [Start.Modules].
const PackageInit = ".__init__"

// ModuleName is what a module that is known as from means by the name of
// another: of one that begins with a dot, that of a module beside it. It is ""
// where there is none.
func ModuleName(from, name string) string {
	if !strings.HasPrefix(name, ".") || from == "" {
		return name
	}
	base, isPackage := strings.CutSuffix(from, PackageInit)
	if !isPackage {
		base = enclosing(base)
	}
	for name = name[1:]; strings.HasPrefix(name, "."); name = name[1:] {
		base = enclosing(base)
	}
	switch {
	case base == "" || name == "":
		return base
	case strings.HasSuffix(base, "."):
		return base + name
	}
	return base + "." + name
}

// enclosing is the package of a module: of ".x", which is named by where it lies
// to the text, it is ".".
func enclosing(name string) string {
	switch i := strings.LastIndexByte(name, '.'); {
	case strings.Trim(name, ".") == "" && name != "":
		return name + "."
	case i < 0:
		return ""
	case strings.Trim(name[:i+1], ".") == "":
		return name[:i+1]
	default:
		return name[:i]
	}
}

// FromPassed is the origin of an argument or a variable that another text
// passes on and that could not be told: unlike those of a caller whom nobody
// knows, it is nobody's choice.
const FromPassed = "passed"

// FromFiltered is the origin of a text that a filter may have made of other
// letters than those it read.
const FromFiltered = "filtered"

// FromLibrary is the origin of a library of machine code that is told by its
// name: the system has it, or the caller chose it.
const FromLibrary = "library"

// FromChosen is the origin of lines that a script picked out of a text, by a word
// or a number that stands in the script, and left as they are.
const FromChosen = "chosen"

// Passed is a value that another text passes on and that could not be told.
func Passed() Value { return Opaque(FromPassed) }

// texts are all that a start gives, for whoever asks whether a name stands
// there.
func (s *Start) texts() string {
	var b strings.Builder
	for _, v := range s.all() {
		b.WriteString(strings.Join(v.Alts, "\n") + "\n")
	}
	for _, v := range s.Env {
		b.WriteString(strings.Join(v.Alts, "\n") + "\n")
	}
	return b.String()
}

func (s *Start) all() []Value {
	if s.Zero == nil {
		return s.Args
	}
	return append([]Value{*s.Zero}, s.Args...)
}

// key tells starts apart.
func (s *Start) key() string {
	if !s.Known {
		return ""
	}
	var b strings.Builder
	b.WriteString("k\x00" + s.Name)
	for _, v := range s.all() {
		b.WriteString("\x00a" + strings.Join(v.Alts, "\x01") + "\x02" + v.Prefix + "\x02" + strings.Join(v.From, "\x01"))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		v := s.Env[name]
		b.WriteString("\x00e" + name + "\x01" + strings.Join(v.Alts, "\x01") + "\x02" + strconv.FormatBool(v.Open) + strings.Join(v.From, "\x01"))
	}
	return b.String()
}

// Start is how the builder's text is started. Its slices and maps must not be
// changed.
func (b *Builder) Start() Start { return b.start }

// Module is the text of a module of the workspace that goes by that name, and
// whether it is a package. What stands there is no hidden name from then on. To
// be called once for each.
func (b *Builder) Module(name string) (text string, isPackage, ok bool) {
	if text, ok = b.s.modules[name]; !ok {
		text, ok = b.s.modules[name+PackageInit]
		isPackage = ok
	}
	if ok {
		b.given += "\n" + text
	}
	return text, isPackage, ok
}

// Link is the name of the module that another one, or for "" the text itself,
// imports as spec; "" where its text is not known.
func (b *Builder) Link(from, spec string) string { return b.s.links[LinkName(from, spec)] }

// HasModules reports whether there are modules of the workspace whose texts are known.
func (b *Builder) HasModules() bool { return len(b.s.modules) > 0 }

// Lying is what lies in a file that the text sources or starts, where whoever
// asks about the text told that.
func (b *Builder) Lying(file Value) (Value, bool) {
	p, ok := file.One()
	if !ok {
		return Value{}, false
	}
	text, ok := b.s.lying[b.abs(p)]
	return Text(text), ok
}

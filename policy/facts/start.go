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

package facts

import "context"

// extract runs the extractor of the builder's language over src.
func (b *Builder) extract(ctx context.Context, src []byte) {}

// Call records a call and all that the tables say it does. It returns the
// call's result as far as that is known: its type, the constructor's arguments
// and where it comes from.
func (b *Builder) Call(c Call) Value { return Value{} }

// API looks a dotted name up in the tables, following Like, and falls back
// from the name of a type's method to that of the type it is Like.
func (b *Builder) API(name string) (API, bool) { return API{}, false }

// Command records a program that is started with argv: its wrappers are
// removed, code in its arguments or on its standard input is scanned, and
// files and hosts follow from its table. It returns what it prints, as far as
// that is known (its origins: "net:HOST" for curl).
func (b *Builder) Command(argv []Value, o CommandOpts) Value { return Value{} }

// Nested scans code, which is text in the given language, as part of this
// scan: every alternative of a value that is known, and what is known of one
// that is not. The rest is the dynamic fact opaque_code.
func (b *Builder) Nested(lang Lang, code Value, o NestedOpts) {}

// File records the use of a path.
func (b *Builder) File(u Use) {}

// Net records the use of a destination.
func (b *Builder) Net(u Use) {}

// Env records a use of an environment variable: op is read, write or dump. An
// assignment to a variable that starts code (LD_PRELOAD) is a fact of its own.
func (b *Builder) Env(op string, name, value Value, pos Pos) {}

// Literal classes a string literal and records it where it is of a kind that
// rules ask about.
func (b *Builder) Literal(text string, pos Pos) {}

// Chdir changes the directory that relative paths start from, for what this
// builder sees from here on. One that is not known makes relative paths
// unknown.
func (b *Builder) Chdir(dir Value) {}

// Cwd is the directory that relative paths start from, "" where not known.
func (b *Builder) Cwd() string { return b.cwd }

// SetCwd restores what [Builder.Cwd] gave, at the end of a subshell.
func (b *Builder) SetCwd(dir string) { b.cwd = dir }

// Store remembers what the program writes to a file, so that running it later
// scans that text. Append adds to what is there.
func (b *Builder) Store(path, content Value, appending bool) {}

// Load gives what the program wrote to a file before.
func (b *Builder) Load(path Value) (Value, bool) { return Value{}, false }

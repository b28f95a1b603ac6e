package facts

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Tables is what extraction knows about the world: which paths and hosts are
// of which class, which programs run others, what a library's functions do.
// It is data that operators edit (policies/data); the scanner is given one
// value at its start. It is read only afterwards, by many goroutines.
type Tables struct {
	// Home and Workspace are the sandbox's; Cwd is where programs start.
	Home      string `json:"home"`
	Workspace string `json:"workspace"`
	Cwd       string `json:"cwd"`
	// Paths are tried in order; the first that matches gives the class.
	Paths []PathRule `json:"paths"`
	// Hosts are tried in order, after addresses were classed by their range.
	Hosts []HostRule `json:"hosts"`
	// EnvNames class names of environment variables; a trailing * is a prefix,
	// a leading * a suffix.
	EnvNames map[string][]string `json:"env_names"`
	// Programs are what programs do, by base name.
	Programs *Rows[Program] `json:"-"`
	// APIs are what functions do, by language ("javascript" for TypeScript
	// too) and dotted name.
	APIs map[Lang]*Rows[API] `json:"-"`
	// Modules are modules whose every use matters, by language: the class
	// names why (an attribute of one that cannot be folded is dyn_attr).
	Modules map[Lang]map[string]string `json:"modules"`

	// Symbols are functions of C libraries that act on the system; a trailing *
	// is a prefix. Those under "method" are names that objects of other languages
	// have as well.
	Symbols map[string][]string `json:"symbols"`

	patterns sync.Map // of Runs, by their text: *regexp.Regexp

	once    sync.Once
	runners map[Lang]map[string]bool

	named   sync.Once
	symbols map[string]bool // of Symbols; true where it may be a method
	begins  []string        // those that are prefixes
}

// Acts reports that a function of a C library acts on the system; where it may
// be a method of something else, only if its name is no usual one of these.
func (t *Tables) Acts(symbol string, method bool) bool {
	t.named.Do(func() {
		t.symbols = map[string]bool{}
		for class, names := range t.Symbols {
			for _, n := range names {
				if p, ok := strings.CutSuffix(n, "*"); ok {
					t.begins = append(t.begins, p)
				} else {
					t.symbols[n] = class == "method"
				}
			}
		}
	})
	common, ok := t.symbols[symbol]
	return ok && (!common || !method) || slices.ContainsFunc(t.begins, func(p string) bool { return strings.HasPrefix(symbol, p) })
}

// submatches gives the first group of all matches of a Run's pattern. One that
// is wrong matches nothing here; [Tables.Check] names it.
func (t *Tables) submatches(pattern, s string) []string {
	known, ok := t.patterns.Load(pattern)
	if !ok {
		re, err := regexp.Compile(pattern)
		if err != nil {
			re = nil
		}
		known, _ = t.patterns.LoadOrStore(pattern, re)
	}
	re, _ := known.(*regexp.Regexp)
	if re == nil || pattern == "" {
		return nil
	}
	var out []string
	for _, m := range re.FindAllStringSubmatch(s, 16) {
		if len(m) > 1 {
			out = append(out, m[1])
		}
	}
	return out
}

// Runners gives the last parts of the names of a language's functions that run
// code or commands, with a dot before them. It must not be changed.
func (t *Tables) Runners(lang Lang) map[string]bool {
	t.once.Do(func() {
		if t.runners != nil {
			return // they came with encoded tables
		}
		t.runners = map[Lang]map[string]bool{}
		for lang, apis := range t.APIs {
			t.runners[lang] = map[string]bool{}
			for name, api := range apis.All() {
				if slices.ContainsFunc(api.Effects, func(e Effect) bool { return slices.Contains(running, e.Do) }) {
					t.runners[lang]["."+name[strings.LastIndexByte(name, '.')+1:]] = true
				}
			}
		}
	})
	return t.runners[lang]
}

var running = []string{"code", "shell", "argv", "execv"}

// PathRule classes paths.
type PathRule struct {
	Class string `json:"class"`
	// Under are folders: the path itself and all below.
	Under []string `json:"under,omitempty"`
	// Exact are whole paths.
	Exact []string `json:"exact,omitempty"`
	// Base are patterns (path.Match) of the last element, wherever it is.
	Base []string `json:"base,omitempty"`
	// Match are patterns (path.Match) of the whole path.
	Match []string `json:"match,omitempty"`
}

// HostRule classes host names. "*.example.org" is example.org and all below.
type HostRule struct {
	Class string   `json:"class"`
	Names []string `json:"names"`
}

// Program says what a command does with its arguments.
type Program struct {
	// Like takes over another program's entry.
	Like string `json:"like,omitempty"`
	// ValueFlags are flags that take a value as the next word ("-o", "--output").
	ValueFlags []string `json:"value_flags,omitempty"`
	// Twins give each long flag its short letter ("recursive": "r").
	Twins map[string]string `json:"twins,omitempty"`
	// Bundle: the first word is flags without a dash (tar cf).
	Bundle bool `json:"bundle,omitempty"`
	// Long: flags with one dash are whole words, not bundles (find, java).
	Long bool `json:"long,omitempty"`
	// Wrapper: the operands from Skip on are a command of their own.
	Wrapper bool `json:"wrapper,omitempty"`
	// Skip is how many operands stand before the wrapped command.
	Skip int `json:"skip,omitempty"`
	// Assign: operands of the form NAME=VALUE before the command are its
	// environment (env, sudo).
	Assign bool `json:"assign,omitempty"`
	// Applet: the first operand is the program (busybox).
	Applet bool `json:"applet,omitempty"`
	// Interpreter is the language that its code is written in; one without
	// extractor (perl) gives a dynamic fact.
	Interpreter Lang `json:"interpreter,omitempty"`
	// Words: where Interpreter has no extractor, code that holds one of these
	// is opaque rather than unscanned; "" is in every text.
	Words []string `json:"words,omitempty"`
	// CodeFlags are flags whose value is code in Interpreter ("-c", "-e").
	CodeFlags []string `json:"code_flags,omitempty"`
	// CodeArg: the first operand is code (awk, eval, trap).
	CodeArg bool `json:"code_arg,omitempty"`
	// Script: the first operand is a file of code.
	Script bool `json:"script,omitempty"`
	// StdinCode: without an operand, code is read from standard input.
	StdinCode bool `json:"stdin_code,omitempty"`
	// Runs are further ways to start a command.
	Runs []Run `json:"runs,omitempty"`
	// Own: it can start others, and yet what it prints is its own (git).
	Own bool `json:"own,omitempty"`
	// Join: all operands, joined by spaces, are the code (eval).
	Join bool `json:"join,omitempty"`
	// Stdin: words read from standard input are put behind the wrapped command
	// (xargs).
	Stdin bool `json:"stdin,omitempty"`
	// From is where what it prints comes from, beside its files and hosts.
	From []string `json:"from,omitempty"`
	// Effects hold for every use.
	Effects []Effect `json:"effects,omitempty"`
}

// Run is one way in which a program starts another.
type Run struct {
	// When must hold, as for an effect.
	When []string `json:"when,omitempty"`
	// Flag whose value is a command line ("--checkpoint-action" of tar).
	Flag string `json:"flag,omitempty"`
	// Prefix that the value must have, and that is cut off ("exec=").
	Prefix string `json:"prefix,omitempty"`
	// Until: the words after Flag up to one of these are the argv (find -exec).
	Until []string `json:"until,omitempty"`
	// Lang of the value; "" is a shell command line.
	Lang Lang `json:"lang,omitempty"`
	// Operand is the index of an operand (from 1) that is a command line; with
	// Rest, it and all after are joined (ssh HOST cmd…).
	Operand int  `json:"operand,omitempty"`
	Rest    bool `json:"rest,omitempty"`
	// Pattern cuts commands out of code of a language without extractor:
	// a regular expression whose first group is a shell command line
	// (system("…") in awk and perl).
	Pattern string `json:"pattern,omitempty"`
}

// API says what a call does.
type API struct {
	// Like takes over another name's entry.
	Like string `json:"like,omitempty"`
	// Returns is the type of the result, where that differs from the name.
	Returns string `json:"returns,omitempty"`
	// From is where the result comes from, see [Value.From]. "$host" and
	// "$path" stand for the effect's own ("net:$host").
	From []string `json:"from,omitempty"`
	// Keep: the result has the origins of the arguments and the receiver.
	Keep    bool     `json:"keep,omitempty"`
	Effects []Effect `json:"effects,omitempty"`
}

// Effect is one thing that a call or a program does.
type Effect struct {
	// Do is file, net, net_remote (only where it names a host), file_or_net, argv, execv, shell, shell_join, code, code_text
	// (code only where it is text), env, action, dynamic, apply, import, chdir,
	// template (code between marks), or struct.
	Do string `json:"do"`
	// Op is the fact's Op or Kind. For files, "open" takes it from Mode.
	Op string `json:"op,omitempty"`
	// Arg says which argument, the first that is there. Calls: "0", "-1" (the
	// last), "0.host" (a member), "0.1" (an item), "recv.0", "recv.timeout" (a
	// named argument of the constructor), a bare name (a keyword), "*" (all
	// positional ones, as a list), "1*" (all from the second on). Programs: "1" (the first
	// operand), "-1" (the last), "*" (all), "1..-2" (all but the last), "2*"
	// (from the second on), "--output" (a flag's value; "@" after it asks for
	// values that begin with @, and cuts that off), "stdin", "lit:." (a text).
	Arg []string `json:"arg,omitempty"`
	// Port is where a port stands, like Arg.
	Port []string `json:"port,omitempty"`
	// Mode is where the mode of opening stands, like Arg; Default is the mode
	// where it is absent.
	Mode    []string `json:"mode,omitempty"`
	Default string   `json:"default,omitempty"`
	// Data is where data that is written or sent stands, like Arg.
	Data []string `json:"data,omitempty"`
	// Method of a request: a constant ("POST"), or "$0" for an argument.
	Method string `json:"method,omitempty"`
	Scheme string `json:"scheme,omitempty"`
	// When must hold: a flag that is given ("-d"; "-d,--delete" for one of
	// several), "!-d" for one that is not, "kw:shell" for an argument that may be
	// true, "!kw:shell" for one that is not certainly true, "args:2" for at least
	// two arguments, "value:X=Y" for a value that may be Y. All of them. Programs
	// alone: "value:1=Y,Z" for an operand that may be one of several, "only:1=Y,Z"
	// for one that certainly is, "assigns" for an operand NAME=value.
	When []string `json:"when,omitempty"`
	// Lang of code; "" is the caller's.
	Lang Lang `json:"lang,omitempty"`
	// With is the argument list that a callable is applied to (apply): refs as
	// in Arg; "each 1" applies it to each item of one.
	With []string `json:"with,omitempty"`
	// Recursive marks deletion and the like of whole trees.
	Recursive bool   `json:"recursive,omitempty"`
	Detail    string `json:"detail,omitempty"`
}

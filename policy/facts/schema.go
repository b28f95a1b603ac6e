package facts

// Lang names a language as facts, tables and requests spell it.
type Lang string

// The languages that have an extractor.
const (
	Shell      Lang = "bash"
	Python     Lang = "python"
	JavaScript Lang = "javascript"
	TypeScript Lang = "typescript"
)

// Pos is a range of source text. Lines and columns are 1-based, columns count
// bytes, the end is exclusive. The zero value is "the whole text".
type Pos struct {
	Line    int `json:"line,omitempty"`
	Col     int `json:"col,omitempty"`
	EndLine int `json:"end_line,omitempty"`
	EndCol  int `json:"end_col,omitempty"`
}

// At is where a fact was found; every fact embeds it. The [Builder] fills in
// all but Pos.
type At struct {
	Lang Lang `json:"lang"`
	Pos
	// Depth counts how often text became code on the way here, from 0.
	Depth int `json:"depth,omitempty"`
	// Via is how, outermost first: ["os.system", "sudo", "base64 -d"].
	Via []string `json:"via,omitempty"`
	// Idle: it stands in a function that nothing in the program calls or names.
	Idle bool `json:"idle,omitempty"`
}

// Document is all facts of one scan.
type Document struct {
	Meta     Meta       `json:"meta"`
	Imports  []Import   `json:"imports,omitempty"`
	Calls    []Call     `json:"calls,omitempty"`
	Files    []File     `json:"files,omitempty"`
	Net      []Net      `json:"net,omitempty"`
	Commands []Command  `json:"commands,omitempty"`
	Pipes    []Pipeline `json:"pipelines,omitempty"`
	Env      []Env      `json:"env,omitempty"`
	Actions  []Action   `json:"actions,omitempty"`
	Dynamic  []Dynamic  `json:"dynamic,omitempty"`
	Strings  []String   `json:"strings,omitempty"`
	Structs  []Struct   `json:"structs,omitempty"`
}

// Meta says what was scanned and how far that went.
type Meta struct {
	Lang   Lang   `json:"lang"`
	SHA256 string `json:"sha256"`
	Bytes  int    `json:"bytes"`
	// Errors counts syntax errors; a program with some may still run in part.
	Errors    int  `json:"errors,omitempty"`
	Truncated bool `json:"truncated,omitempty"` // a limit was hit
	Nodes     int  `json:"nodes,omitempty"`     // syntax nodes seen, over all nested texts
}

// Import is a module that becomes reachable.
type Import struct {
	At
	Module string   `json:"module"` // dotted or as in require(); "" where it could not be folded
	Names  []string `json:"names,omitempty"`
	Alias  string   `json:"alias,omitempty"`
	How    string   `json:"how,omitempty"` // import, from, require, dynamic, __import__
}

// Call is one call under its resolved name.
type Call struct {
	At
	Name string  `json:"name"`
	Args []Value `json:"args,omitempty"`
	// Kwargs are named arguments (Python).
	Kwargs map[string]Value `json:"kwargs,omitempty"`
	// Recv are the arguments of the constructor that made the receiver, as in
	// Path("/etc/passwd").unlink(); or the receiver's own value, as Recv[0],
	// where it is a constant.
	Recv []Value `json:"recv,omitempty"`
	// How the name was resolved: "" (as written), alias, attr, getattr,
	// import_module, subscript, decorator, value.
	How string `json:"how,omitempty"`
	// New marks a constructor call with the keyword new.
	New bool `json:"new,omitempty"`
}

// File operations, as File.Op.
const (
	OpRead    = "read"
	OpWrite   = "write"
	OpAppend  = "append"
	OpDelete  = "delete"
	OpList    = "list"
	OpStat    = "stat"
	OpChmod   = "chmod" // mode, owner, attributes
	OpCopySrc = "copy_src"
	OpCopyDst = "copy_dst"
	OpMoveSrc = "move_src"
	OpMoveDst = "move_dst"
	OpExec    = "exec" // started or sourced
	OpLink    = "link"
	OpMkdir   = "mkdir"
	OpMount   = "mount"
)

// File is one use of one path.
type File struct {
	At
	Op string `json:"op"`
	// Path is cleaned and absolute where the working directory is known; "~"
	// and "$HOME" are kept as "~". Where it is known in part, Path is the known
	// prefix and Folded is false.
	Path      string `json:"path"`
	Class     string `json:"class"` // of the path, see Tables.Paths; "unknown" where not folded
	Traversal bool   `json:"traversal,omitempty"`
	Folded    bool   `json:"folded"`
	Recursive bool   `json:"recursive,omitempty"`
	Mode      string `json:"mode,omitempty"` // of chmod and mkdir, where known; "target" of what a link is to point at
	By        string `json:"by,omitempty"`   // the call, program or redirection that does it
	// From is what is written, where that is known to come from somewhere.
	From []string `json:"from,omitempty"`
	// Where is the first origin of a path that is not wholly known.
	Where string `json:"where,omitempty"`
}

// Network operations, as Net.Op.
const (
	OpConnect  = "connect"
	OpRequest  = "request"
	OpListen   = "listen"
	OpDownload = "download"
	OpUpload   = "upload"
	OpResolve  = "resolve"
	OpSendUDP  = "send_udp"
	OpScan     = "scan"
)

// Net is one use of one destination.
type Net struct {
	At
	Op     string `json:"op"`
	Method string `json:"method,omitempty"`
	URL    string `json:"url,omitempty"`
	Scheme string `json:"scheme,omitempty"`
	Host   string `json:"host"` // canonical; "" where it could not be folded
	Port   int    `json:"port,omitempty"`
	Class  string `json:"class"` // loopback, private, link_local, metadata, public, allowed, unix, any, unknown
	Folded bool   `json:"folded"`
	By     string `json:"by,omitempty"`
	// Carries is where the data sent comes from, such as "file:/etc/passwd" or
	// "env". See [Value.From].
	Carries []string `json:"carries,omitempty"`
	// Size is the number of bytes sent at once, where it is known to be large.
	Size int `json:"size,omitempty"`
}

// Command is one program with its arguments, after its wrappers were removed.
type Command struct {
	At
	Name string `json:"name"` // base name; "" where it could not be folded
	Path string `json:"path,omitempty"`
	// Argv holds what is known of each word; a word that is not known is "".
	Argv []string `json:"argv,omitempty"`
	// Opaque are the indices of words in Argv that are not (wholly) known.
	Opaque []int `json:"opaque,omitempty"`
	// Flags are normalised: single letters of a bundle apart, long ones without
	// dashes and values, and a long flag's short twin beside it ("r" and
	// "recursive").
	Flags []string `json:"flags,omitempty"`
	// Values are the values of flags that take one.
	Values   map[string]string `json:"values,omitempty"`
	Operands []string          `json:"operands,omitempty"`
	Redirs   []Redir           `json:"redirs,omitempty"`
	// Stdin is "" (inherited), const, pipe, file, or net.
	Stdin      string            `json:"stdin,omitempty"`
	PipeFrom   []string          `json:"pipe_from,omitempty"` // names of the programs before it in its pipeline
	PipeTo     []string          `json:"pipe_to,omitempty"`
	Background bool              `json:"background,omitempty"`
	In         []string          `json:"in,omitempty"` // if, while, function:NAME, …
	Env        map[string]string `json:"env,omitempty"`
	Wrappers   []string          `json:"wrappers,omitempty"` // sudo, env, …, outermost first
}

// Redir is a redirection of a command.
type Redir struct {
	Op     string `json:"op"` // >, >>, <, <<, <<<, <>, >&, &>, >|
	FD     int    `json:"fd"`
	Target Value  `json:"target"`
}

// Pipeline is commands joined by pipes, by name.
type Pipeline struct {
	At
	Names []string `json:"names"`
	// From is where the text that flows into its end comes from.
	From []string `json:"from,omitempty"`
}

// Env is a use of environment variables.
type Env struct {
	At
	Op   string `json:"op"` // read, write, dump; set: code that a shell script keeps there, and that is scanned
	Name string `json:"name,omitempty"`
	// Value is what is written, where known, or how that begins. What is written to
	// a variable of class startup is one fact for each value that it can have; Open
	// says that it may have others.
	Value string `json:"value,omitempty"`
	Open  bool   `json:"open,omitempty"`
	Class string `json:"class,omitempty"` // secret, startup, loader, …; see Tables.EnvNames
	// From is where what is written comes from, as far as that says more than
	// the value.
	From []string `json:"from,omitempty"`
}

// Action is a capability that is neither a file, a host, nor a command. The
// names of Op are data (the api tables); rules look them up by name: kill,
// fork, setuid, ptrace, namespace, chroot, mount, reboot, rlimit, screen,
// keys, clipboard, camera, microphone, host_watch, host_info, processes,
// users, deserialise, native_code, inspect, trace, atexit, input, …
type Action struct {
	At
	Op     string   `json:"op"`
	Detail string   `json:"detail,omitempty"`
	By     string   `json:"by,omitempty"`
	Args   []string `json:"args,omitempty"` // folded arguments, "" where not known
	From   []string `json:"from,omitempty"` // where the arguments come from, see [Value.From]
}

// Kinds of Dynamic.
const (
	DynEval          = "eval"           // code text that was folded and scanned
	DynOpaqueCode    = "opaque_code"    // code text that could not be folded
	DynFile          = "opaque_file"    // a file of code is run whose path could not be folded
	DynPartialCode   = "partial_code"   // a command line that is known in part, its program among that
	DynImport        = "dyn_import"     // module name not folded
	DynAttr          = "dyn_attr"       // attribute of a dangerous module, or a subscript of builtins, not folded
	DynCall          = "dyn_call"       // callee reached through a container or a namespace dictionary, not folded
	DynCommand       = "opaque_command" // program name not folded
	DynGlob          = "glob_command"   // program named by a pattern
	DynUnparsable    = "unparsable"     // not a program of this language
	DynTooDeep       = "too_deep"       // nesting of code in code, or of brackets
	DynLimit         = "limit"          // a bound was hit; more may be there
	DynEncoded       = "encoded_payload"
	DynReflection    = "reflection" // __subclasses__, constructor.constructor, process.binding
	DynNative        = "native_code"
	DynHidden        = "hidden_name"    // a module or function whose name does not stand in the text
	DynHiddenCommand = "hidden_command" // the same of a program
	DynInvisible     = "invisible"      // bidi or zero-width characters, confusable identifiers
	DynUnscanned     = "unscanned"      // code in a language without extractor, or a file that was not seen
	DynOpaque        = "opaque"         // the scanner failed, hung, or lied
)

// Dynamic is what could not be told, or only by unfolding.
type Dynamic struct {
	At
	Kind   string   `json:"kind"`
	Detail string   `json:"detail,omitempty"`
	From   []string `json:"from,omitempty"` // where the text comes from, see [Value.From]
	// Inert: the text is known, and nothing in it touches anything; of a
	// program or function that is not known, what it is given names nothing
	// that matters.
	Inert bool `json:"inert,omitempty"`
}

// String is a literal of a kind that rules may ask about.
type String struct {
	At
	Kind string `json:"kind"` // url, ip, path, base64, hex, private_key, token
	Text string `json:"text"` // shortened; secrets are masked
	Len  int    `json:"len"`
	// Class is the path's or host's class, where Kind is path, url or ip.
	Class   string  `json:"class,omitempty"`
	Entropy float64 `json:"entropy,omitempty"`
}

// Kinds of Struct.
const (
	StructForkBomb = "fork_bomb"
	StructRecvExec = "recv_exec" // what a socket receives is run
)

// Struct is a shape of the program rather than one place in it.
type Struct struct {
	At
	Kind   string `json:"kind"`
	Detail string `json:"detail,omitempty"`
}

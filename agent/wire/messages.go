package wire

// Places inside a sandbox.
const (
	// RunDir belongs to the agent: a tmpfs that users may pass through and not
	// list or write.
	RunDir = "/run/caisson"
	// PrivateDir, below it, is closed to users: the agent's sockets.
	PrivateDir = RunDir + "/private/io"
	// SocketName is the agent's socket in PrivateDir, ReadyName the host's,
	// which the agent connects to once it listens.
	SocketName = "agent.sock"
	ReadyName  = "ready.sock"
	// StageDir holds a folder for each exec, with the files that were staged
	// for it.
	StageDir = RunDir + "/exec"
	// AgentPath is where the agent's binary is mounted.
	AgentPath = RunDir + "/agent"
	// WorkspaceDir is the folder that lasts.
	WorkspaceDir = "/workspace"
	// HomeDir is the users' home: empty at the start, and not the workspace.
	HomeDir = "/home/sandbox"
)

// Beside are the folders whose files can be asked for beside the workspace's, by
// absolute paths. They end with their sandbox.
var Beside = []string{"/tmp", "/var/tmp", HomeDir}

// NotFirst is the exit code of an agent that is not the first process of its
// sandbox: what programs leave behind would become another's.
const NotFirst = 3

// MaxWatches is how many folders a sandbox's agent watches at most. The kernel
// bounds those of all sandboxes together.
const MaxWatches = 4096

// StagePath is where the staged file name of exec id lies.
func StagePath(id, name string) string { return StageDir + "/" + id + "/" + name }

// Hello opens a connection.
type Hello struct {
	Version int `json:"version"`
	// Secret is what the claim set. It is never shown by the agent.
	Secret []byte `json:"secret"`
	// Claim takes an agent that nobody has claimed. An agent is claimed once:
	// another claim is a conflict.
	Claim *Claim `json:"claim,omitempty"`
	Lease Lease  `json:"lease"`
	// Answer, in place of all calls, asks for what that exec has handed back, as a
	// file: see [Sealed].
	Answer string `json:"answer,omitempty"`
	// Outlet, in place of all calls, asks for that exec's outlet as a socket that
	// listens: see [Egress].
	Outlet string `json:"outlet,omitempty"`
}

// Claim gives an agent its owner: until then it serves nobody. A pool keeps
// unclaimed agents ready.
type Claim struct {
	Secret    []byte `json:"secret"` // 32 bytes or more, of every later Hello
	UID       int    `json:"uid"`    // of role user; the gid is the same
	RunnerUID int    `json:"runner_uid"`
	// OneShot makes the agent end itself, and so the sandbox, once nobody has
	// been connected for [Lease].GraceMS.
	OneShot bool `json:"one_shot,omitempty"`
	// Renew sets the sandbox's own end.
	Renew Renew `json:"renew"`
	// Env is the base of each exec's environment, KEY=VALUE.
	Env []string `json:"env,omitempty"`
	// WorkspaceBytes and WorkspaceEntries bound what the workspace holds, where its
	// file system does not. 0 bytes is no bound.
	WorkspaceBytes   int64 `json:"workspace_bytes,omitempty"`
	WorkspaceEntries int64 `json:"workspace_entries,omitempty"`
	// OpenFiles is how many files a program may have open at first, where starts are seen.
	OpenFiles int `json:"open_files,omitempty"`
	// Harden has the agent hold what it starts to package harden's rules. Where it
	// cannot, the claim fails, as unsupported. nil leaves it to the sandbox alone.
	Harden *Harden `json:"harden,omitempty"`
}

// Harden says what programs of a hardened sandbox may do.
type Harden struct {
	Writable []string `json:"writable"` // folders that they may write in; at least one
	// OpenFiles is how many files each may have open, up to the sandbox's own limit.
	OpenFiles int `json:"open_files"`
}

// Renew says when a sandbox ends itself, counted from when it is received. 0
// is never; a field that is nil stays as it was.
type Renew struct {
	IdleMS *int64 `json:"idle_ms,omitempty"` // without a call or a running exec
	TTLMS  *int64 `json:"ttl_ms,omitempty"`
}

// Lease says what becomes of the execs of a connection that breaks. Several
// connections may share a lease; it breaks with the last of them.
type Lease struct {
	ID string `json:"id"`
	// Keep lets the execs go on without a client, as a session's do. Otherwise
	// they are ended after GraceMS.
	Keep    bool  `json:"keep,omitempty"`
	GraceMS int64 `json:"grace_ms,omitempty"` // 0 is [DefaultGraceMS], at most [MaxGraceMS]
}

// The grace of a lease.
const (
	DefaultGraceMS = 2000
	MaxGraceMS     = 5000
)

// Welcome answers a Hello.
type Welcome struct {
	Version int    `json:"version"`
	Build   string `json:"build"` // of the agent, for people
	PID     int    `json:"pid"`   // the agent's, in its own namespace: 1 in a container
	// Hardened says that it holds what it starts to what its claim asked for.
	Hardened bool `json:"hardened,omitempty"`
	// Starts says that what an exec starts can be seen here, and refused. An agent that
	// does not know all of [Starts] says it by another name, and is not believed.
	Starts bool `json:"judges,omitempty"`
	// Known are the digests of texts that need not be sent: see [Stage].
	Known []string `json:"known,omitempty"`
}

// Failure ends a stream: the call did not work.
type Failure struct {
	Kind    string `json:"kind"` // name of a sandbox.Kind
	Message string `json:"message"`
}

// Op names a call.
type Op string

// The calls.
const (
	OpExec   Op = "exec"   // start a process and follow it
	OpShell  Op = "shell"  // run a text in a shell, and follow that: see [Shell]
	OpAttach Op = "attach" // follow one that runs, or read what it left
	OpStdin  Op = "stdin"  // standard input of one that runs, by who started it
	OpInput  Op = "input"  // some of it, by anybody: see [Input]
	OpResize Op = "resize" // an exec's terminal
	OpKill   Op = "kill"   // end everything that an exec started
	OpList   Op = "list"   // execs that run or whose end nobody has read
	OpPut    Op = "put"    // a tar stream into the workspace
	OpGet    Op = "get"    // one out of it
	OpSample Op = "sample" // the sandbox's resources, now
	OpSignal Op = "signal" // a signal to an exec's process, or to all that it started
	OpRenew  Op = "renew"  // other times for the sandbox's own end

	// Files, below the workspace, as a role's user: see [File].
	OpStat       Op = "stat"
	OpTree       Op = "tree"  // the entries below a folder, as Data frames, then Reply
	OpRead       Op = "read"  // a file's bytes as Data frames, then Reply
	OpWrite      Op = "write" // Data frames into a file, which appears whole or not at all
	OpMkdir      Op = "mkdir"
	OpMove       Op = "move"
	OpRemove     Op = "remove"
	OpWatch      Op = "watch"      // changes as Data frames, until the client closes
	OpAttributes Op = "attributes" // those of an entry are replaced

	OpObserve Op = "observe" // what was touched: see [Observe]
	OpRestore Op = "restore" // entries as they are to be: see [Restore]

	OpScrub Op = "scrub" // everything that execs left behind is removed: a Reply, or why not

	OpEgress Op = "egress" // an exec's proxy on the loopback device: see [Egress]
	OpTools  Op = "tools"  // an exec's socket for calls of the host's tools: see [Tools]
	OpTake   Op = "take"   // a connection to one of these: see [Take]
	OpDial   Op = "dial"   // a connection to a port inside: see [Dial]
	OpAnswer Op = "answer" // what an exec has handed back, as Data frames, then Reply
	OpJudge  Op = "judge"  // what an exec starts while it runs: see [Judge]
)

// Request opens a call: Op, and the field of its name.
type Request struct {
	Op     Op      `json:"op"`
	Exec   *Exec   `json:"exec,omitempty"`
	Shell  *Shell  `json:"shell,omitempty"`
	Attach *Attach `json:"attach,omitempty"`
	Stdin  *Stdin  `json:"stdin,omitempty"`
	Input  *Input  `json:"input,omitempty"`
	Resize *Resize `json:"resize,omitempty"`
	Kill   *Kill   `json:"kill,omitempty"`
	Put    *Put    `json:"put,omitempty"`
	Get    *Get    `json:"get,omitempty"`
	Signal *Signal `json:"signal,omitempty"`
	Renew  *Renew  `json:"renew,omitempty"`
	File   *File   `json:"file,omitempty"`

	Observe *Observe `json:"observe,omitempty"`
	Restore *Restore `json:"restore,omitempty"`
	Egress  *Egress  `json:"egress,omitempty"`
	Tools   *Tools   `json:"tools,omitempty"`
	Take    *Take    `json:"take,omitempty"`
	Dial    *Dial    `json:"dial,omitempty"`
	Answer  *Answer  `json:"answer,omitempty"`
	Judge   *Judge   `json:"judge,omitempty"`
}

// Exec asks for a process.
type Exec struct {
	ID        string   `json:"id"` // chosen by the client, fresh
	Argv      []string `json:"argv"`
	Env       []string `json:"env,omitempty"` // over the claim's; a later one wins
	Dir       string   `json:"dir,omitempty"` // "" is the workspace
	Role      string   `json:"role,omitempty"`
	TimeoutMS int64    `json:"timeout_ms,omitempty"` // 0 is none
	// MaxOutput ends the exec once either stream has passed it, in bytes. 0 is
	// no cap.
	MaxOutput int64 `json:"max_output,omitempty"`
	// Stdin says that it has a standard input; otherwise it reads /dev/null. An
	// [OpStdin] call follows, or where Drop is set, [OpInput] calls may.
	Stdin bool `json:"stdin,omitempty"`
	// Reap ends, with the process, everything that it started.
	Reap bool `json:"reap,omitempty"`
	// Drop lets output that nobody reads push out the oldest, instead of
	// stalling the process.
	Drop bool `json:"drop,omitempty"`
	// Hold stalls it all the same while somebody who attached is behind, and at its
	// start until somebody has: for a minute without a byte read.
	Hold  bool    `json:"hold,omitempty"`
	Stage []Stage `json:"stage,omitempty"`
	// Track books what it does to the workspace. It is a conflict where
	// something was touched before and not observed, unless Late is set.
	Track bool `json:"track,omitempty"`
	Late  bool `json:"late,omitempty"`
	// Fresh says that what is in the workspace before is nobody's doing.
	Fresh bool `json:"fresh,omitempty"`
	// Shell makes the process one that runs texts for [OpShell] until it ends: one of
	// the kinds of shell. Then there is no Argv, and Stdin and Drop are set.
	Shell string `json:"shell,omitempty"`
	// Terminal gives the process a terminal of that size, in place of three streams:
	// what it shows is standard output. Then Stdin and Drop are set.
	Terminal *Size `json:"terminal,omitempty"`
	// Tools gives it, and what it starts, a socket by which the host's tools are called.
	Tools bool `json:"tools,omitempty"`
	// Answer lets it hand something back, of at most so many bytes, by [AnswerSocket].
	Answer int64 `json:"answer,omitempty"`
	// Starts has what it starts seen; nil has not.
	Starts *Starts `json:"starts,omitempty"`
	// Warm forks a Python that runs, in place of starting one, where that is the
	// same for the program; [End] says whether it was.
	Warm *Warm `json:"warm,omitempty"`
}

// Size is a terminal's, in characters.
type Size struct {
	Rows uint16 `json:"rows"`
	Cols uint16 `json:"cols"`
}

// The kinds of shell.
const (
	ShellAny    = "shell" // bash where the image has one, else sh
	ShellBash   = "bash"
	ShellSh     = "sh"
	ShellPython = "python"
)

// Shell asks a shell to run a text, as an exec of its own: it has an id, streams, an
// end and what it used. One text runs at a time; another is a conflict.
type Shell struct {
	ID        string `json:"id"`    // of this run, fresh
	Shell     string `json:"shell"` // the exec that is the shell
	Text      string `json:"text"`
	Stdin     bool   `json:"stdin,omitempty"`
	TimeoutMS int64  `json:"timeout_ms,omitempty"`
	MaxOutput int64  `json:"max_output,omitempty"`
	Track     bool   `json:"track,omitempty"`
	Late      bool   `json:"late,omitempty"`
	// Runs is how many runs of the shell the client knows of. Where there were others,
	// nothing runs, and a Reply tells what the shell holds.
	Runs int `json:"runs"`
}

// MaxHeld bounds the texts that an agent remembers of a shell, in bytes.
const MaxHeld = 256 << 10

// Held is what a shell is known to hold.
type Held struct {
	Runs   int      `json:"runs"`
	Dir    string   `json:"dir"`
	Texts  []string `json:"texts,omitempty"`  // of its runs, the oldest first
	Forgot bool     `json:"forgot,omitempty"` // there were more, above [MaxHeld]
}

// Attach asks for an exec's output from the given offsets on.
type Attach struct {
	ID     string `json:"id"`
	Stdout int64  `json:"stdout"`
	Stderr int64  `json:"stderr"`
	// NoWait answers with a Reply once everything that is there has been sent,
	// where the exec has not ended.
	NoWait bool `json:"no_wait,omitempty"`
}

// Stdin names the exec that the following Stdin frames are for. Input has a
// call of its own so that a process that does not read it holds up neither its
// output nor a Cancel. What is typed into a terminal comes so too, by anybody, but
// by one at a time: a Reply says that it may come, and the stream's end closes nothing.
type Stdin struct {
	ID string `json:"id"`
}

// Input is for the standard input of an exec with Stdin and Drop, which stays open
// until a call closes it. The Reply's Bytes says how many were taken: fewer where
// the process does not read, and then nothing is closed.
type Input struct {
	ID    string `json:"id"`
	Data  []byte `json:"data,omitempty"` // at most [MaxChunk]
	Close bool   `json:"close,omitempty"`
}

// Resize sets the size of an exec's terminal, in characters.
type Resize struct {
	ID string `json:"id"`
	Size
}

// Kill names an exec. Its cause is told to all who follow it: see [End]. One that the
// agent does not know is not_found, and can begin no more.
type Kill struct {
	ID      string `json:"id"`
	Cause   string `json:"cause,omitempty"`
	Unbegun bool   `json:"unbegun,omitempty"` // one that it knows is spared: conflict
}

// Put asks for a tar stream, sent as Data frames, to be unpacked below the
// workspace as a role's user.
type Put struct {
	Dir  Name   `json:"dir,omitempty"` // below the workspace
	Role string `json:"role,omitempty"`
}

// Get asks for a tar stream of a folder of the workspace, sent as Data frames.
type Get struct {
	Dir   Name   `json:"dir,omitempty"`   // below the workspace
	Paths []Name `json:"paths,omitempty"` // below Dir: these alone, a folder without what is in it; none is all
	Role  string `json:"role,omitempty"`
}

// Signal asks for a signal to an exec's process. As a frame of the exec's own
// stream it needs no ID.
type Signal struct {
	ID     string `json:"id,omitempty"`
	Number int    `json:"number"`
	All    bool   `json:"all,omitempty"` // to everything that it started
}

// File asks for something to be done with a path below the workspace. No path
// and no link leads out of it.
type File struct {
	Path Name   `json:"path"`
	To   Name   `json:"to,omitempty"` // of move
	Role string `json:"role,omitempty"`
	Mode uint32 `json:"mode,omitempty"`
	// Depth bounds tree: 1 is the folder's own entries, 0 is everything.
	Depth int `json:"depth,omitempty"`
	// Offset and Length bound read, in bytes; Length 0 is to the end.
	Offset    int64 `json:"offset,omitempty"`
	Length    int64 `json:"length,omitempty"`
	Recursive bool  `json:"recursive,omitempty"` // of remove and watch
	// Attributes are what an entry is to have: see [FileInfo].
	Attributes map[string]string `json:"attributes,omitempty"`
}

// More than one call lists of a tree: entries, and bytes of them.
const (
	MaxListed      = 200_000
	MaxListedBytes = 64 << 20
)

// FileInfo describes one entry of the workspace.
type FileInfo struct {
	Path    Name   `json:"path"` // below the workspace, with slashes; "." is the workspace
	Type    string `json:"type"` // "file", "dir", "link", "other"
	Size    int64  `json:"size"`
	Mode    uint32 `json:"mode"` // permission bits
	MTimeNS int64  `json:"mtime_ns"`
	Target  Name   `json:"target,omitempty"` // of a link
	// Attributes are extended ones of the namespace "user.", without that: those that are
	// text, up to [MaxAttributes].
	Attributes map[string]string `json:"attributes,omitempty"`
}

// MaxAttributes bounds the attributes of one entry that are told, in bytes.
const MaxAttributes = 4096

// FileEvent is one change that watch saw.
type FileEvent struct {
	Path Name   `json:"path,omitempty"`
	Op   string `json:"op"` // "create", "write", "remove", "rename", "chmod", "overflow"
}

// Started says that the process runs.
type Started struct {
	PID int `json:"pid"` // in the sandbox's namespace
}

// End is the last word about an exec. All output comes before it.
type End struct {
	Code   int      `json:"code"`             // of the process, or 128 + signal
	Signal int      `json:"signal,omitempty"` // that ended it
	Ended  string   `json:"ended,omitempty"`  // "timeout", "canceled", "output", "disk", "denied": who ended it, if caisson did
	Cause  string   `json:"cause,omitempty"`  // why, as who canceled it said
	Events []string `json:"events,omitempty"` // "oom", "pids", "disk"
	Shared bool     `json:"shared,omitempty"`
	// Error says why the process never began; Code is then 126 or 127.
	Error string `json:"error,omitempty"`
	// Survivors counts processes that could not be ended.
	Survivors int `json:"survivors,omitempty"`
	// Exhausted says that nothing can run any more, since files in memory leave
	// no room below the memory limit.
	Exhausted bool  `json:"exhausted,omitempty"`
	Stdout    int64 `json:"stdout"` // bytes in all
	Stderr    int64 `json:"stderr"`
	Usage     Usage `json:"usage"`
	// HeldBytes and HeldEntries are what the workspace holds, where the exec took
	// more than its size.
	HeldBytes   int64 `json:"held_bytes,omitempty"`
	HeldEntries int64 `json:"held_entries,omitempty"`
	// Touched counts paths of the workspace that wait to be observed; at least
	// 1 where only a walk can tell.
	Touched  int    `json:"touched,omitempty"`
	Warm     bool   `json:"warm,omitempty"`     // it was forked, and not started
	Answer   int64  `json:"answer,omitempty"`   // the size of what it has handed back
	Answered []byte `json:"answered,omitempty"` // all of that, up to [SmallAnswer] bytes
	// Of a run in a shell: the folder that this is in now, or why it has ended.
	Dir        string `json:"dir,omitempty"`
	ShellEnded string `json:"shell_ended,omitempty"`
	// Starts counts what it started, Refused those that were refused, and Unjudged
	// those of them that nobody was there to judge, where that was seen.
	Starts   int `json:"starts,omitempty"`
	Refused  int `json:"refused,omitempty"`
	Unjudged int `json:"unjudged,omitempty"`
	// Told are those, and how they ended, of which no judge was told: see [Starts].Call.
	Told []*Start `json:"told,omitempty"`
}

// Usage is what an exec used, each figure with its method.
type Usage struct {
	WallUS          int64  `json:"wall_us"`
	CPUUS           int64  `json:"cpu_us"`
	CPUMethod       string `json:"cpu_method"`
	MemoryBytes     int64  `json:"memory_bytes"`
	MemoryMethod    string `json:"memory_method"`
	Processes       int    `json:"processes"`
	ProcessesMethod string `json:"processes_method"`
}

// Reply answers a short call.
type Reply struct {
	Execs  ExecList  `json:"execs,omitempty"`
	Sample *Sample   `json:"sample,omitempty"`
	Files  int       `json:"files,omitempty"`
	Bytes  int64     `json:"bytes,omitempty"`
	Count  int       `json:"count,omitempty"`
	Info   *FileInfo `json:"info,omitempty"`
	Held   *Held     `json:"held,omitempty"`
	More   bool      `json:"more,omitempty"` // the answer was cut at a limit
	// Skipped names what was left out, with the reason; Count counts it.
	Skipped []string `json:"skipped,omitempty"`
}

// Sample is one reading of a sandbox's resources. What could not be read, and a
// limit that there is not, is 0.
type Sample struct {
	CPUUS       int64 `json:"cpu_us"`
	ThrottledUS int64 `json:"throttled_us"`
	MilliCPUs   int64 `json:"milli_cpus,omitempty"` // limit, in thousandths of a core
	Cores       int   `json:"cores"`                // of the machine

	MemoryBytes int64 `json:"memory_bytes"` // with what is cached
	CachedBytes int64 `json:"cached_bytes"` // of these, what the kernel drops first
	MemoryLimit int64 `json:"memory_limit,omitempty"`
	OOMKills    int64 `json:"oom_kills"`

	Processes    int   `json:"processes"` // tasks, the agent's included
	ProcessLimit int   `json:"process_limit,omitempty"`
	Zombies      int   `json:"zombies"`
	PIDsMax      int64 `json:"pids_max"` // times that the limit was hit

	ReceivedBytes int64 `json:"received_bytes"` // but for the loopback device
	SentBytes     int64 `json:"sent_bytes"`
	ReadBytes     int64 `json:"read_bytes"` // of block devices
	WrittenBytes  int64 `json:"written_bytes"`

	WorkspaceBytes int64 `json:"workspace_bytes"`
	WorkspaceSize  int64 `json:"workspace_size,omitempty"`
	TmpBytes       int64 `json:"tmp_bytes"`
	TmpSize        int64 `json:"tmp_size,omitempty"`

	AgentBytes int64 `json:"agent_bytes"`
	AgentTasks int   `json:"agent_tasks"`
}

// Relayed is the first byte of a relay's output: it has reached its agent.
const Relayed byte = 0x06

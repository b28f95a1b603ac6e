package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

// runRoles are what a run needs of caisson.
type runRoles interface {
	api.Runner
	api.Execs
	api.Sessions
	api.Languages
	terminalRoles
}

// runOptions are the flags of `caisson run`.
type runOptions struct {
	run     sandbox.Run
	code    string
	hasCode bool
	// codeRead says that standard input was the code.
	codeRead bool
	named    string // the file that the code is of
	files    []string
	contents contents // of the host's files
	env      []string
	labels   []string
	stdin    string
	kind     string // of workspace
	json     bool
	summary  bool
	trace    bool
	tree     *startTree // of --trace
	session  string     // of `caisson exec`
	detach   bool
	// tty gives it a terminal, and interactive has it read this one.
	tty, interactive bool
	terminal         terminalOptions
	track            string
	tools            string // file of tools that this process answers
	into             string // folder for artifacts
	taken            *artifactFolder
	batch            batchOptions
	ordered          bool // of a batch
	// noReader says that whoever read the program's output has gone away.
	noReader bool
}

func newRun(cfg Config) *cobra.Command {
	o := &runOptions{}
	cmd := &cobra.Command{
		Use:   "run [flags] [-c CODE | FILE | - | --batch FILE] [-- COMMAND | ARGS…]",
		Short: "Run code once, in a hardened sandbox of its own",
		Long: `Run code once, in a hardened sandbox of its own, and destroy the sandbox.

What runs is CODE, a FILE (copied into /workspace), standard input (-), or,
with neither, the COMMAND behind --. Behind -- stand arguments otherwise.

With --batch, many runs come as JSON lines ({"id", "language", "code", "stdin",
"files", "limits", …}, docs/batches.md) and results go out as JSON lines, each as it
ends. What a line leaves out the flags say. 0 is then that each has a result, however
its program ended, and 1 that some have an error instead.

Exit code: the program's own; 124 timed out; 126 refused, by policy or for want of
a permission; 127 command not found; 130 canceled; 137 out of memory or killed; of
caisson's errors: 2 wrong usage, 122 in conflict with what is there, 123 not found,
125 any other. With --json, an error is an object {code, kind, message, hint}.
Every flag has a variable: --memory is CAISSON_MEMORY.`,
		Example: `  caisson run -l python -c 'print(1)'
  caisson run report.py --file data.csv --timeout 10s
  echo 'console.log(1)' | caisson run -l node -
  caisson run --image caisson/shell:12 -- ls -l
  echo '{"id": 1, "code": "print(input())", "stdin": "hello"}' | caisson run -l python --batch -`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.hasCode = cmd.Flags().Changed("code")
			if o.batch.file != "" || o.batch.given() || o.ordered {
				if o.tty {
					return sandbox.Errorf(sandbox.Invalid, "--tty with a batch").WithHint("leave one of them out")
				}
				return o.executeBatch(cmd.Context(), cfg, args)
			}
			o.interactive = o.interactive && o.tty // else it is read anyway
			o.untimed(cmd.Flags())
			return o.execute(cmd.Context(), cfg, args, cmd.ArgsLenAtDash())
		},
	}
	o.execFlags(cmd.Flags())
	cmd.Flags().BoolVarP(&o.interactive, "interactive", "i", false, "pass standard input on, key by key with --tty; without, it is passed on by itself")
	o.run.Limits = sandbox.DefaultLimits
	boxFlags(cmd.Flags(), &o.run.Limits, &o.run.Image, &o.run.Network, &o.run.Runtime, &o.run.OCIRuntime)
	cmd.Flags().StringVar(&o.kind, "workspace", string(sandbox.WorkspaceTmpfs), "what /workspace is made of: tmpfs or volume")
	cmd.Flags().BoolVar(&o.run.Keep, "keep", false, "leave the container in place when the run fails")
	o.batch.flags(cmd.Flags(), "carry out", "runs")
	cmd.Flags().BoolVar(&o.ordered, "ordered", false, "write the results of --batch in the order of its lines")
	return cmd
}

// execFlags are those of one exec, wherever it runs.
func (o *runOptions) execFlags(f *pflag.FlagSet) {
	l := &o.run.ExecLimits
	*l = sandbox.DefaultExecLimits
	f.StringVarP(&o.run.Language, "language", "l", "", "language of the code: python, node, shell, …; a FILE's suffix tells it too")
	f.StringVarP(&o.code, "code", "c", "", "code to run")
	f.StringArrayVar(&o.files, "file", nil, "copy `SRC[:DST]` into the workspace; a folder with all that is in it (repeatable)")
	envFlag(f, &o.env)
	labelFlag(f, &o.labels)
	f.StringVar(&o.stdin, "stdin", "", "`FILE` for the program's standard input; - is caisson's own, which it is by default where that is a terminal, a pipe or a file")
	f.StringVarP(&o.run.Dir, "workdir", "w", "", "working directory; relative to /workspace")
	durationVar(f, &l.Timeout, "timeout", l.Timeout, "end the program after this long")
	durationVar(f, &o.run.CompileTimeout, "compile-timeout", l.Timeout, "end the compiler after this long, of a language that is compiled")
	f.Var(&l.MaxOutput, "max-output", "end the program when a stream passes this")
	f.Var(&l.KeepOutput, "keep-output", "bytes of each stream to keep in the result: head and tail")
	f.Var((*approveFlag)(&o.run.Approve), "approve", "what becomes of what policy asks about: `ask` and wait, never, or always (default ask on a terminal, else never)")
	f.BoolVar(&o.run.Warm, "warm", false, "fork a Python that runs, in place of starting one, where that is the same for the program")
	f.StringVar(&o.track, "changes", string(sandbox.ModeFast), "how to find what it changes: fast, exact or off")
	f.StringArrayVar(&o.run.Artifacts, "artifact", nil, "collect files that match `PATTERN`, such as 'out/**' (repeatable; default what it puts into artifacts/)")
	f.StringVar(&o.into, "artifacts-to", "", "collect them into this `FOLDER` of the host; without it they are in what --json prints")
	f.StringVar(&o.tools, "tools", "", "let its programs call the tools that `FILE` declares, answered by caisson here: see docs/tools.md")
	f.StringArrayVar(&o.run.Tools, "tool", nil, "let them call the tool `NAME` alone, of all that there are (repeatable)")
	f.BoolVar(&o.run.Program, "program", false, "print the value that the code returns, as JSON: by return at top level or as its last expression; with --json {success, output, value, error, calls}")
	f.BoolVar(&o.json, "json", false, "print one JSON object instead of the program's output")
	f.BoolVarP(&o.tty, "tty", "t", false, "give it a terminal; with -i, this one: ctrl-p ctrl-q leaves it")
	o.terminal.flags(f)
	f.BoolVar(&o.trace, "trace", false, "print which programs it starts, as a tree, while it runs; where the setting starts has them seen")
	f.BoolVar(&o.summary, "summary", false, "print exit code, time, memory and processes at the end")
}

// untimed gives what nobody ends as a rule no time limit, unless one was asked for.
func (o *runOptions) untimed(f *pflag.FlagSet) {
	if (o.detach || o.tty) && !f.Changed("timeout") {
		o.run.Timeout = 0
	}
}

// boxFlags are those of a sandbox.
func boxFlags(f *pflag.FlagSet, l *sandbox.Limits, image *string, network *sandbox.Network, runtime, oci *string) {
	d := sandbox.DefaultLimits
	f.StringVar(image, "image", "", "container `IMAGE` instead of the language's own")
	f.Var(&l.Memory, "memory", "memory of all processes and tmpfs together, without swap")
	f.Float64Var(&l.CPUs, "cpus", d.CPUs, "share of cores")
	f.IntVar(&l.PIDs, "pids", d.PIDs, "processes and threads")
	f.Var(network, "network", "none, allow for the hosts of --allow alone, bridge, or a network of the engine's")
	f.StringArrayVar(&network.Allow, "allow", nil, "with --network allow: `HOST[:PORT]` that may be reached, such as '*.pythonhosted.org:443', or a list's name, such as python-packages (repeatable; without a port 80 and 443)")
	f.StringArrayVar(&network.Deny, "deny", nil, "`HOST[:PORT]` that may not, although --allow has it (repeatable)")
	f.Var((*verdictFlag)(&network.Unlisted), "unlisted", "with --network allow: `ask` about hosts that are on no list, or deny them (default ask)")
	f.IntVar(&network.Limits.Connections, "max-connections", 0, "with --network allow: connections of an exec at once, others wait (default 32)")
	f.Var(&network.Limits.Bytes, "max-traffic", "with --network allow: what an exec moves, both ways together (default no limit)")
	f.Var(&network.Limits.Rate, "max-rate", "with --network allow: the same in a second (default no limit)")
	f.StringVar(runtime, "runtime", "", "`NAME` of what makes the sandbox, as caisson version --json lists them, or auto, the first that works here (default docker, and auto where no engine is)")
	f.StringVar(oci, "oci-runtime", "", "`NAME` of the engine's runtime, such as runsc (default the engine's own)")
	f.Var(&l.Workspace, "workspace-size", "size of the workspace, unless it is a folder of the host")
	f.Var(&l.Tmp, "tmp-size", "size of /tmp, and of the home folder")
	f.Var(&l.Shm, "shm-size", "size of /dev/shm")
	f.IntVar(&l.OpenFiles, "open-files", d.OpenFiles, "open files of a process")
	f.Var(&l.FileSize, "file-size", "largest file")
	f.StringVar((*string)(&l.Hardening), "hardening", "", "second layer around programs: strict or off (default strict where it works)")
}

// envFlag is --env, wherever variables are set.
func envFlag(f *pflag.FlagSet, env *[]string) {
	f.StringArrayVarP(env, "env", "e", nil, "set `KEY=VALUE`; KEY alone takes the host's value (repeatable)")
}

// variables reads what --env was given. One that is not set here is not set there.
func variables(cfg Config, env []string) []string {
	var all []string
	for _, kv := range env {
		if kv != "" && !strings.Contains(kv, "=") {
			value, set := cfg.LookupEnv(kv)
			if !set {
				continue
			}
			kv += "=" + value
		}
		all = append(all, kv)
	}
	return all
}

func (o *runOptions) execute(ctx context.Context, cfg Config, args []string, dash int) error {
	svc, err := open[runRoles](ctx, cfg)
	if err != nil {
		return err
	}
	if err := o.what(cfg, args, dash); err != nil {
		return err
	}
	if name := cmp.Or(o.run.File, o.named); o.run.Language == "" && name != "" {
		if o.run.Language, err = svc.LanguageOf(name); err != nil {
			return err
		}
	}
	if err := o.collect(cfg); err != nil {
		return err
	}
	var pipe notedWriter
	streams := sandbox.Streams{Local: sandbox.Local{Contents: o.contents.open}}
	var endTools func()
	if streams.Tools, endTools, err = o.openTools(ctx, cfg); err != nil {
		return err
	}
	defer endTools()
	if !o.json {
		pipe.Writer = cfg.IO.Out
		streams.Stdout, streams.Stderr = &pipe, cfg.IO.Err
	}
	if streams.Artifact, err = o.takeArtifacts(); err != nil {
		return err
	}
	if o.trace && !o.json {
		o.tree = &startTree{cfg: cfg}
		streams.Started = o.tree.show
	}
	t := openTerminal(ctx, cfg)
	defer t.close()
	closeStdin, err := o.openStdin(cfg, t, &streams)
	if err != nil {
		return err
	}
	defer closeStdin()
	if t != nil && o.run.Approve != sandbox.ApproveNever && o.run.Approve != sandbox.ApproveAlways {
		streams.Ask = t.ask
	}
	warnUnwalled(cfg, o.run.Runtime)
	start := time.Now()
	switch {
	case o.detach:
		return o.start(ctx, cfg, svc, streams.Local)
	case o.tty:
		return o.openInTerminal(ctx, cfg, svc, streams.Local)
	}
	res, err := o.carryOut(ctx, svc, streams)
	o.noReader = brokenPipe(pipe.failed)
	if o.taken != nil {
		o.taken.settle(res.Artifacts)
	}
	return o.conclude(ctx, cfg, svc, res, err, time.Since(start))
}

// conclude tells what came of a run, and of what went wrong beside it.
func (o *runOptions) conclude(ctx context.Context, cfg Config, svc runRoles, res sandbox.Result, err error, total time.Duration) error {
	var denied *sandbox.DeniedError
	refused := errors.As(err, &denied)
	if err != nil && (res.ExecID == "" || refused && !o.json) {
		return err
	}
	switch res.Reason {
	case sandbox.ReasonOOM, sandbox.ReasonPIDs, sandbox.ReasonDisk:
		o.limitsOf(ctx, svc)
	default: // no limit is told
	}
	code := o.report(cfg, res, total)
	if err != nil && !refused {
		printError(cfg.IO.Err, err) // it ran, and something went wrong after: both are told
	}
	return code
}

// carryOut runs it in a sandbox of its own or in a session.
func (o *runOptions) carryOut(ctx context.Context, svc runRoles, streams sandbox.Streams) (sandbox.Result, error) {
	if o.session != "" {
		return svc.Exec(ctx, o.session, o.run, streams)
	}
	return svc.Run(ctx, o.run, streams)
}

// what fills in what is to be run: code, a file, standard input, or a command.
func (o *runOptions) what(cfg Config, args []string, dash int) error {
	before, after := args, []string(nil)
	if dash >= 0 {
		before, after = args[:dash], args[dash:]
	}
	if len(before) > 1 {
		return sandbox.Errorf(sandbox.Invalid, "one FILE, not %d: %s", len(before), strings.Join(before, " ")).WithHint("arguments of the program stand behind --")
	}
	switch {
	case o.hasCode && len(before) > 0:
		return sandbox.Errorf(sandbox.Invalid, "both -c and %s", before[0]).WithHint("give one of -c CODE, FILE, or -")
	case o.hasCode:
		o.run.Code, o.run.Args = o.code, after
	case len(before) == 1 && before[0] == "-":
		if o.stdin == "-" {
			return sandbox.Errorf(sandbox.Invalid, "standard input cannot be both the code and the program's input").WithHint("give the code with -c or as a FILE")
		}
		b, err := io.ReadAll(cfg.IO.In)
		if err != nil {
			return sandbox.Errorf(sandbox.Invalid, "read code from standard input: %w", err).WithHint("give the code with -c or as a FILE")
		}
		o.codeRead, o.run.Code, o.run.Args = true, string(b), after
	case len(before) == 1:
		o.run.Args = after
		return o.addFile(before[0])
	case len(after) > 0:
		o.run.Command = after
		return nil
	default:
		return sandbox.Errorf(sandbox.Invalid, "nothing to run").WithHint("give -c CODE, a FILE, - for standard input, or -- COMMAND")
	}
	if o.run.Code == "" {
		return sandbox.Errorf(sandbox.Invalid, "the code is empty").WithHint("give -c CODE, a FILE, or - with code on standard input")
	}
	if o.run.Language == "" && o.session == "" {
		return sandbox.Errorf(sandbox.Invalid, "code without a language").WithHint("name it with -l, such as -l python")
	}
	return nil
}

// addFile has FILE copied into the workspace and run there. Of one that returns a value
// the text is the code.
func (o *runOptions) addFile(name string) error {
	st, err := os.Stat(name)
	if err != nil {
		return missing(name, err)
	}
	if !st.Mode().IsRegular() {
		return sandbox.Errorf(sandbox.Invalid, "%s is not a file", name).WithHint("name a program, and bring folders with --file")
	}
	if o.run.Program {
		text, err := os.ReadFile(name)
		if err != nil {
			return missing(name, err)
		}
		o.run.Code, o.named = string(text), filepath.Base(name)
		return nil
	}
	o.run.File = filepath.Base(name)
	o.run.Files = append(o.run.Files, sandbox.File{Path: o.run.File, Mode: uint32(st.Mode().Perm()), Ref: o.contents.add(name), Size: st.Size()})
	return nil
}

func missing(name string, err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return sandbox.Errorf(sandbox.Invalid, "no file %s", name).WithHint("check the path; it is looked for on this host")
	}
	return sandbox.Errorf(sandbox.Invalid, "%w", err).WithHint("check the path and its permissions")
}

// collect reads the flags that name things of the host.
func (o *runOptions) collect(cfg Config) error {
	for _, spec := range o.files {
		files, err := o.contents.files(spec)
		if err != nil {
			return err
		}
		o.run.Files = append(o.run.Files, files...)
	}
	o.run.Env = variables(cfg, o.env)
	var err error
	if o.run.Track, err = sandbox.ParseChangeMode(o.track); err != nil {
		return err
	}
	if o.run.Labels, err = labelsOf(o.labels); err != nil {
		return err
	}
	if o.session == "" {
		switch k := sandbox.WorkspaceKind(o.kind); k {
		case sandbox.WorkspaceTmpfs, sandbox.WorkspaceVolume:
			o.run.Workspace.Kind = k
		default:
			return sandbox.Errorf(sandbox.Invalid, "unknown workspace %q", o.kind).WithHint("--workspace takes tmpfs or volume")
		}
		if err := o.run.Network.Check(); err != nil {
			return err
		}
		// Every limit has its default by now: a zero was asked for.
		if err := o.run.Limits.Check(); err != nil {
			return err
		}
	}
	if o.run.Timeout < 0 || o.run.Timeout == 0 && !o.detach && !o.tty {
		return sandbox.Errorf(sandbox.Invalid, "--timeout %s is out of range", o.run.Timeout).WithHint("--timeout takes at least 1ms, such as 30s")
	}
	return nil
}

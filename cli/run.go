package cli

import (
	"context"
	"errors"
	"fmt"
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

// runOptions are the flags of `caisson run`.
type runOptions struct {
	run     sandbox.Run
	code    string
	hasCode bool
	files   []string
	env     []string
	stdin   string
	kind    string // of workspace
	network string
	json    bool
	summary bool
	session string // of `caisson exec`
	detach  bool
	track   string
	into    string // folder for artifacts
}

func newRun(cfg Config) *cobra.Command {
	o := &runOptions{}
	cmd := &cobra.Command{
		Use:   "run [flags] [-c CODE | FILE | -] [-- COMMAND | ARGS…]",
		Short: "Run code once, in a hardened sandbox of its own",
		Long: `Run code once, in a hardened sandbox of its own, and destroy the sandbox.

What runs is CODE, a FILE (copied into /workspace), standard input (-), or,
with neither, the COMMAND behind --. Behind -- stand arguments otherwise.

Exit code: the program's own; 124 timed out; 125 caisson failed; 126 refused;
127 command not found; 130 canceled; 137 out of memory or killed; 2 wrong usage.
Every flag has a variable: --memory is CAISSON_MEMORY.`,
		Example: `  caisson run -l python -c 'print(1)'
  caisson run report.py --file data.csv --timeout 10s
  echo 'console.log(1)' | caisson run -l node -
  caisson run --image alpine:3.20 -- ls -l /`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.hasCode = cmd.Flags().Changed("code")
			return o.execute(cmd.Context(), cfg, args, cmd.ArgsLenAtDash())
		},
	}
	o.execFlags(cmd.Flags())
	o.run.Limits = sandbox.DefaultLimits
	boxFlags(cmd.Flags(), &o.run.Limits, &o.run.Image, &o.network, &o.run.OCIRuntime)
	cmd.Flags().StringVar(&o.kind, "workspace", string(sandbox.WorkspaceTmpfs), "what /workspace is made of: tmpfs or volume")
	cmd.Flags().BoolVar(&o.run.Keep, "keep", false, "leave the container in place when the run fails")
	return cmd
}

// execFlags are those of one exec, wherever it runs.
func (o *runOptions) execFlags(f *pflag.FlagSet) {
	d := sandbox.DefaultLimits
	l := &o.run.Limits
	l.MaxOutput, l.Keep = d.MaxOutput, d.Keep
	f.StringVarP(&o.run.Language, "language", "l", "", "language of the code: python, node, shell, …; a FILE's suffix tells it too")
	f.StringVarP(&o.code, "code", "c", "", "code to run")
	f.StringArrayVar(&o.files, "file", nil, "copy `SRC[:DST]` into the workspace; a folder with all that is in it (repeatable)")
	f.StringArrayVarP(&o.env, "env", "e", nil, "set `KEY=VALUE`; KEY alone takes the host's value (repeatable)")
	f.StringVar(&o.stdin, "stdin", "", "`FILE` for the program's standard input; - is caisson's own")
	f.StringVarP(&o.run.Dir, "workdir", "w", "", "working directory; relative to /workspace")
	f.DurationVar(&o.run.Timeout, "timeout", d.Timeout, "end the program after this long")
	f.Var(&l.MaxOutput, "max-output", "end the program when a stream passes this")
	f.Var(&l.Keep, "keep-output", "bytes of each stream to keep in the result: head and tail")
	f.Var((*approveFlag)(&o.run.Approve), "approve", "what becomes of what policy asks about: `ask` and wait, never, or always (default ask on a terminal, else never)")
	f.StringVar(&o.track, "changes", string(sandbox.ModeFast), "how to find what it changes: fast, exact or off")
	f.StringArrayVar(&o.run.Artifacts, "artifact", nil, "collect files that match `PATTERN`, such as 'out/**' (repeatable; default what it puts into artifacts/)")
	f.StringVar(&o.into, "artifacts-to", "", "collect them into this `FOLDER` of the host; without it they are in what --json prints")
	f.BoolVar(&o.json, "json", false, "print one JSON object instead of the program's output")
	f.BoolVar(&o.summary, "summary", false, "print exit code, time, memory and processes at the end")
}

// boxFlags are those of a sandbox.
func boxFlags(f *pflag.FlagSet, l *sandbox.Limits, image, network, oci *string) {
	d := sandbox.DefaultLimits
	f.StringVar(image, "image", "", "container `IMAGE` instead of the language's own")
	f.Var(&l.Memory, "memory", "memory of all processes and tmpfs together, without swap")
	f.Float64Var(&l.CPUs, "cpus", d.CPUs, "share of cores")
	f.IntVar(&l.PIDs, "pids", d.PIDs, "processes and threads")
	f.StringVar(network, "network", string(sandbox.NetworkNone), "none, bridge, or a network of the engine's")
	f.StringVar(oci, "oci-runtime", "", "`NAME` of the engine's runtime, such as runsc (default the engine's own)")
	f.Var(&l.Workspace, "workspace-size", "size of a tmpfs workspace")
	f.Var(&l.Tmp, "tmp-size", "size of /tmp, and of the home folder")
	f.Var(&l.Shm, "shm-size", "size of /dev/shm")
	f.IntVar(&l.OpenFiles, "open-files", d.OpenFiles, "open files of a process")
	f.Var(&l.FileSize, "file-size", "largest file")
}

func (o *runOptions) execute(ctx context.Context, cfg Config, args []string, dash int) error {
	mode, err := sandbox.ParseChangeMode(o.track)
	if err != nil {
		return err
	}
	o.run.Track = mode
	svc, err := cfg.Service(ctx)
	if err != nil {
		return err
	}
	if err := o.what(cfg, args, dash); err != nil {
		return err
	}
	if o.run.Language == "" && o.run.File != "" {
		if o.run.Language, err = svc.LanguageOf(o.run.File); err != nil {
			return err
		}
	}
	if err := o.collect(cfg); err != nil {
		return err
	}
	streams := sandbox.Streams{Stdout: cfg.IO.Out, Stderr: cfg.IO.Err}
	if o.json {
		streams = sandbox.Streams{}
	}
	if streams.Artifact, err = o.takeArtifacts(); err != nil {
		return err
	}
	closeStdin, err := o.openStdin(cfg, &streams)
	if err != nil {
		return err
	}
	defer closeStdin()
	if o.run.Approve != sandbox.ApproveNever && o.run.Approve != sandbox.ApproveAlways {
		var closeTerminal func()
		o.run.Ask, closeTerminal = askOnTerminal(cfg)
		defer closeTerminal()
	}
	start := time.Now()
	if o.detach {
		return o.start(ctx, cfg, svc)
	}
	res, err := o.carryOut(ctx, svc, streams)
	var denied *sandbox.DeniedError
	if err != nil && (res.ExecID == "" || !o.json) {
		if res.ExecID != "" && !errors.As(err, &denied) {
			// It ran, and something went wrong after: both are told.
			printError(cfg.IO.Err, err)
		} else {
			return err
		}
	}
	return o.report(cfg, res, time.Since(start))
}

// carryOut runs it in a sandbox of its own or in a session.
func (o *runOptions) carryOut(ctx context.Context, svc api.Service, streams sandbox.Streams) (sandbox.Result, error) {
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
		return usageError(fmt.Errorf("one FILE, not %d: %s", len(before), strings.Join(before, " ")))
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
			return fmt.Errorf("read code from standard input: %w", err)
		}
		o.run.Code, o.run.Args = string(b), after
	case len(before) == 1:
		o.run.Args = after
		return o.addProgram(before[0])
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

// addProgram has FILE copied into the workspace and run there.
func (o *runOptions) addProgram(name string) error {
	st, err := os.Stat(name)
	if err != nil {
		return missing(name, err)
	}
	if !st.Mode().IsRegular() {
		return sandbox.Errorf(sandbox.Invalid, "%s is not a file", name).WithHint("name a program, and bring folders with --file")
	}
	o.run.File = filepath.Base(name)
	o.run.Files = append(o.run.Files, sandbox.File{Path: o.run.File, Mode: uint32(st.Mode().Perm()), Source: name, Size: st.Size()})
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
		files, err := hostFiles(spec)
		if err != nil {
			return err
		}
		o.run.Files = append(o.run.Files, files...)
	}
	for _, kv := range o.env {
		if !strings.Contains(kv, "=") {
			kv += "=" + cfg.Getenv(kv)
		}
		o.run.Env = append(o.run.Env, kv)
	}
	if o.session == "" {
		switch k := sandbox.WorkspaceKind(o.kind); k {
		case sandbox.WorkspaceTmpfs, sandbox.WorkspaceVolume:
			o.run.Workspace.Kind = k
		default:
			return sandbox.Errorf(sandbox.Invalid, "unknown workspace %q", o.kind).WithHint("--workspace takes tmpfs or volume")
		}
		if err := checkNetwork(o.network); err != nil {
			return err
		}
		o.run.Network = sandbox.Network(o.network)
		// Every limit has its default by now: a zero was asked for.
		if err := o.run.Limits.Check(); err != nil {
			return err
		}
	}
	if o.run.Timeout < 0 || o.run.Timeout == 0 && !o.detach {
		return sandbox.Errorf(sandbox.Invalid, "--timeout %s is out of range", o.run.Timeout).WithHint("--timeout takes at least 1ms, such as 30s")
	}
	return nil
}

func checkNetwork(n string) error {
	if n == "host" || strings.HasPrefix(n, "container:") {
		return sandbox.Errorf(sandbox.Invalid, "network %q would share a namespace", n).WithHint("--network takes none, bridge, or the name of a network of the engine's")
	}
	return nil
}

func (o *runOptions) openStdin(cfg Config, s *sandbox.Streams) (func(), error) {
	switch o.stdin {
	case "":
		return func() {}, nil
	case "-":
		s.Stdin = cfg.IO.In
		return func() {}, nil
	}
	f, err := os.Open(o.stdin)
	if err != nil {
		return nil, missing(o.stdin, err)
	}
	s.Stdin = f
	return func() { _ = f.Close() }, nil // it was only read
}

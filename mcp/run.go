package mcp

import (
	"context"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caisson-dev/caisson/sandbox"
)

// runLike is what tools that run something have in common.
type runLike struct {
	Session   string            `json:"session,omitempty" jsonschema:"the session to run in; without it, a sandbox of its own that is gone afterwards"`
	Args      []string          `json:"args,omitempty" jsonschema:"arguments of the program"`
	Env       map[string]string `json:"env,omitempty" jsonschema:"environment variables"`
	Stdin     string            `json:"stdin,omitempty" jsonschema:"its standard input"`
	Dir       string            `json:"dir,omitempty" jsonschema:"folder to run in, relative to the workspace"`
	Timeout   float64           `json:"timeout_seconds,omitempty" jsonschema:"end it after this long; 30 if not given"`
	Memory    int64             `json:"memory_mb,omitempty" jsonschema:"memory limit, without a session; 512 if not given"`
	Files     []inFile          `json:"files,omitempty" jsonschema:"files to put into the workspace first"`
	Artifacts []string          `json:"artifacts,omitempty" jsonschema:"patterns of files to hand back, such as out/*.png; artifacts/** if not given"`
}

// inFile is a file in a tool's arguments.
type inFile struct {
	Path string `json:"path" jsonschema:"relative to the workspace"`
	Text string `json:"text,omitempty"`
	Data []byte `json:"data_base64,omitempty" jsonschema:"content that is no text, in base64, in the place of text"`
}

func (f inFile) content() []byte {
	if f.Data != nil {
		return f.Data
	}
	return []byte(f.Text)
}

type (
	codeInput struct {
		Language string `json:"language" jsonschema:"such as python, node or shell"`
		Code     string `json:"code" jsonschema:"the program's text"`
		Program  bool   `json:"program,omitempty" jsonschema:"of python or node: answer with the value that the code returns, by return at top level or as its last expression; await works at top level"`
		runLike
	}
	commandInput struct {
		Command  []string `json:"command" jsonschema:"the program and its arguments, without a shell in between"`
		Language string   `json:"language,omitempty" jsonschema:"whose sandbox to run it in; shell if not given"`
		runLike
	}
	shellInput struct {
		Session string  `json:"session" jsonschema:"the session that the shell is in"`
		Text    string  `json:"text" jsonschema:"one command or more"`
		Shell   string  `json:"shell,omitempty" jsonschema:"the shell's name; main if not given. It is opened at first use"`
		Kind    string  `json:"kind,omitempty" jsonschema:"shell, bash, sh or python, when it is opened"`
		Timeout float64 `json:"timeout_seconds,omitempty" jsonschema:"end it after this long; 30 if not given"`
	}
)

func (in runLike) run() sandbox.Run {
	r := sandbox.Run{
		Args: in.Args, Dir: in.Dir, Artifacts: in.Artifacts, Limits: sandbox.Limits{Memory: sandbox.Bytes(in.Memory) * sandbox.MiB},
		ExecLimits: sandbox.ExecLimits{Timeout: seconds(in.Timeout)},
	}
	for _, name := range slices.Sorted(maps.Keys(in.Env)) { // the same each time: an approval is for exactly this
		r.Env = append(r.Env, name+"="+in.Env[name])
	}
	for _, f := range in.Files {
		r.Files = append(r.Files, sandbox.File{Path: f.Path, Data: f.content()})
	}
	return r
}

func runTools(s *Server) {
	mcp.AddTool(s.mcp, about{name: "run_code", title: "Run code", text: "Run a program in an isolated sandbox, without network. Answers with status, exit reason, output, changes of files and artifacts."}.tool(),
		func(ctx context.Context, req *mcp.CallToolRequest, in codeInput) (*mcp.CallToolResult, outcome, error) {
			run := in.run()
			run.Language, run.Code, run.Program = in.Language, in.Code, in.Program
			return s.carryOut(ctx, req, in.runLike, run)
		})
	mcp.AddTool(s.mcp, about{name: "run_command", title: "Run a command", text: "Run a command in an isolated sandbox, without network. Answers as run_code does."}.tool(),
		func(ctx context.Context, req *mcp.CallToolRequest, in commandInput) (*mcp.CallToolResult, outcome, error) {
			run := in.run()
			run.Language, run.Command = in.Language, in.Command
			return s.carryOut(ctx, req, in.runLike, run)
		})
	mcp.AddTool(s.mcp, about{name: "shell", title: "Use a shell", text: "Run commands in a shell of a session that goes on between calls: its folder, variables, functions and jobs stay. Answers as run_code does."}.tool(), s.shell)
}

// carryOut runs something in a session or in a sandbox of its own.
func (s *Server) carryOut(ctx context.Context, req *mcp.CallToolRequest, in runLike, run sandbox.Run) (*mcp.CallToolResult, outcome, error) {
	var stdin io.Reader
	if in.Stdin != "" {
		stdin = strings.NewReader(in.Stdin)
	}
	return s.told(ctx, req, func(streams sandbox.Streams) (sandbox.Result, error) {
		streams.Stdin = stdin
		run.Approve, run.KeepOutput, run.MaxOutput = s.cfg.Approve, mostOutput, mostOutput
		if in.Session == "" {
			return s.svc.Run(ctx, run, streams)
		}
		return s.svc.Exec(ctx, in.Session, run, streams)
	})
}

func (s *Server) shell(ctx context.Context, req *mcp.CallToolRequest, in shellInput) (*mcp.CallToolResult, outcome, error) {
	name := in.Shell
	if name == "" {
		name = "main"
	}
	return s.told(ctx, req, func(streams sandbox.Streams) (sandbox.Result, error) {
		return s.svc.RunShell(ctx, in.Session, name, sandbox.ShellRun{
			Text: in.Text, Approve: s.cfg.Approve, Open: &sandbox.ShellOptions{Kind: sandbox.ShellKind(in.Kind), Approve: s.cfg.Approve},
			ExecLimits: sandbox.ExecLimits{Timeout: seconds(in.Timeout), KeepOutput: mostOutput, MaxOutput: mostOutput},
		}, streams)
	})
}

// told does a run while the client is told how it goes, and its user asked.
func (s *Server) told(ctx context.Context, req *mcp.CallToolRequest, do func(sandbox.Streams) (sandbox.Result, error)) (*mcp.CallToolResult, outcome, error) {
	who := sandbox.CallerFrom(ctx)
	stdout, stderr, done := follow(ctx, req)
	res, err := do(sandbox.Streams{Stdout: stdout, Stderr: stderr, Local: sandbox.Local{Ask: s.asker(req.Session, who)}})
	done()
	if gone := gaveUp(ctx, err); gone != nil {
		return nil, outcome{}, gone
	}
	return s.answer(who, res, err)
}

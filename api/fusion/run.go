package fusion

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/internal/fastapi"
	"github.com/caisson-dev/caisson/sandbox"
)

// The states of an answer, and of its two steps.
const (
	success      = "Success"
	failure      = "Failed"
	sandboxError = "SandboxError"

	finished = "Finished"
	wrong    = "Error"
	tooLong  = "TimeLimitExceeded"
)

// answer is what came of a request.
type answer struct {
	Status   string            `json:"status"`
	Message  string            `json:"message"`
	Compile  *step             `json:"compile_result"`
	Run      *step             `json:"run_result"`
	Executor *string           `json:"executor_pod_name"` // the sandbox
	Files    map[string]string `json:"files"`
}

// step is what came of a compiler or of a program.
type step struct {
	Status string   `json:"status"`
	Time   *float64 `json:"execution_time"` // seconds
	Code   *int     `json:"return_code"`
	Stdout *string  `json:"stdout"`
	Stderr *string  `json:"stderr"`
}

// failed is the answer to what could not be run.
func failed(err error) answer {
	return answer{Status: sandboxError, Message: fastapi.Explain(err), Files: map[string]string{}}
}

// run runs what was asked for.
func (f *Wire) run(ctx context.Context, req request) answer {
	files := fetched{wants: map[string][]string{}, found: map[string]*bytes.Buffer{}}
	run := req.of()
	for _, name := range req.fetch {
		at := below(name)
		files.wants[at] = append(files.wants[at], name)
		run.Artifacts = append(run.Artifacts, literal(at))
	}
	streams := sandbox.Streams{Artifact: files.take}
	if req.stdin != nil {
		streams.Stdin = strings.NewReader(*req.stdin)
	}
	res, err := f.cfg.Service.Run(ctx, run, streams)
	if err != nil {
		return failed(err)
	}
	out := answer{Status: success, Message: res.ArtifactsError, Files: files.all(res.Artifacts)}
	if res.Sandbox != "" {
		id := string(res.Sandbox)
		out.Executor = &id
	}
	if c := res.Compiled; c != nil {
		out.Compile = stepOf(c.Exit, time.Duration(c.Duration), c.Stdout, c.Stderr)
	}
	if !res.Compiled.Failed() {
		out.Run = stepOf(res.Exit, res.Duration, utf8(res.Stdout), utf8(res.Stderr))
	}
	for _, s := range []*step{out.Compile, out.Run} {
		switch {
		case s == nil:
		case s.Status == wrong:
			out.Status, out.Message = sandboxError, *s.Stderr
			return out
		case s.Status == tooLong || *s.Code != 0:
			out.Status = failure
		}
	}
	if res.Reason != sandbox.ReasonExited && res.Reason != sandbox.ReasonTimeout && out.Message == "" {
		out.Message = "ended by caisson or the kernel: " + string(res.Reason)
	}
	return out
}

// of is the run that a request asks for. Its text lies in the workspace, beside the
// request's files, as their clients are used to.
func (r request) of() sandbox.Run {
	code := r.code
	if r.mode.prepare != nil {
		code = r.mode.prepare(code)
	}
	name := r.mode.file
	if name == "" {
		name = r.language.FileName()
	}
	for n := 1; slices.ContainsFunc(r.files, func(f sandbox.File) bool { return f.Path == name }) && r.language.CodeFile == ""; n++ {
		ext := path.Ext(name)
		name = "main-" + strconv.Itoa(n) + ext
	}
	files := slices.DeleteFunc(slices.Clone(r.files), func(f sandbox.File) bool { return f.Path == name })
	run := sandbox.Run{
		Language: r.language.Name, Files: append(files, sandbox.File{Path: name, Data: []byte(code)}), Labels: sandbox.Labels{"wire": "fusion"},
		CompileTimeout: r.compileTimeout, Limits: sandbox.Limits{Memory: r.memory}, Artifacts: []string{}, Approve: sandbox.ApproveNever,
	}
	run.Timeout = r.runTimeout
	switch {
	case r.mode.pytest:
		run.Command = append([]string{"pytest", name}, r.args...)
	case r.mode.tests:
		run.Command = r.language.Argv(r.language.RunTests, "", name, r.args)
	default:
		run.File, run.Warm = name, len(r.language.Warm) > 0
	}
	return run
}

// stepOf puts an end into their words.
func stepOf(exit sandbox.Exit, took time.Duration, stdout, stderr string) *step {
	seconds := took.Seconds()
	s := &step{Status: finished, Time: &seconds, Stdout: &stdout, Stderr: &stderr}
	switch exit.Reason {
	case sandbox.ReasonTimeout:
		s.Status = tooLong
		return s
	case sandbox.ReasonInfra, sandbox.ReasonCanceled, sandbox.ReasonDenied:
		cause := string(exit.Reason) + ": " + exit.Cause
		s.Status, s.Stderr = wrong, &cause
		return s
	case sandbox.ReasonSignal, sandbox.ReasonExited, sandbox.ReasonOOM, sandbox.ReasonPIDs, sandbox.ReasonDisk, sandbox.ReasonOutput:
	}
	code := exit.Code
	if exit.Signal != "" && code > 128 {
		code = 128 - code // as Python's subprocess tells of signals
	}
	s.Code = &code
	return s
}

func utf8(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }

// literal is a pattern that matches one name alone.
func literal(name string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(name)
}

// mostFetched bounds the contents of all files of an answer.
const mostFetched = 64 << 20

// fetched are the files that a request wants back.
type fetched struct {
	wants map[string][]string // by their place, as they were asked for
	found map[string]*bytes.Buffer
	size  int
}

// take is a [sandbox.ArtifactTaker].
func (f *fetched) take(a sandbox.Artifact) (io.WriteCloser, error) {
	if f.wants[a.Path] == nil {
		return nil, nil //nolint:nilnil // which says: nowhere
	}
	b := &bytes.Buffer{}
	f.found[a.Path] = b
	return &keeping{f, b}, nil
}

// keeping is where one content goes.
type keeping struct {
	f *fetched
	b *bytes.Buffer
}

var errTooLarge = errors.New("the files to fetch hold more than 64 MiB")

// Write implements [io.Writer].
func (k *keeping) Write(p []byte) (int, error) {
	if k.f.size += len(p); k.f.size > mostFetched {
		return 0, errTooLarge
	}
	return k.b.Write(p)
}

// Close implements [io.Closer].
func (*keeping) Close() error { return nil }

// all are the contents that came whole, by the names that were asked for.
func (f *fetched) all(collected []sandbox.Artifact) map[string]string {
	files := map[string]string{}
	for _, a := range collected {
		if f.found[a.Path] == nil || a.Left != "" {
			continue
		}
		for _, name := range f.wants[a.Path] {
			files[name] = base64.StdEncoding.EncodeToString(f.found[a.Path].Bytes())
		}
	}
	return files
}

package batch

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"path"
	"slices"

	"github.com/caisson-dev/caisson/sandbox"
)

// Run is a line that asks for a run in a sandbox of its own.
type Run struct {
	ID Name `json:"id,omitempty"`
	sandbox.Run
	Stdin       string `json:"stdin,omitempty"`        // its standard input
	StdinBase64 []byte `json:"stdin_base64,omitempty"` // in the place of Stdin
}

// input is the run's standard input; nil is none.
func (r Run) input() []byte {
	if r.StdinBase64 != nil {
		return r.StdinBase64
	}
	return []byte(r.Stdin)
}

// Ended is a line of what comes of runs.
type Ended struct {
	ID     Name
	Line   int            // of its request, from 1
	Result sandbox.Result // without an ExecID where there is none
	// Failed says why there is no result, or what went wrong beside it. A refusal by
	// policy is a Result, and not an error.
	Failed error
}

// MarshalJSON writes the Result's fields beside id and line, and the error as error.
func (e Ended) MarshalJSON() ([]byte, error) {
	head, err := json.Marshal(struct {
		ID    Name             `json:"id"`
		Line  int              `json:"line"`
		Error *sandbox.Problem `json:"error,omitempty"`
	}{e.ID, e.Line, sandbox.ProblemOfOne(e.Failed)})
	if err != nil || e.Result.ExecID == "" {
		return head, err
	}
	result, err := json.Marshal(e.Result)
	if err != nil {
		return nil, err
	}
	return slices.Concat(head[:len(head)-1], []byte(","), result[1:]), nil
}

// Runs carries out a batch of runs.
type Runs struct {
	Workers int  // as in [Batch]
	Ordered bool // as in [Batch]
	Skip    func(Name) bool
	// Like has what lines leave open: it fills their empty fields, and each limit
	// that they do not have. Its files are put beside theirs, which win.
	Like sandbox.Run
	// Local opens contents that files of Like have beside them.
	Local sandbox.Local
	// Do carries a run out, and LanguageOf tells a language by a file's name.
	Do         func(ctx context.Context, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error)
	LanguageOf func(file string) (string, error)
}

// Run carries out the runs of lines, and hands what comes of each to done. Nobody
// is asked about them: what policy asks about is refused, unless the line or Like
// says that it is approved. Errors: those of [Batch.Run].
func (r Runs) Run(ctx context.Context, lines iter.Seq2[[]byte, error], done func(Ended) error) error {
	b := Batch[Run, sandbox.Result]{
		Workers: r.Workers, Ordered: r.Ordered, Skip: r.Skip, Read: r.read,
		Do: func(ctx context.Context, in Run) (sandbox.Result, error) {
			streams := sandbox.Streams{Local: r.Local}
			if b := in.input(); len(b) > 0 {
				streams.Stdin = bytes.NewReader(b)
			}
			res, err := r.Do(ctx, in.Run, streams)
			if _, denied := errors.AsType[*sandbox.DeniedError](err); denied && res.ExecID != "" {
				err = nil // the Result says so
			}
			return res, err
		},
	}
	return b.Run(ctx, lines, func(d Done[sandbox.Result]) error {
		return done(Ended{ID: d.Name, Line: d.Line, Result: d.Out, Failed: d.Err})
	})
}

// read reads a line, with what Like has for it. Errors: Invalid.
func (r Runs) read(line []byte) (Name, Run, error) {
	var in Run
	if err := Decode(line, &in); err != nil {
		return in.ID, in, sandbox.Errorf(sandbox.Invalid, "the line is no run: %w", err).
			WithHint(`write one JSON object a line: {"id", "language", "code", "stdin", "files", "limits", …}`)
	}
	switch {
	case in.Session != "":
		return in.ID, in, sandbox.Errorf(sandbox.Invalid, "the line names a session").WithHint("each run of a batch has a sandbox of its own: leave it out")
	case in.Input:
		return in.ID, in, sandbox.Errorf(sandbox.Invalid, "the line wants its input kept open").WithHint(`give it as "stdin"`)
	case slices.ContainsFunc(in.Files, func(f sandbox.File) bool { return f.Ref != "" }):
		return in.ID, in, sandbox.Errorf(sandbox.Invalid, "a file of the line has its content elsewhere").WithHint(`give it as "data" or "data_base64"`)
	case in.Approve == sandbox.ApproveAsk:
		return in.ID, in, sandbox.Errorf(sandbox.Invalid, "a batch asks nobody").WithHint(`"approve" is "never" or "always"`)
	}
	r.fill(&in.Run)
	if in.Language == "" && in.File != "" && r.LanguageOf != nil {
		var err error
		if in.Language, err = r.LanguageOf(in.File); err != nil {
			return in.ID, in, err
		}
	}
	return in.ID, in, nil
}

// fill gives a run what it leaves open.
func (r Runs) fill(run *sandbox.Run) {
	like := r.Like
	if run.Language == "" && run.File == "" {
		run.Language = like.Language
	}
	run.Image, run.Dir = cmp.Or(run.Image, like.Image), cmp.Or(run.Dir, like.Dir)
	run.Runtime, run.OCIRuntime = cmp.Or(run.Runtime, like.Runtime), cmp.Or(run.OCIRuntime, like.OCIRuntime)
	run.Track, run.Approve = cmp.Or(run.Track, like.Track), cmp.Or(run.Approve, like.Approve, sandbox.ApproveNever)
	run.Warm, run.Program = run.Warm || like.Warm, run.Program || like.Program
	run.CompileTimeout = cmp.Or(run.CompileTimeout, like.CompileTimeout)
	if run.Tools == nil {
		run.Tools = like.Tools
	}
	if run.Network.Mode == "" {
		run.Network = like.Network
	}
	run.Workspace.Kind = cmp.Or(run.Workspace.Kind, like.Workspace.Kind)
	if run.Artifacts == nil {
		run.Artifacts = like.Artifacts
	}
	labels := maps.Clone(like.Labels)
	if labels == nil {
		labels = run.Labels
	} else {
		maps.Copy(labels, run.Labels)
	}
	run.Labels = labels
	run.Env = slices.Concat(like.Env, run.Env) // a later one wins
	own := map[string]bool{}
	for _, f := range run.Files {
		own[path.Clean(f.Path)] = true
	}
	for _, f := range like.Files {
		if !own[path.Clean(f.Path)] {
			run.Files = append(run.Files, f)
		}
	}
	exec := run.ExecLimits
	run.Limits, run.ExecLimits = run.Limits.Or(like.Limits), exec.Or(like.ExecLimits)
}

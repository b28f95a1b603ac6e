package client_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

// acting is a service whose runs do what a test says.
type acting struct {
	api.Service
	run func(ctx context.Context, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error)
}

func (a *acting) Run(ctx context.Context, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error) {
	return a.run(ctx, run, streams)
}

// quiet is a standard input that never gives anything.
type quiet struct{ never chan struct{} }

func (q *quiet) Read([]byte) (int, error) {
	<-q.never
	return 0, io.EOF
}

type closing struct {
	*bytes.Buffer
	closed bool
}

func (c *closing) Close() error {
	c.closed = true
	return nil
}

// TestRunStreams carries everything that a run has beside its request: contents,
// input, a question and its answer, output, artifacts, and the Result.
func TestRunStreams(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("0123456789abcdef", 1<<16) // more than all credit
	c := through(t, &acting{run: func(ctx context.Context, run sandbox.Run, s sandbox.Streams) (sandbox.Result, error) {
		content, err := s.Open(run.Files[0].Ref)
		if err != nil {
			return sandbox.Result{}, err
		}
		b, err := io.ReadAll(content)
		if err = errors.Join(err, content.Close()); err != nil || string(b) != big {
			t.Errorf("a content of %d bytes: %v", len(b), err)
		}
		missing, _ := s.Open("missing")
		if _, err := io.ReadAll(missing); !errors.Is(err, sandbox.NotFound) {
			t.Errorf("a content that is not there: %v", err)
		}
		a, err := s.Ask(ctx, sandbox.Approval{ID: "q", Digest: "d"})
		if err != nil || !a.Approve || a.By != "ada" {
			t.Errorf("answer %+v, %v", a, err)
		}
		in, err := io.ReadAll(s.Stdin)
		if err != nil {
			t.Error(err)
		}
		_, err = s.Stdout.Write(in)
		_, err2 := s.Stderr.Write([]byte("\xff"))
		w, err3 := s.Artifact(sandbox.Artifact{Path: "out/a", Size: 3})
		if err := errors.Join(err, err2, err3); err != nil {
			t.Fatal(err)
		}
		_, err = w.Write([]byte("art"))
		if err := errors.Join(err, w.Close(), w.Close()); err != nil {
			t.Error(err)
		}
		if w, err := s.Artifact(sandbox.Artifact{Path: "not"}); w != nil || err != nil {
			t.Errorf("one that nobody wants: %v, %v", w, err)
		}
		if _, err := s.Artifact(sandbox.Artifact{Path: "bad"}); !errors.Is(err, sandbox.Denied) {
			t.Errorf("one that is refused: %v", err)
		}
		return sandbox.Result{ExecID: "1", Exit: sandbox.Exit{Code: 7}}, nil
	}})
	var stdout, stderr bytes.Buffer
	art := &closing{Buffer: &bytes.Buffer{}}
	res, err := c.Run(t.Context(), sandbox.Run{Code: "x", Files: []sandbox.File{{Path: "f", Ref: "r", Size: int64(len(big))}}}, sandbox.Streams{
		Stdin: strings.NewReader(big), Stdout: &stdout, Stderr: &stderr,
		Artifact: func(a sandbox.Artifact) (io.WriteCloser, error) {
			switch a.Path {
			case "not":
				return nil, nil
			case "bad":
				return nil, sandbox.Errorf(sandbox.Denied, "not this one")
			}
			return art, nil
		},
		Local: sandbox.Local{
			Ask: func(_ context.Context, a sandbox.Approval) (sandbox.ApprovalAnswer, error) {
				return sandbox.ApprovalAnswer{ID: a.ID, Approve: a.Digest == "d", By: "ada"}, nil
			},
			Contents: func(ref string) (io.ReadCloser, error) {
				if ref != "r" {
					return nil, sandbox.Errorf(sandbox.NotFound, "no %s", ref)
				}
				return io.NopCloser(strings.NewReader(big)), nil
			},
		},
	})
	if err != nil || res.Code != 7 || stdout.String() != big || stderr.String() != "\xff" || art.String() != "art" || !art.closed {
		t.Errorf("%+v, %v; %d bytes, %q, %q", res.Exit, err, stdout.Len(), stderr.String(), art.String())
	}
}

// TestRunGivenUp: a caller that gives up has the Result nonetheless, one that is
// gone ends its run, and what is not read holds up its own run alone.
func TestRunGivenUp(t *testing.T) {
	t.Parallel()
	begun, ended := make(chan struct{}, 1), make(chan error, 1)
	c := through(t, &acting{run: func(ctx context.Context, run sandbox.Run, s sandbox.Streams) (sandbox.Result, error) {
		if run.Code == "quick" {
			return sandbox.Result{ExecID: "2"}, nil
		}
		begun <- struct{}{}
		for err := error(nil); run.Code == "loud" && err == nil && ctx.Err() == nil; {
			_, err = s.Stdout.Write(make([]byte, 1<<20))
		}
		<-ctx.Done()
		ended <- ctx.Err()
		return sandbox.Result{ExecID: "1", Exit: sandbox.Exit{Reason: sandbox.ReasonCanceled}}, nil
	}})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	q := &quiet{make(chan struct{})}
	defer close(q.never)
	res, err := c.Run(ctx, sandbox.Run{Code: "quiet"}, sandbox.Streams{Stdin: q})
	if err != nil || res.Reason != sandbox.ReasonCanceled {
		t.Errorf("%+v, %v", res.Exit, err)
	}
	<-ended
	hold, freed := make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := c.Run(context.Background(), sandbox.Run{Code: "loud"}, sandbox.Streams{Stdout: blocked(hold)})
		freed <- err
	}()
	<-begun
	if _, err := c.Run(t.Context(), sandbox.Run{Code: "quick"}, sandbox.Streams{}); err != nil {
		t.Errorf("beside a slow reader: %v", err)
	}
	close(hold) // it fails then, as a reader that is gone does
	<-ended
	if err := <-freed; err != nil {
		t.Error(err)
	}
	if _, err := c.Run(ctx, sandbox.Run{Code: "quick"}, sandbox.Streams{}); !errors.Is(err, context.Canceled) {
		t.Errorf("given up before: %v", err)
	}
	if _, err := c.CreateSession(t.Context(), api.SessionOptions{}, sandbox.Local{Folder: "/x"}); !errors.Is(err, sandbox.Unsupported) || sandbox.HintOf(err) == "" {
		t.Errorf("a folder of this host: %v", err)
	}
}

// blocked is a writer that fails once it is let go.
type blocked chan struct{}

func (b blocked) Write([]byte) (int, error) {
	<-b
	return 0, io.ErrClosedPipe
}

// TestDenied: a refusal comes back as one, with its decision and the Result.
func TestDenied(t *testing.T) {
	t.Parallel()
	decision := sandbox.Decision{Verdict: sandbox.Deny, Level: sandbox.High, Findings: []sandbox.Finding{{ID: "R", Message: "m", Severity: sandbox.High, Remediation: "do less"}}}
	c := through(t, &acting{run: func(context.Context, sandbox.Run, sandbox.Streams) (sandbox.Result, error) {
		return sandbox.Result{ExecID: "1", Exit: sandbox.Exit{Reason: sandbox.ReasonDenied}, Decision: decision}, &sandbox.DeniedError{Decision: decision}
	}})
	res, err := c.Run(t.Context(), sandbox.Run{Code: "x"}, sandbox.Streams{})
	denied, ok := errors.AsType[*sandbox.DeniedError](err)
	if !ok || denied.Decision.Findings[0].ID != "R" || sandbox.HintOf(err) != "do less" || res.Reason != sandbox.ReasonDenied {
		t.Errorf("%+v, %v", res.Exit, err)
	}
}

package server

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/caisson-dev/caisson/sandbox"
)

// runBody is a run with its standard input.
type runBody struct {
	sandbox.Run
	Stdin       string `json:"stdin,omitempty" doc:"its standard input"`
	StdinBase64 []byte `json:"stdin_base64,omitempty" doc:"in the place of stdin"`
}

func (b runBody) stdin() io.Reader {
	switch {
	case b.StdinBase64 != nil:
		return bytes.NewReader(b.StdinBase64)
	case b.Stdin != "":
		return bytes.NewReader([]byte(b.Stdin))
	}
	return nil
}

// runner carries out a run; streams are what its caller gives and takes.
type runner func(ctx context.Context, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error)

func runs(s *Server) {
	both := map[string]*huma.Schema{typeJSON: schemaOf[sandbox.Result](s), typeEvents: eventSchema()}
	handleRaw(s, call{"Run", post, "/v1/runs", "Run code once, in a sandbox of its own", 0}, both, func(in *struct {
		Accept string `header:"Accept"`
		Body   runBody
	}, w http.ResponseWriter, r *http.Request) error {
		return s.carryOut(w, r, in.Accept, in.Body, s.svc.Run)
	})
	handleRaw(s, call{"Exec", post, below("/execs"), "Run something in a session", 0}, both, func(in *struct {
		InSession
		Accept string `header:"Accept"`
		Body   runBody
	}, w http.ResponseWriter, r *http.Request) error {
		return s.carryOut(w, r, in.Accept, in.Body, func(ctx context.Context, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error) {
			return s.svc.Exec(ctx, in.Session, run, streams)
		})
	})
}

// carryOut answers a run with its Result, or with its output as it comes and then
// the Result.
func (s *Server) carryOut(w http.ResponseWriter, r *http.Request, accept string, body runBody, do runner) error {
	streams := sandbox.Streams{Stdin: body.stdin()}
	if !wantsEvents(accept) {
		res, err := do(r.Context(), body.Run, streams)
		if err != nil {
			return problemOf(r.Context(), err, resultOf(res))
		}
		return writeJSON(w, res)
	}
	e, err := s.openEvents(w, r)
	if err != nil {
		return err
	}
	defer e.close()
	out := &output{e: e}
	stdout, stderr := out.stdout(), out.stderr()
	streams.Stdout, streams.Stderr = stdout, stderr
	res, err := do(e.ctx, body.Run, streams)
	stdout.flush()
	stderr.flush()
	if err != nil {
		e.end(err, resultOf(res))
		return nil
	}
	e.end(nil, res)
	return nil
}

// resultOf is a result that there is beside an error, or nil.
func resultOf(res sandbox.Result) any {
	if res.ExecID == "" {
		return nil
	}
	return res
}

func writeJSON(w http.ResponseWriter, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", typeJSON)
	_, _ = w.Write(append(b, '\n')) // who asked may be gone
	return nil
}

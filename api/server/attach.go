package server

import (
	"bytes"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/caisson-dev/caisson/api/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

func attach(s *Server) {
	both := map[string]*huma.Schema{typeJSON: schemaOf[wire.Attached](s), typeEvents: eventSchema()}
	handleRaw(s, call{"AttachExec", get, below("/execs/{exec}/output"), "What an exec has put out, and with events what it puts out", 0}, both, func(in *struct {
		OfExec
		Accept string `header:"Accept"`
		Last   string `header:"Last-Event-ID" doc:"goes on behind this event"`
		Stdout int64  `query:"stdout_offset"`
		Stderr int64  `query:"stderr_offset"`
		Follow bool   `query:"follow" doc:"until its end; with events alone"`
	}, w http.ResponseWriter, r *http.Request) error {
		opts := sandbox.AttachOptions{Stdout: in.Stdout, Stderr: in.Stderr, Follow: in.Follow}
		if in.Last != "" {
			if n, err := fmt.Sscanf(in.Last, "%d-%d", &opts.Stdout, &opts.Stderr); n != 2 || err != nil {
				return sandbox.Errorf(sandbox.Invalid, "Last-Event-ID: %q is no event of this call", in.Last).WithHint("give the id of the last event that was read")
			}
		}
		if !wantsEvents(in.Accept) {
			return s.kept(w, r, in.OfExec, opts)
		}
		return s.follow(w, r, in.OfExec, opts)
	})
}

// kept answers with what is kept of an exec's output.
func (s *Server) kept(w http.ResponseWriter, r *http.Request, e OfExec, opts sandbox.AttachOptions) error {
	if opts.Follow {
		return sandbox.Errorf(sandbox.Invalid, "query.follow: one answer cannot follow").WithHint("accept text/event-stream")
	}
	var stdout, stderr bytes.Buffer
	a, err := s.svc.AttachExec(r.Context(), e.Session, e.Exec, opts, &stdout, &stderr)
	if err != nil {
		return problemOf(r.Context(), err, nil)
	}
	out := wire.Attached{Attached: a}
	out.Out.Set(stdout.Bytes())
	out.Err.Set(stderr.Bytes())
	return writeJSON(w, out)
}

// follow sends output as events.
func (s *Server) follow(w http.ResponseWriter, r *http.Request, x OfExec, opts sandbox.AttachOptions) error {
	e, err := s.openEvents(w, r)
	if err != nil {
		return err
	}
	defer e.close()
	out := &output{e: e, at: [2]int64{opts.Stdout, opts.Stderr}}
	stdout, stderr := out.stdout(), out.stderr()
	a, err := s.svc.AttachExec(e.ctx, x.Session, x.Exec, opts, stdout, stderr)
	stdout.flush()
	stderr.flush()
	e.end(err, a)
	return nil
}

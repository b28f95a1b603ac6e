package server

import (
	"context"
	"io"
	"mime"
	"net/http"
	"path"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/caisson-dev/caisson/api/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// OfExecution names the execution that a call is about.
type OfExecution struct {
	Execution sandbox.ID `path:"execution" pattern:"^[0-9a-f]{32}$" patternDescription:"32 hex digits"`
}

// mostWait bounds how long an answer can be waited for.
const mostWait = 10 * time.Minute

func executions(s *Server) {
	const one = "/v1/executions/{execution}"
	handle(s, call{"SubmitExecution", post, "/v1/executions", "Submit a run that nobody waits for", http.StatusAccepted}, func(ctx context.Context, in *struct{ Body sandbox.ExecutionOptions }) (sandbox.Execution, error) {
		return s.svc.SubmitExecution(ctx, in.Body, sandbox.Local{})
	})
	handle(s, call{"Executions", get, "/v1/executions", "List executions, the newest first", 0}, func(ctx context.Context, in *struct {
		Selection
		Paging
		State    []sandbox.ExecutionState `query:"state,explode"`
		Session  string                   `query:"session"`
		Callback sandbox.CallbackState    `query:"callback" doc:"only those whose callback stands so"`
	}) (wire.Page[sandbox.Execution], error) {
		list, err := s.svc.Executions(ctx, sandbox.ExecutionFilter{
			States: in.State, Session: in.Session, Callback: in.Callback, Owner: in.owner(), Labels: in.labels(), After: sandbox.ID(in.Cursor), Limit: in.Limit + 1,
		})
		return page(in.Paging, list, func(e sandbox.Execution) string { return string(e.ID) }), err
	})
	handle(s, call{"Execution", get, one, "One execution, with its result; it can be waited for", 0}, func(ctx context.Context, in *struct {
		OfExecution
		Wait string `query:"wait" doc:"until it is over, for at most so long, such as 30s"`
	}) (sandbox.Execution, error) {
		wait, err := waitOf(in.Wait)
		if err != nil {
			return sandbox.Execution{}, err
		}
		waiting, stop := context.WithCancel(ctx)
		defer stop()
		defer context.AfterFunc(s.ending, stop)()
		e, err := s.svc.Execution(waiting, in.Execution, wait)
		if err != nil && s.ending.Err() != nil {
			return s.svc.Execution(ctx, in.Execution, 0) // as it is: the next server can be asked again
		}
		return e, err
	})
	handle(s, call{"CancelExecution", post, one + "/cancel", "End it", 0}, func(ctx context.Context, in *OfExecution) (sandbox.Execution, error) {
		return s.svc.CancelExecution(ctx, in.Execution)
	})
	content := map[string]*huma.Schema{"application/octet-stream": {Type: huma.TypeString, Format: "binary"}}
	handleRaw(s, call{"ExecutionArtifact", get, one + "/artifacts", "The content of an artifact of its", 0}, content, func(in *struct {
		OfExecution
		Path string `query:"path" required:"true" doc:"as the result names it"`
	}, w http.ResponseWriter, r *http.Request) error {
		kind := mime.TypeByExtension(path.Ext(in.Path))
		if kind == "" {
			kind = "application/octet-stream"
		}
		// It is a stranger's: nothing of it is to act in this server's name.
		h := w.Header()
		h.Set("Content-Disposition", "attachment")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "sandbox")
		return s.sendBytes(w, r, kind, http.StatusOK, func(to io.Writer) (any, error) {
			n, err := s.svc.ExecutionArtifact(r.Context(), in.Execution, in.Path, to)
			return wire.Taken{Bytes: n}, err
		})
	})
	deadLetters(s)
}

func deadLetters(s *Server) {
	handle(s, call{"DeadLetters", get, "/v1/dead-letters", "List callbacks that were given up", 0}, func(ctx context.Context, in *struct {
		Selection
		Paging
	}) (wire.Page[sandbox.DeadLetter], error) {
		list, err := s.svc.DeadLetters(ctx, sandbox.DeadLetterFilter{Owner: in.owner(), Labels: in.labels(), After: sandbox.ID(in.Cursor), Limit: in.Limit + 1})
		return page(in.Paging, list, func(l sandbox.DeadLetter) string { return string(l.Execution) }), err
	})
	handle(s, call{"ResendDeadLetter", post, "/v1/dead-letters/{execution}/resend", "Have one sent again", 0}, func(ctx context.Context, in *OfExecution) (sandbox.DeadLetter, error) {
		return s.svc.ResendDeadLetter(ctx, in.Execution)
	})
}

// waitOf reads how long to wait.
func waitOf(text string) (sandbox.Duration, error) {
	if text == "" {
		return 0, nil
	}
	wait, err := sandbox.ParseDuration(text)
	if err == nil && wait < 0 {
		err = sandbox.Errorf(sandbox.Invalid, "wait is %s", text).WithHint("give a time such as 30s")
	}
	return sandbox.Duration(min(wait, mostWait)), err
}

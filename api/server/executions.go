package server

import (
	"context"
	"io"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/caisson-dev/caisson/api/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// OfExecution names the execution that a call is about.
type OfExecution struct {
	Execution sandbox.ID `path:"execution" pattern:"^[0-9a-f]{32}$" patternDescription:"32 hex digits"`
}

func executions(s *Server) {
	handle(s, call{"SubmitExecution", post, "/v1/executions", "Have a run carried out while nobody waits for it", 202}, func(ctx context.Context, in *struct{ Body sandbox.ExecutionOptions }) (sandbox.Execution, error) {
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
	handle(s, call{"Execution", get, "/v1/executions/{execution}", "One execution; waits for its end where that is asked for", 0}, func(ctx context.Context, in *struct {
		OfExecution
		Wait int64 `query:"wait_ms" minimum:"0"`
	}) (sandbox.Execution, error) {
		return s.svc.Execution(ctx, in.Execution, milli(in.Wait))
	})
	handle(s, call{"CancelExecution", post, "/v1/executions/{execution}/cancel", "End an execution", 0}, func(ctx context.Context, in *OfExecution) (sandbox.Execution, error) {
		return s.svc.CancelExecution(ctx, in.Execution)
	})
	handleRaw(s, call{"ExecutionArtifact", get, "/v1/executions/{execution}/artifact", "The content of an artifact", 0}, map[string]*huma.Schema{typeBytes: {Type: huma.TypeString, Format: "binary"}}, func(in *struct {
		OfExecution
		Path string `query:"path" required:"true" doc:"as it stands in the result"`
	}, w http.ResponseWriter, r *http.Request) error {
		return s.sendBytes(w, r, typeBytes, http.StatusOK, func(to io.Writer) (any, error) {
			n, err := s.svc.ExecutionArtifact(r.Context(), in.Execution, in.Path, to)
			return wire.Taken{Bytes: n}, err
		})
	})
	handle(s, call{"DeadLetters", get, "/v1/dead-letters", "Callbacks that nobody took", 0}, func(ctx context.Context, in *struct {
		Paging
		OfOwner
	}) (wire.Page[sandbox.DeadLetter], error) {
		list, err := s.svc.DeadLetters(ctx, sandbox.DeadLetterFilter{Owner: in.owner(), After: sandbox.ID(in.Cursor), Limit: in.Limit + 1})
		return page(in.Paging, list, func(l sandbox.DeadLetter) string { return string(l.Execution) }), err
	})
	handle(s, call{"ResendDeadLetter", post, "/v1/dead-letters/{execution}/resend", "Send a callback again", 0}, func(ctx context.Context, in *OfExecution) (sandbox.DeadLetter, error) {
		return s.svc.ResendDeadLetter(ctx, in.Execution)
	})
}

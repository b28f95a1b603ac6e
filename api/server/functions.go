package server

import (
	"context"

	"github.com/caisson-dev/caisson/api/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// OfFunction names the function that a call is about.
type OfFunction struct {
	Function string `path:"function" maxLength:"255"`
}

func functions(s *Server) {
	handle(s, call{"PutFunction", post, "/v1/functions", "Keep a function, or its next version", 201}, func(ctx context.Context, in *struct{ Body sandbox.FunctionOptions }) (sandbox.Function, error) {
		return s.svc.PutFunction(ctx, in.Body, sandbox.Local{})
	})
	handle(s, call{"Functions", get, "/v1/functions", "List functions, by name", 0}, func(ctx context.Context, in *struct {
		Selection
		Paging
	}) (wire.Page[sandbox.Function], error) {
		list, err := s.svc.Functions(ctx, sandbox.FunctionFilter{Owner: in.owner(), Labels: in.labels(), After: in.Cursor, Limit: in.Limit + 1})
		return page(in.Paging, list, func(f sandbox.Function) string { return f.Name }), err
	})
	handle(s, call{"Function", get, "/v1/functions/{function}", "One function", 0}, func(ctx context.Context, in *OfFunction) (sandbox.Function, error) {
		return s.svc.Function(ctx, in.Function)
	})
	handleNone(s, call{"RemoveFunction", del, "/v1/functions/{function}", "Forget a function, with its sandboxes", 0}, func(ctx context.Context, in *OfFunction) error {
		return s.svc.RemoveFunction(ctx, in.Function)
	})
	handle(s, call{"InvokeFunction", post, "/v1/functions/invoke", "Call a function and wait", 0}, func(ctx context.Context, in *struct{ Body sandbox.Invocation }) (sandbox.Invoked, error) {
		return s.svc.InvokeFunction(ctx, in.Body, sandbox.Local{})
	})
}

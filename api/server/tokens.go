package server

import (
	"context"

	"github.com/caisson-dev/caisson/api/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

func tokens(s *Server) {
	handle(s, call{"CreateToken", post, "/v1/tokens", "Make a token; its secret is told this once", 201}, func(ctx context.Context, in *struct{ Body sandbox.TokenOptions }) (sandbox.NewToken, error) {
		return s.svc.CreateToken(ctx, in.Body)
	})
	handle(s, call{"Tokens", get, "/v1/tokens", "List tokens, by name", 0}, func(ctx context.Context, _ *nothing) (wire.Page[sandbox.Token], error) {
		list, err := s.svc.Tokens(ctx)
		return all(list), err
	})
	handleNone(s, call{"RevokeToken", del, "/v1/tokens/{token}", "End a token, by its name or its id", 0}, func(ctx context.Context, in *struct {
		Token string `path:"token" maxLength:"255"`
	}) error {
		return s.svc.RevokeToken(ctx, in.Token)
	})
}

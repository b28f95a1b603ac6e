package api

import (
	"context"

	"github.com/caisson-dev/caisson/sandbox"
)

// Tokens are what callers of a server show. Only an admin deals with them.
type Tokens interface {
	// CreateToken makes one and returns its secret, which is not kept. Errors:
	// Invalid, Conflict where the name is taken.
	CreateToken(ctx context.Context, opts sandbox.TokenOptions) (sandbox.NewToken, error)
	// Tokens returns those that there are, by name, also expired ones.
	Tokens(ctx context.Context) ([]sandbox.Token, error)
	// RevokeToken ends one, by its name or its id: it lets nobody in from then on.
	// Errors: NotFound.
	RevokeToken(ctx context.Context, name string) error
}

package mcp

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caisson-dev/caisson/sandbox"
)

// Bounds of clients over HTTP.
const (
	sessionsAtOnce = 1024
	sessionQuiet   = 4 * time.Hour // then a client that says nothing is taken for gone
)

// Handler answers the protocol's streamable HTTP. Who asks is in the context of each
// request, as [sandbox.WithCaller] puts it there; no caller reaches a connection of
// another's. [Server.Close] ends the connections.
func (s *Server) Handler() http.Handler {
	stream := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.mcp }, &mcp.StreamableHTTPOptions{
		Logger: s.cfg.Log, SessionTimeout: sessionQuiet, MaxRequestBodyBytes: mostMessage,
		DisableLocalhostProtection: true, // who listens knows by which names it may be asked
	})
	// The SDK binds a connection to a user, whom it takes from its own middleware.
	// That one is told who the caller is; the token was checked before.
	bound := auth.RequireBearerToken(func(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
		who := sandbox.CallerFrom(ctx)
		return &auth.TokenInfo{UserID: strings.Join([]string{"caller", who.Owner, who.Name, string(who.Access)}, "\x00"), Expiration: time.Now().Add(time.Hour)}, nil
	}, nil)(stream)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.Header.Get("Mcp-Session-Id") == "" && s.connections() >= sessionsAtOnce {
			http.Error(w, "too many connections: close some, or try again later", http.StatusServiceUnavailable)
			return
		}
		if r.Method == http.MethodDelete {
			s.calls.end(connection{r.Header.Get("Mcp-Session-Id"), sandbox.CallerFrom(r.Context())})
		}
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer checked")
		bound.ServeHTTP(w, r)
	})
}

func (s *Server) connections() (n int) {
	for range s.mcp.Sessions() {
		n++
	}
	return n
}

// Close ends all connections, and what runs for them.
func (s *Server) Close() {
	s.calls.close()
	for one := range s.mcp.Sessions() {
		_ = one.Close() // it is gone either way
	}
}

package server

import (
	"context"
	"net/http"

	"github.com/caisson-dev/caisson/sandbox"
)

// serveMCP hands a request to the face for agents. One that listens has a place as
// other streams have, and ends with them.
func (s *Server) serveMCP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		s.cfg.MCP.ServeHTTP(w, r)
		return
	}
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		writeProblem(w, problemOf(r.Context(), sandbox.Errorf(sandbox.Exhausted, "too many streams are open").WithHint("close some, or try again later"), nil))
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.ending, cancel)()
	s.cfg.MCP.ServeHTTP(w, r.WithContext(ctx))
}

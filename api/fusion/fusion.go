// Package fusion answers the clients of SandboxFusion: POST /run_code, which runs a
// text in a sandbox of its own, and GET /v1/ping. It speaks to roles of
// [api.Service], so that each run is judged, bounded and recorded as any other.
//
// A request that is not as it should be is answered with 422 and a list of what is
// wrong, as its clients expect. All else is a 200, whose status says how it went; a
// run that was refused is a SandboxError with the reason. docs/fusion.md is for its
// users, and says what is not served.
package fusion

import (
	"cmp"
	"context"
	"net/http"
	"sync"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/internal/fastapi"
	"github.com/caisson-dev/caisson/sandbox"
)

// Service is what it needs of caisson.
type Service interface {
	api.Runner
	api.Languages
}

// Config says what is served. Service is required.
type Config struct {
	Service Service
	// MaxBody bounds a request; 0 is 64 MiB.
	MaxBody sandbox.Bytes
}

// Wire answers over HTTP. Its methods are safe for concurrent use.
type Wire struct {
	cfg Config

	mu        sync.Mutex
	languages []api.LanguageInfo // once they were asked for
}

var _ http.Handler = (*Wire)(nil)

// New checks a Config and starts nothing. Errors: Invalid.
func New(cfg Config) (*Wire, error) {
	if cfg.Service == nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "fusion: a service is required")
	}
	cfg.MaxBody = cmp.Or(cfg.MaxBody, 64*sandbox.MiB)
	return &Wire{cfg: cfg}, nil
}

// Patterns are what it answers.
func (*Wire) Patterns() []string { return []string{"POST /run_code", "GET /v1/ping"} }

// Refuse answers who is not let in.
func (*Wire) Refuse(w http.ResponseWriter, status int, err error) {
	fastapi.Refuse(w, status, err)
}

// ServeHTTP implements [http.Handler].
func (f *Wire) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		fastapi.Write(w, http.StatusOK, "pong")
		return
	}
	body, ok := fastapi.Read(w, r, f.cfg.MaxBody)
	if !ok {
		return
	}
	known, err := f.known(r.Context())
	if err != nil {
		fastapi.Write(w, http.StatusOK, failed(err))
		return
	}
	req, faults := parse(body, known)
	if len(faults) > 0 {
		fastapi.Reject(w, faults)
		return
	}
	fastapi.Write(w, http.StatusOK, f.run(r.Context(), req))
}

// known are the languages of the catalogue, which does not change.
func (f *Wire) known(ctx context.Context) ([]api.LanguageInfo, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.languages == nil {
		list, err := f.cfg.Service.Languages(ctx)
		if err != nil {
			return nil, err
		}
		f.languages = list
	}
	return f.languages, nil
}

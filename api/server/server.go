// Package server is the HTTP face of [api.Service]: /v1 with everything that the
// service can, described in OpenAPI from the Go types; server-sent events for
// what goes on, and one WebSocket that carries a whole run. It is an
// [http.Handler]: who listens, how, and who may ask is its caller's.
//
// Package api/client speaks with it. docs/server.md is for its users.
package server

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"log/slog"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/internal/feed"
	"github.com/caisson-dev/caisson/sandbox"
)

// Config says what a server serves. Zero fields but Service have defaults.
type Config struct {
	Service api.Service
	// Authenticate says who asks. Its error is the answer: 401 where it is Denied.
	// nil has everybody be the local user: the caller has made sure by other means.
	Authenticate func(*http.Request) (sandbox.Caller, error)
	// Ready says why the server should get no calls now; nil never says so.
	Ready func() error
	// Log gets a line for each call, of the level info; nil discards.
	Log     *slog.Logger
	Version string
	// MaxBody bounds bodies in JSON; 0 is 64 MiB. Contents of files have no bound
	// but the workspace's.
	MaxBody sandbox.Bytes
	// MaxStreams bounds events and WebSockets that are open at once; 0 is 1024.
	MaxStreams int
	// MCP answers /mcp, for callers as any other; nil has none. What it holds open
	// with a GET counts as a stream.
	MCP http.Handler
	// Wires are APIs of other products, for their clients, who are let in as all are.
	Wires []Wire
	// Progress is told how long steps go, such as the making of images, and hands
	// it on to who waits for one. nil has no news.
	Progress *feed.Feed[sandbox.Progress]
}

// Wire is the API of another product, served beside this one's.
type Wire interface {
	http.Handler
	// Patterns are those of [http.ServeMux] that it answers.
	Patterns() []string
	// Refuse answers who is not let in, in the form that its clients read.
	Refuse(w http.ResponseWriter, status int, err error)
}

// Hosts is what a [Wire] is too that answers all requests to some hosts, whatever
// their paths: programs in sandboxes do, and nothing of this server's API is theirs.
type Hosts interface {
	Owns(r *http.Request) bool
}

// Owner is the one of some wires that owns a request by its host, nil where none does.
func Owner(wires []Wire, r *http.Request) Wire {
	for _, wire := range wires {
		if h, ok := wire.(Hosts); ok && h.Owns(r) {
			return wire
		}
	}
	return nil
}

// defaultBody bounds bodies in JSON.
const defaultBody = 64 * sandbox.MiB

// Server answers HTTP. Its methods are safe for concurrent use.
type Server struct {
	cfg     Config
	svc     api.Service
	mux     *http.ServeMux
	api     huma.API
	openAPI []byte
	streams chan struct{} // has a place for each stream that is open

	repeats repeats
	wires   map[string]Wire // by their patterns

	ending context.Context // done once streams are to end
	end    context.CancelFunc
}

var _ http.Handler = (*Server)(nil)

// New checks a Config and starts nothing. Errors: Invalid.
func New(cfg Config) (*Server, error) {
	if cfg.Service == nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "server: a service is required")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.MaxBody = cmp.Or(cfg.MaxBody, defaultBody)
	s := &Server{cfg: cfg, svc: cfg.Service, mux: http.NewServeMux(), streams: make(chan struct{}, cmp.Or(cfg.MaxStreams, 1024)), wires: map[string]Wire{}}
	s.ending, s.end = context.WithCancel(context.Background())
	s.api = humago.New(s.mux, huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0", Info: &huma.Info{Title: "caisson", Version: cmp.Or(cfg.Version, "dev"), Description: "Run code that nobody has read yet in hardened sandboxes."},
			Components: &huma.Components{Schemas: newRegistry(), SecuritySchemes: map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer"}}},
			Security:   []map[string][]string{{"token": {}}},
		},
		Formats: map[string]huma.Format{"application/json": huma.DefaultJSONFormat, "json": huma.DefaultJSONFormat}, DefaultFormat: "application/json",
		RejectUnknownQueryParameters: true, Transformers: []huma.Transformer{asProblem},
	})
	s.api.UseMiddleware(func(ctx huma.Context, next func(huma.Context)) { next(plainStatus{ctx}) })
	for _, routes := range []func(*Server){sessions, runs, batches, execs, executions, functions, shells, ports, attach, connect, files, changes, policy, images, audit, follow, state, tests, tokens} {
		routes(s)
	}
	var err error
	if s.openAPI, err = json.Marshal(s.api.OpenAPI()); err != nil {
		return nil, sandbox.Errorf(sandbox.Internal, "describe the API: %w", err)
	}
	s.plain()
	return s, nil
}

// docs is a page to read the API by, and to try it. It asks this server alone.
//
//go:embed docs.html
var docs []byte

// EndStreams ends what goes on for as long as somebody listens, such as
// /v1/events, so that a server that ends has not to wait for it. Runs go on.
func (s *Server) EndStreams() {
	s.end()
	for _, w := range s.cfg.Wires {
		if has, ok := w.(interface{ EndStreams() }); ok {
			has.EndStreams()
		}
	}
}

// plain are the routes beside the API.
func (s *Server) plain() {
	s.mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/openapi+json")
		_, _ = w.Write(s.openAPI) // who asked may be gone
	})
	s.mux.HandleFunc("GET /docs", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'self'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; frame-ancestors 'none'")
		_, _ = w.Write(docs) // as above
	})
	s.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) }) // as above
	s.mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if s.cfg.Ready != nil {
			if err := s.cfg.Ready(); err != nil {
				writeProblem(w, problemOf(r.Context(), err, nil))
				return
			}
		}
		_, _ = w.Write([]byte("ok\n")) // as above
	})
	s.mux.HandleFunc(previews, s.preview)
	s.mux.HandleFunc("POST "+lambdaPath+"functions/{function}/invocations", s.invokeLambda)
	for _, wire := range s.cfg.Wires {
		for _, pattern := range wire.Patterns() {
			s.mux.Handle(pattern, wire)
			s.wires[pattern] = wire
		}
	}
	if s.cfg.MCP != nil {
		s.mux.HandleFunc("/mcp", s.serveMCP)
	}
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { s.nowhere(w, r) })
}

// Package e2b lets programs that were written for E2B's SDK run on caisson: the
// control plane and the data plane of that service, as its clients speak them, over
// roles of api.Service. It decides nothing itself: a sandbox of theirs is a session,
// a command is an exec in the background, a file is one of the workspace.
//
// What comes to one port is told apart as their clients do: a request with
// E2b-Sandbox-Id is for a sandbox, others are for the control plane. The data plane
// is Connect, in JSON as a rule; the messages here are structs in the form that Protocol
// Buffers have in JSON, under a codec of that name, and pass through that form where a
// client speaks binary. Their shape is in protos. docs/e2b.md is for users.
package e2b

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

// envdVersion is what clients are told runs in a sandbox: they ask less of older ones.
const envdVersion = "0.6.4"

// Service are the roles of caisson that the wire needs.
type Service interface {
	api.Sessions
	api.Pauser
	api.Ports
	api.Insight
	api.Snapshots
	api.Execs
	api.ExecControl
	api.Terminals
	api.Workspaces
	api.Languages
	api.Tokens
	api.Approvals
}

// Config says what is served. Service and Key are required. Who serves it
// puts who asks into the context of requests, [Server.Caller] first.
type Config struct {
	Service Service
	// Key signs what callers show to reach one sandbox. It has to be the same after a
	// restart, and secret: 32 random bytes.
	Key []byte
	// Snapshots is how long a snapshot is kept that nothing is made of; 0 is for ever.
	Snapshots sandbox.Duration
	// Log gets what nobody asked about; nil discards.
	Log *slog.Logger
	// Now is the clock; nil is [time.Now].
	Now func() time.Time
}

// Server answers E2B's clients. Its methods are safe for concurrent use.
type Server struct {
	cfg     Config
	svc     Service
	control *http.ServeMux
	data    *http.ServeMux
	kick    chan struct{} // a deadline was set
	typists typists

	waiting  sync.Map        // of what a person is asked about, how it is ended
	attended sync.Map        // ids of execs that are seen to their end
	ending   context.Context // done once streams are to end
	end      context.CancelFunc
	gone     goneSandboxes
}

// New checks a Config and starts nothing: [Server.Run] does. Errors: Invalid.
func New(cfg Config) (*Server, error) {
	if cfg.Service == nil || len(cfg.Key) < 16 {
		return nil, sandbox.Errorf(sandbox.Invalid, "e2b: a service and a key are required")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &Server{cfg: cfg, svc: cfg.Service, control: http.NewServeMux(), data: http.NewServeMux(), kick: make(chan struct{}, 1)}
	s.ending, s.end = context.WithCancel(context.Background())
	s.controlRoutes()
	s.dataRoutes()
	return s, nil
}

// dataPaths are the first parts of the paths of the data plane, and patterns what is
// this wire's of all.
var (
	dataPaths = map[string]bool{"health": true, "files": true, "process.Process": true, "filesystem.Filesystem": true}
	patterns  = []string{
		"/sandboxes", "/sandboxes/", "/v2/sandboxes", "/v2/sandboxes/", "/snapshots", "/templates/",
		"/health", "/files", "/process.Process/", "/filesystem.Filesystem/",
	}
)

// Patterns are those of [http.ServeMux] that the wire answers.
func (s *Server) Patterns() []string { return patterns }

// isData reports whether a request is for one sandbox.
func isData(r *http.Request) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	return r.Header.Get(sandboxHeader) != "" || dataPaths[first]
}

// Caller says who asks, of requests that show what was handed out for a sandbox, and
// of all that are for previews.
// Others it does not know.
func (s *Server) Caller(r *http.Request) (who sandbox.Caller, knows bool, err error) {
	if p, is := previewOf(r); is {
		who, err = s.visitor(r.Context(), p)
		return who, true, err
	}
	if !isData(r) || r.Header.Get(accessHeader) == "" && r.URL.Query().Get("signature") == "" {
		return who, false, nil
	}
	_, who, err = s.reach(r)
	return who, true, err
}

// Refuse answers who is not let in.
func (s *Server) Refuse(w http.ResponseWriter, status int, err error) {
	fail(w, statusError{err, status})
}

// EndStreams breaks what goes on for as long as a client listens. Commands run on.
func (s *Server) EndStreams() { s.end() }

// ServeHTTP implements [http.Handler]. Who asks is in the request's context.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p, is := previewOf(r); is {
		s.servePreview(w, r, p)
		return
	}
	if isData(r) {
		s.serveData(w, r)
		return
	}
	s.control.ServeHTTP(w, r)
}

// statusError is an error whose status differs from its kind's.
type statusError struct {
	error
	status int
}

func (e statusError) Unwrap() error { return e.error }

// statuses is the one table from kinds to statuses; what is not in it is 500.
var statuses = map[sandbox.Kind]int{
	sandbox.Invalid: http.StatusBadRequest, sandbox.NotFound: http.StatusNotFound, sandbox.Conflict: http.StatusConflict,
	sandbox.Denied: http.StatusForbidden, sandbox.Exhausted: http.StatusTooManyRequests, sandbox.Unsupported: http.StatusNotImplemented,
	sandbox.Unavailable: http.StatusServiceUnavailable, sandbox.TimedOut: http.StatusGatewayTimeout,
}

// statusOf is the status that an error is answered with.
func statusOf(err error) int {
	if own, ok := errors.AsType[statusError](err); ok {
		return own.status
	}
	if status, ok := statuses[sandbox.KindOf(err)]; ok {
		return status
	}
	return http.StatusInternalServerError
}

// said is an error with what to do next, as a client shows it.
func said(err error) string {
	if hint := sandbox.HintOf(err); hint != "" {
		return err.Error() + "; " + hint
	}
	return err.Error()
}

// fail answers an error in the form that the clients read.
func fail(w http.ResponseWriter, err error) {
	answer(w, statusOf(err), failure(err))
}

// failure is an error in that form.
func failure(err error) map[string]any {
	return map[string]any{"code": statusOf(err), "message": said(err)}
}

// answer writes a body in JSON, or none where it is nil.
func answer(w http.ResponseWriter, status int, body any) {
	if body == nil {
		w.WriteHeader(status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // who asked may be gone
}

// mostBody bounds a request of the control plane.
const mostBody = 1 << 20

// body reads a request of the control plane; an empty one is the zero value.
func body(w http.ResponseWriter, r *http.Request, into any) error {
	if r.ContentLength == 0 {
		return nil
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostBody)).Decode(into); err != nil {
		return sandbox.Errorf(sandbox.Invalid, "the body of the request: %w", worded(err))
	}
	return nil
}

// handler is one call; what it returns is answered.
type handler func(w http.ResponseWriter, r *http.Request) error

func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h(w, r); err != nil {
		fail(w, err)
	}
}

// asLocal is for what the server does on its own behalf: it sees all owners.
func asLocal(ctx context.Context) context.Context { return sandbox.WithCaller(ctx, sandbox.Caller{}) }

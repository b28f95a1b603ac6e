package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/internal/lazyregexp"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/telemetry"
)

type requestKey struct{}

// requestID is the id of the call that a context belongs to.
func requestID(ctx context.Context) string {
	id, _ := ctx.Value(requestKey{}).(string)
	return id
}

// ids that callers give are theirs to choose, but not whole texts.
var goodRequestID = lazyregexp.New(`^[A-Za-z0-9._-]{1,128}$`)

// open are what anybody may ask: they tell nothing about what there is.
var open = map[string]bool{"/healthz": true, "/readyz": true, "/docs": true, "/openapi.json": true}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begun := time.Now()
	id := r.Header.Get("X-Request-Id")
	if !goodRequestID().MatchString(id) {
		id = string(sandbox.NewID())
	}
	w.Header().Set("X-Request-Id", id)
	ctx := telemetry.Extract(context.WithValue(r.Context(), requestKey{}, id), r.Header)
	noted := &notedWriter{ResponseWriter: w}
	var caller sandbox.Caller
	r = r.WithContext(ctx)
	defer func() {
		what := recover()
		if what != nil && what != http.ErrAbortHandler { //nolint:errorlint // it is compared as net/http does
			s.cfg.Log.Error("panic", "request_id", id, "what", fmt.Sprint(what), "stack", string(debug.Stack()))
			if noted.status == 0 {
				writeProblem(noted, problemOf(ctx, errors.New("a fault of the server's own"), nil))
			}
		}
		s.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "request", slog.String("request_id", id), slog.String("owner", caller.Owner), slog.String("caller", caller.Name),
			slog.String("route", route(r)), slog.Int("status", noted.status), slog.Int64("bytes", noted.written), slog.Int64("duration_ms", time.Since(begun).Milliseconds()))
		if what == http.ErrAbortHandler { //nolint:errorlint // as above
			panic(what) // whoever serves breaks the connection, so that what is cut off does not look whole
		}
	}()
	wire := Owner(s.cfg.Wires, r)
	if s.cfg.Authenticate != nil && (wire != nil || !open[r.URL.Path]) {
		var err error
		if caller, err = s.cfg.Authenticate(asBearer(r)); err != nil {
			p := problemOf(ctx, err, nil)
			if strings.HasPrefix(r.URL.Path, lambdaPath) {
				p.header.Set("X-Amzn-Errortype", "AccessDeniedException")
			}
			if p.Code == http.StatusForbidden {
				p.Code = http.StatusUnauthorized
				p.header.Set("WWW-Authenticate", `Bearer realm="caisson"`)
			}
			if _, pattern := s.mux.Handler(r); wire == nil {
				wire = s.wires[pattern]
			}
			if wire != nil {
				wire.Refuse(noted, p.Code, err)
				return
			}
			writeProblem(noted, p)
			return
		}
		r = r.WithContext(sandbox.WithCaller(ctx, caller))
	}
	if wire != nil {
		wire.ServeHTTP(noted, r)
		return
	}
	s.once(noted, r)
}

// route is the pattern that a request was answered by: no names, no queries.
func route(r *http.Request) string {
	if r.Pattern == "" || r.Pattern == "/" {
		return r.Method
	}
	return r.Pattern
}

// nowhere answers a path or a method that there is not.
func (s *Server) nowhere(w http.ResponseWriter, r *http.Request) {
	var methods []string
	for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		probe := &http.Request{Method: m, URL: r.URL, Host: r.Host}
		if _, pattern := s.mux.Handler(probe); pattern != "" && pattern != "/" {
			methods = append(methods, m)
		}
	}
	if len(methods) == 0 {
		writeProblem(w, problemOf(r.Context(), sandbox.Errorf(sandbox.NotFound, "there is no %s", r.URL.Path).WithHint("see /docs for what there is"), nil))
		return
	}
	w.Header().Set("Allow", strings.Join(methods, ", "))
	writeProblem(w, ill(r.Context(), http.StatusMethodNotAllowed, "use "+strings.Join(methods, " or "), "%s is not answered with a %s", r.URL.Path, r.Method))
}

// notedWriter remembers what was answered.
type notedWriter struct {
	http.ResponseWriter
	status  int
	written int64
}

// WriteHeader implements [http.ResponseWriter].
func (w *notedWriter) WriteHeader(code int) {
	if w.status == 0 {
		w.status = code
	}
	w.ResponseWriter.WriteHeader(code)
}

// Write implements [http.ResponseWriter].
func (w *notedWriter) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(b)
	w.written += int64(n)
	return n, err
}

// Unwrap is for [http.ResponseController].
func (w *notedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

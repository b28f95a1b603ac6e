package e2b

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"connectrpc.com/connect"

	"github.com/caisson-dev/caisson/sandbox"
)

// goneError is the answer about a sandbox that does not run: clients tell by it
// that a connection which broke was the sandbox's end.
func goneError(format string, args ...any) error {
	return statusError{sandbox.Errorf(sandbox.Unavailable, format, args...), http.StatusBadGateway}
}

// serveData answers a request for one sandbox, as whoever it was handed out to.
func (s *Server) serveData(w http.ResponseWriter, r *http.Request) {
	box, who, err := s.reach(r)
	if err != nil {
		fail(w, err)
		return
	}
	ctx := sandbox.WithCaller(r.Context(), who)
	v, err := s.running(ctx, box)
	if err == nil {
		err = checkUser(r)
	}
	if err != nil {
		fail(w, err)
		return
	}
	f := &flusher{ResponseWriter: w}
	ctx = context.WithValue(context.WithValue(ctx, viewKey{}, v), flusherKey{}, f)
	s.data.ServeHTTP(f, r.WithContext(ctx))
}

// flusher has Connect flush a writer that wraps another, until the last message of an
// answer: that goes out with the answer's end.
type flusher struct {
	http.ResponseWriter
	last atomic.Bool
}

type flusherKey struct{}

// Flush implements [http.Flusher].
func (f *flusher) Flush() {
	if !f.last.Load() {
		_ = http.NewResponseController(f.ResponseWriter).Flush() // a Write tells what fails
	}
}

// Unwrap is for [http.ResponseController].
func (f *flusher) Unwrap() http.ResponseWriter { return f.ResponseWriter }

type viewKey struct{}

// viewFrom is the sandbox that a call of the data plane is for.
func viewFrom(ctx context.Context) sandbox.SessionView {
	v, _ := ctx.Value(viewKey{}).(sandbox.SessionView)
	return v
}

// running returns a sandbox that runs. A paused one goes on for whoever uses it,
// where its creator wanted that.
func (s *Server) running(ctx context.Context, box string) (sandbox.SessionView, error) {
	v, err := s.find(ctx, box)
	if errors.Is(err, sandbox.NotFound) {
		return v, goneError("the sandbox %s does not run any more", box)
	}
	if err != nil || !isPaused(v) {
		return v, err
	}
	if v.Labels[labelAutoResume] != "true" || boxOf(v) == nil { // without its memory it goes on for who asks for that
		return v, goneError("the sandbox %s is paused", box)
	}
	if err := s.resume(ctx, v, defaultTimeout, true); err != nil && !errors.Is(err, sandbox.Conflict) { // another was faster
		return v, err
	}
	return s.find(ctx, box)
}

// defaultUser is whom everything in a sandbox is done as.
const defaultUser = "user"

// checkUser refuses who asks to be another user than there is.
func checkUser(r *http.Request) error {
	user := r.URL.Query().Get("username")
	if basic, _, ok := r.BasicAuth(); ok && user == "" {
		user = basic
	}
	switch user {
	case "", defaultUser:
		return nil
	case "root":
		return sandbox.Errorf(sandbox.Denied, "a sandbox has no root").WithHint("leave the user out: everything is done as %s", defaultUser)
	}
	return sandbox.Errorf(sandbox.Invalid, "a sandbox has no user %q", user).WithHint("leave the user out: everything is done as %s", defaultUser)
}

func (s *Server) dataRoutes() {
	s.data.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	s.data.Handle("GET /files", handler(s.readFile))
	s.data.Handle("POST /files", handler(s.writeFiles))
	streams(s, "process.Process/Start", s.start)
	streams(s, "process.Process/Connect", s.attach)
	unary(s, "process.Process/List", s.processes)
	unary(s, "process.Process/SendInput", s.sendInput)
	unary(s, "process.Process/CloseStdin", s.closeStdin)
	unary(s, "process.Process/SendSignal", s.sendSignal)
	unary(s, "process.Process/Update", s.update)
	unary(s, "filesystem.Filesystem/Stat", s.stat)
	unary(s, "filesystem.Filesystem/ListDir", s.listDir)
	unary(s, "filesystem.Filesystem/MakeDir", s.makeDir)
	unary(s, "filesystem.Filesystem/Move", s.move)
	unary(s, "filesystem.Filesystem/Remove", s.remove)
	streams(s, "filesystem.Filesystem/WatchDir", s.watchDir)
	s.data.Handle("/", handler(func(_ http.ResponseWriter, r *http.Request) error {
		return sandbox.Errorf(sandbox.Unsupported, "caisson does not serve %s %s of E2B's sandboxes", r.Method, r.URL.Path).WithHint("docs/e2b.md says what it serves")
	}))
}

// plainJSON has Connect carry structs that are no Protocol Buffers.
type plainJSON struct{}

func (plainJSON) Name() string { return "json" }

func (plainJSON) Marshal(v any) ([]byte, error) { return json.Marshal(v) }

func (plainJSON) Unmarshal(b []byte, v any) error {
	if len(b) == 0 {
		return nil
	}
	return decodeJSON(b, v)
}

// unary serves a procedure that answers once.
func unary[I, O any](s *Server, name string, do func(context.Context, *I) (*O, error)) {
	s.data.Handle("/"+name, connect.NewUnaryHandler("/"+name, func(ctx context.Context, r *connect.Request[I]) (*connect.Response[O], error) {
		out, err := do(ctx, r.Msg)
		if err != nil {
			return nil, s.rpcError(ctx, err)
		}
		return connect.NewResponse(out), nil
	}, connect.WithCodec(plainJSON{}), connect.WithCodec(protoBinary{name})))
}

// streams serves a procedure that answers as long as it has something to say.
func streams[I, O any](s *Server, name string, do func(context.Context, http.Header, *I, *sender[O]) error) {
	s.data.Handle("/"+name, connect.NewServerStreamHandler("/"+name, func(ctx context.Context, r *connect.Request[I], out *connect.ServerStream[O]) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.ending, cancel)()
		to := &sender[O]{stream: out}
		to.flusher, _ = ctx.Value(flusherKey{}).(*flusher)
		defer to.stop()
		if err := do(ctx, r.Header(), r.Msg, to); err != nil {
			return s.rpcError(ctx, err)
		}
		return nil
	}, connect.WithCodec(plainJSON{}), connect.WithCodec(protoBinary{name})))
}

// codes is the one table from kinds to those of Connect; what is not in it is
// internal.
var codes = map[sandbox.Kind]connect.Code{
	sandbox.Invalid: connect.CodeInvalidArgument, sandbox.NotFound: connect.CodeNotFound, sandbox.Conflict: connect.CodeFailedPrecondition,
	sandbox.Denied: connect.CodePermissionDenied, sandbox.Exhausted: connect.CodeResourceExhausted, sandbox.Unsupported: connect.CodeUnimplemented,
	sandbox.Unavailable: connect.CodeUnavailable, sandbox.TimedOut: connect.CodeDeadlineExceeded,
}

// rpcError is an error as clients of the data plane read it. One that comes of the
// sandbox's end breaks the connection instead: they ask for its health then.
func (s *Server) rpcError(ctx context.Context, err error) error {
	if own, ok := errors.AsType[*connect.Error](err); ok {
		return own
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return connect.NewError(connect.CodeDeadlineExceeded, errors.New("the time of the call is over"))
	}
	if _, lives := s.find(context.WithoutCancel(ctx), viewFrom(ctx).Name); errors.Is(lives, sandbox.NotFound) || s.ending.Err() != nil {
		panic(http.ErrAbortHandler)
	}
	code, ok := codes[sandbox.KindOf(err)]
	if !ok {
		code = connect.CodeInternal
	}
	return connect.NewError(code, errors.New(said(err)))
}

// signal is one by its name or its number.
type signal int

// signals are those that clients know.
var signals = map[string]signal{"SIGNAL_SIGTERM": 15, "SIGNAL_SIGKILL": 9}

// UnmarshalJSON reads a name or a number.
func (n *signal) UnmarshalJSON(b []byte) error {
	text := strings.Trim(string(b), `"`)
	if known, ok := signals[text]; ok {
		*n = known
		return nil
	}
	if err := json.Unmarshal(b, (*int)(n)); err != nil {
		return fmt.Errorf("unknown signal %s", text)
	}
	return nil
}

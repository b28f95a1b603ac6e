// Package swerex answers SWE-ReX's remote runtime over roles of [api.Service]: shells
// that last, commands, files, and interactive programs by terminals. A runtime is a
// session of caisson: "swerex" of who asks, or the one that is named where clients
// have /swerex/NAME behind their host.
//
// What goes wrong travels as its clients expect, in a 511 that names an exception of
// theirs. docs/swerex.md is for its users, and says what is not served.
package swerex

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
	api.Sessions
	api.Shells
	api.Execs
	api.ExecControl
	api.Terminals
	api.Workspaces
	api.Policy
}

// Config says what is served. Service is required.
type Config struct {
	Service Service
	// Language is that of sessions which it makes; "" is python.
	Language string
	// MaxBody bounds a request in JSON, and MaxUpload a file that is sent; 0 is 64 MiB,
	// and 1 GiB.
	MaxBody, MaxUpload sandbox.Bytes
}

// Wire answers over HTTP. Its methods are safe for concurrent use. Its owner closes
// it.
type Wire struct {
	cfg Config
	mux *http.ServeMux

	ctx     context.Context // of what goes on between requests
	cancel  context.CancelFunc
	going   sync.WaitGroup
	answers answers

	mu       sync.Mutex
	runtimes map[string]*runtime
}

var _ http.Handler = (*Wire)(nil)

// New checks a Config and starts nothing. Errors: Invalid.
func New(cfg Config) (*Wire, error) {
	if cfg.Service == nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "swerex: a service is required")
	}
	cfg.Language = cmp.Or(cfg.Language, "python")
	cfg.MaxBody, cfg.MaxUpload = cmp.Or(cfg.MaxBody, 64*sandbox.MiB), cmp.Or(cfg.MaxUpload, sandbox.GiB)
	w := &Wire{cfg: cfg, mux: http.NewServeMux(), runtimes: map[string]*runtime{}}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	for _, path := range paths {
		w.mux.HandleFunc("GET "+path+"is_alive", isAlive)
		w.mux.HandleFunc("POST "+path+"upload", w.once(w.upload))
		for name, call := range map[string]http.HandlerFunc{
			"create_session": answering(w, w.createSession), "run_in_session": answering(w, w.runInSession), "close_session": answering(w, w.closeSession),
			"execute": answering(w, w.execute), "read_file": answering(w, w.readFile), "write_file": answering(w, w.writeFile), "close": answering(w, w.close),
		} {
			w.mux.HandleFunc("POST "+path+name, w.once(call))
		}
	}
	return w, nil
}

// paths are where a runtime is asked: that of who asks, or one by its name.
var paths = []string{"/", "/swerex/{runtime}/"}

// calls are the names behind a path, with their methods.
var calls = []string{
	"GET is_alive", "POST create_session", "POST run_in_session", "POST close_session", "POST execute", "POST read_file", "POST write_file", "POST upload",
	"POST close",
}

// Patterns are what it answers.
func (*Wire) Patterns() []string {
	var all []string
	for _, path := range paths {
		for _, c := range calls {
			method, name, _ := cut(c)
			all = append(all, method+" "+path+name)
		}
	}
	return all
}

// Refuse answers who is not let in.
func (*Wire) Refuse(w http.ResponseWriter, status int, err error) { fastapi.Refuse(w, status, err) }

// ServeHTTP implements [http.Handler].
func (w *Wire) ServeHTTP(rw http.ResponseWriter, r *http.Request) { w.mux.ServeHTTP(rw, r) }

// Run closes it once ctx is done.
func (w *Wire) Run(ctx context.Context) {
	<-ctx.Done()
	_ = w.Close() // never fails
}

// Close ends what goes on between requests, and waits for it. Sessions stay.
func (w *Wire) Close() error {
	w.cancel()
	w.going.Wait()
	return nil
}

func isAlive(w http.ResponseWriter, _ *http.Request) {
	fastapi.Write(w, http.StatusOK, map[string]any{"is_alive": true, "message": ""})
}

// answering answers a call in JSON: with what f returns, or with its error.
func answering[I, O any](w *Wire, f func(ctx context.Context, rt *runtime, in I) (O, error)) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		body, ok := fastapi.Read(rw, r, w.cfg.MaxBody)
		if !ok {
			return
		}
		in := new(I)
		if len(body) > 0 {
			if faults := fastapi.Decode(body, in); faults != nil {
				fastapi.Reject(rw, faults)
				return
			}
		}
		if c, is := any(in).(checker); is {
			if faults := c.faults(); len(faults) > 0 {
				fastapi.Reject(rw, faults)
				return
			}
		}
		out, err := f(r.Context(), w.runtimeOf(r), *in)
		if err != nil {
			fail(rw, err)
			return
		}
		fastapi.Write(rw, http.StatusOK, out)
	}
}

// checker is a request that tells what is wrong with it.
type checker interface{ faults() []fastapi.Fault }

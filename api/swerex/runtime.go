package swerex

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/internal/lazyregexp"
	"github.com/caisson-dev/caisson/sandbox"
)

// made is the label of sessions that the wire has made, and removes.
var made = sandbox.Labels{"wire": "swerex"}

// idle is for how long a sandbox of such a session waits for its agent to think.
const idle = 2 * time.Hour

// runtime is what a client takes for a machine: a session, and what is known of its
// shells. Where the server was started again, shells go on and nothing is known.
type runtime struct {
	session string

	mu     sync.Mutex
	shells map[string]*shell
}

func cut(call string) (method, name string, ok bool) { return strings.Cut(call, " ") }

// runtimeOf is the one that a request is about.
func (w *Wire) runtimeOf(r *http.Request) *runtime {
	session := cmp.Or(r.PathValue("runtime"), "swerex")
	key := sandbox.CallerFrom(r.Context()).Kept(session)
	w.mu.Lock()
	defer w.mu.Unlock()
	rt := w.runtimes[key]
	if rt == nil {
		rt = &runtime{session: session, shells: map[string]*shell{}}
		w.runtimes[key] = rt
	}
	return rt
}

// ready makes the session where it is not there.
func (w *Wire) ready(ctx context.Context, rt *runtime) error {
	found, err := w.cfg.Service.Sessions(ctx, sandbox.SessionFilter{Name: rt.session, Running: true})
	if err != nil || len(found) > 0 {
		return err
	}
	_, err = w.cfg.Service.CreateSession(ctx, sandbox.SessionOptions{
		Name: rt.session, Language: w.cfg.Language, Idle: sandbox.Duration(idle), Labels: made,
	}, sandbox.Local{})
	if errors.Is(err, sandbox.Conflict) {
		return nil // another request was first
	}
	return err
}

// shell returns what is known of a shell, by the name that clients have.
func (rt *runtime) shell(name string) *shell {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	s := rt.shells[name]
	if s == nil {
		s = &shell{name: shellName(name), turn: make(chan struct{}, 1)}
		rt.shells[name] = s
	}
	return s
}

// forget drops what is known of a shell, and returns it; nil is nothing.
func (rt *runtime) forget(name string) *shell {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	s := rt.shells[name]
	delete(rt.shells, name)
	return s
}

var plainName = lazyregexp.New(`^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$`)

// shellName is a shell's name of ours for one of theirs, which may be any text.
func shellName(name string) string {
	if plainName().MatchString(name) {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return "shell-" + hex.EncodeToString(sum[:8])
}

// nothing is what is asked or answered by a call that has no fields.
type nothing struct{}

// close ends a runtime: its shells, and the session with its files where the wire has
// made it.
func (w *Wire) close(ctx context.Context, rt *runtime, _ nothing) (nothing, error) {
	v, err := w.cfg.Service.Session(ctx, rt.session)
	if errors.Is(err, sandbox.NotFound) {
		return nothing{}, nil
	}
	if err != nil {
		return nothing{}, err
	}
	rt.mu.Lock()
	known := rt.shells
	rt.shells = map[string]*shell{}
	rt.mu.Unlock()
	for _, s := range known {
		s.leave()
	}
	if v.Labels["wire"] == made["wire"] {
		return nothing{}, w.cfg.Service.RemoveSession(ctx, rt.session, true)
	}
	for _, s := range known { // others' shells in a session of their own stay
		if gone := w.cfg.Service.CloseShell(ctx, rt.session, s.name); !errors.Is(gone, sandbox.NotFound) {
			err = errors.Join(err, gone)
		}
	}
	return nothing{}, err
}

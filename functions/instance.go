package functions

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/internal/filelock"
	"github.com/caisson-dev/caisson/sandbox"
)

// Labels of the sessions that functions run in, beside the function's own.
const (
	LabelFunction = "caisson.function"      // its name
	labelCode     = "caisson.function-code" // the id of what was put
)

// instance is a session with a process for calls, one at a time. All of it but abort
// is for whoever has taken it from its pool.
type instance struct {
	fs   *Functions
	idle *time.Timer // while it waits

	session string // "" before there is one
	owner   string
	code    sandbox.ID // of the function that it is for
	unlock  func()     // lets other processes have the session
	calls   int        // of the process

	mu      sync.Mutex
	process *process // nil where the next call is cold
	aborted bool
}

// running is its process, nil where there is none that lives.
func (in *instance) running() *process {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.process != nil && in.process.ended() {
		in.process = nil
	}
	return in.process
}

// runs has p as its process from now on.
func (in *instance) runs(p *process) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.aborted {
		return sandbox.Errorf(sandbox.Unavailable, "caisson is closing")
	}
	in.process, in.calls = p, 0
	return nil
}

// abort ends its process under a call.
func (in *instance) abort() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.aborted = true
	if in.process != nil {
		in.process.cancel()
	}
}

// fit gives the instance a session for f: its own, one that another process has left,
// or a new one.
func (in *instance) fit(ctx context.Context, f sandbox.Function) error {
	if in.session != "" && in.code == f.ID {
		return nil
	}
	if in.session != "" {
		in.remove()
	}
	in.owner, in.code = f.Owner, f.ID
	if found, err := in.claim(ctx, f); found || err != nil {
		return err
	}
	return in.create(ctx, f)
}

// claim takes a session of f that nobody holds, and removes those of other versions.
func (in *instance) claim(ctx context.Context, f sandbox.Function) (found bool, err error) {
	views, err := in.fs.sessions(ctx, f)
	if err != nil {
		return false, err
	}
	for _, v := range views {
		unlock, ok, err := in.fs.lock(v.Name)
		if err != nil {
			return false, err
		}
		switch {
		case !ok:
		case v.Labels[labelCode] == string(f.ID):
			in.session, in.unlock = v.Name, unlock
			return true, nil
		default:
			in.fs.drop(ctx, v.Name, unlock)
		}
	}
	return false, nil
}

// create makes a session for f.
func (in *instance) create(ctx context.Context, f sandbox.Function) error {
	labels := sandbox.Labels{LabelFunction: f.Name, labelCode: string(f.ID)}
	for k, v := range f.Labels {
		labels[k] = v
	}
	id := sandbox.NewID()
	name := "fn-" + strings.ToLower(f.Name)[:min(len(f.Name), 40)] + "-" + string(id[:12])
	unlock, _, err := in.fs.lock(name)
	if err != nil {
		return err
	}
	made, err := in.fs.cfg.Sandboxes.CreateSession(ctx, sandbox.SessionOptions{
		Name: name, Language: f.Language, Image: f.Image, Idle: sandbox.Duration(in.fs.cfg.KeepWarm), Limits: f.Limits, Network: f.Network,
		Workspace: sandbox.Workspace{Kind: sandbox.WorkspaceTmpfs}, Runtime: f.Runtime, OCIRuntime: f.OCIRuntime, Labels: labels,
	}, sandbox.Local{})
	if err != nil {
		unlock()
		return err
	}
	in.session, in.unlock = made.Name, unlock
	return nil
}

// lost forgets a session that somebody has removed.
func (in *instance) lost() {
	if in.session != "" {
		in.unlock()
	}
	in.session = ""
}

// rest ends its process and leaves its session, which ends by itself, to others.
func (in *instance) rest() {
	if p := in.running(); p != nil {
		p.end()
	}
	in.lost()
}

// remove ends its process and removes its session.
func (in *instance) remove() {
	if p := in.running(); p != nil {
		p.end()
	}
	if in.session == "" {
		return
	}
	ctx, cancel := context.WithTimeout(sandbox.WithCaller(context.Background(), sandbox.Caller{Owner: in.owner}), latePatience)
	defer cancel()
	in.fs.drop(ctx, in.session, in.unlock)
	in.session = ""
}

// sessions are those of a function, whichever version they are of.
func (fs *Functions) sessions(ctx context.Context, f sandbox.Function) ([]sandbox.SessionView, error) {
	return fs.cfg.Sandboxes.Sessions(ctx, sandbox.SessionFilter{Owner: &f.Owner, Labels: sandbox.Labels{LabelFunction: f.Name}})
}

// sweep removes the sessions of a function that nobody holds.
func (fs *Functions) sweep(ctx context.Context, f sandbox.Function) error {
	views, err := fs.sessions(ctx, f)
	if err != nil {
		return err
	}
	for _, v := range views {
		unlock, ok, err := fs.lock(v.Name)
		if err != nil {
			return err
		}
		if ok {
			fs.drop(ctx, v.Name, unlock)
		}
	}
	return nil
}

// drop removes a session that the caller has locked. What cannot be removed is left
// to whoever looks next.
func (fs *Functions) drop(ctx context.Context, session string, unlock func()) {
	defer unlock()
	if err := fs.cfg.Sandboxes.RemoveSession(ctx, session, true); err != nil && !errors.Is(err, sandbox.NotFound) {
		fs.cfg.Log.Warn("a function's session stays", "session", session, "error", err)
		return
	}
	if err := filelock.Remove(fs.lockPath(session)); err != nil {
		fs.cfg.Log.Warn("the lock of a function's session stays", "session", session, "error", err)
	}
}

func (fs *Functions) lockPath(session string) string {
	return filepath.Join(fs.cfg.LockDir, "function-"+session)
}

// lock takes a session's lock, where nobody holds it.
func (fs *Functions) lock(session string) (unlock func(), ok bool, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // whoever would have to wait gives up
	unlock, err = filelock.Lock(ctx, fs.lockPath(session))
	if errors.Is(err, context.Canceled) {
		return nil, false, nil
	}
	return unlock, err == nil, err
}

package service

import (
	"context"
	"io"
	"slices"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// act is what a call does, as far as it matters who may.
type act int

const (
	reads   act = iota // looks at what is the owner's
	uses               // runs, makes and changes what is the owner's
	answers            // answers what policy asks about it
	governs            // concerns all owners, or what caisson stands on
)

// permitted has what each kind of access may do. What is not in it may nothing.
var permitted = map[sandbox.Access]map[act]bool{
	sandbox.AccessUser:     {reads: true, uses: true, answers: true},
	sandbox.AccessViewer:   {reads: true},
	sandbox.AccessApprover: {reads: true, answers: true},
}

// may returns who asks. Errors: Denied where they may not.
func may(ctx context.Context, a act) (sandbox.Caller, error) {
	who := sandbox.CallerFrom(ctx)
	access := who.Access
	if access == "" {
		access = sandbox.AccessUser
	}
	if who.IsAdmin() || permitted[access][a] {
		return who, nil
	}
	need := "a token of the role " + string(sandbox.AccessUser)
	switch a {
	case reads, uses:
	case answers:
		need = "a token of the role " + string(sandbox.AccessApprover)
	case governs:
		need = "a token of the role " + string(sandbox.AccessAdmin)
	}
	return who, sandbox.Errorf(sandbox.Denied, "the role %s may not do this", access).WithHint("it takes %s", need)
}

// session is what [may] says, and the name of a session as it is kept.
func session(ctx context.Context, a act, name string) (who sandbox.Caller, kept string, err error) {
	who, err = may(ctx, a)
	return who, who.Kept(name), err
}

// own is the owner whose things a filter may select.
func own(who sandbox.Caller, asked *string) (*string, error) {
	if who.IsAdmin() {
		return asked, nil
	}
	if asked != nil && *asked != who.Owner {
		return nil, sandbox.Errorf(sandbox.Denied, "only what belongs to you can be listed").WithHint("leave the owner out")
	}
	return &who.Owner, nil
}

// asLocal is for what is done on behalf of everybody: it sees all owners.
func asLocal(ctx context.Context) context.Context { return sandbox.WithCaller(ctx, sandbox.Caller{}) }

// onlyOthers takes from a run what would have its own caller approve it, where
// that is not allowed.
func (s *Service) onlyOthers(who sandbox.Caller, mode sandbox.ApproveMode, local *sandbox.Local) error {
	if !s.cfg.OthersApprove || who.Name == "" {
		return nil
	}
	if mode == sandbox.ApproveAlways {
		return sandbox.Errorf(sandbox.Denied, "who asks may not approve").WithHint("leave the way to approve out, or ask and have another answer")
	}
	local.Ask = nil
	return nil
}

// mayUse refuses a runtime that a caller may not ask for. Errors: Denied, Invalid.
func (s *Service) mayUse(who sandbox.Caller, runtime string) error {
	switch {
	case s.cfg.Served && runtime == runtimes.Auto:
		return sandbox.Errorf(sandbox.Invalid, "a server does not choose a runtime").WithHint("name one, or leave it out for the server's own")
	case runtime == "" || who.IsAdmin() || slices.Contains(s.cfg.Runtimes, runtime):
		return nil
	}
	return sandbox.Errorf(sandbox.Denied, "the runtime %s is not for callers of this server", runtime).
		WithHint("leave it out, or have the server started with --allow-runtime %s", runtime)
}

// readOnly is a workspace that nothing can be done to.
type readOnly struct {
	api.Files
	why error
}

func (r readOnly) Write(context.Context, string, uint32, io.Reader) (int64, error) { return 0, r.why }

func (r readOnly) Put(context.Context, []sandbox.File, sandbox.Local) error { return r.why }

func (r readOnly) PutTar(context.Context, string, io.Reader) (sandbox.Moved, error) {
	return sandbox.Moved{}, r.why
}

func (r readOnly) Mkdir(context.Context, string, uint32) error { return r.why }

func (r readOnly) SetAttributes(context.Context, string, map[string]string) error { return r.why }

func (r readOnly) Move(context.Context, string, string) error { return r.why }

func (r readOnly) Remove(context.Context, string, bool) error { return r.why }

package service

import (
	"context"
	"sync"

	"golang.org/x/time/rate"

	"github.com/caisson-dev/caisson/sandbox"
)

// quotas hold owners to what they may have. The zero value is ready.
type quotas struct {
	mu     sync.Mutex
	owners map[string]*share
}

// share is what an owner has of what the store does not tell yet.
type share struct {
	turn  chan struct{} // full while somebody looks and takes
	rates *rate.Limiter

	mu    sync.Mutex
	execs int                        // that run in the foreground
	boxes map[string]*sandbox.Limits // that are being made or used, by what [boxKey] says
	users map[string]int             // of each of these
}

func (q *quotas) of(owner string) *share {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.owners == nil {
		q.owners = map[string]*share{}
	}
	sh := q.owners[owner]
	if sh == nil {
		sh = &share{turn: make(chan struct{}, 1), boxes: map[string]*sandbox.Limits{}, users: map[string]int{}}
		q.owners[owner] = sh
	}
	return sh
}

// boxKey names a sandbox before it has an id: a session has one for a language.
func boxKey(session, language string) string { return session + "/" + language }

// wish is what somebody is about to have.
type wish struct {
	session  string // kept name; "" is a run of its own
	language string
	limits   sandbox.Limits // of a run of its own
	waits    bool           // it runs in the foreground
}

// admit reserves what is wished for, until release is called. Where the quota of
// its owner does not have that much it is Exhausted.
func (s *Service) admit(ctx context.Context, who sandbox.Caller, w wish) (release func(), err error) {
	quota := s.cfg.Quotas.Of(who.Owner)
	quota.Requests, quota.Connections, quota.Traffic, quota.TrafficRate = 0, 0, 0, 0 // which others look at
	if quota == (sandbox.Quota{}) || ctx.Value(reserved{}) != nil {
		return func() {}, nil
	}
	sh, views, unlock, err := s.look(ctx, who)
	if err != nil {
		return nil, err
	}
	defer unlock()
	sh.mu.Lock()
	defer sh.mu.Unlock()
	key, limits := w.box(views)
	if err := within(quota, sh.sum(views, key, limits)); err != nil {
		return nil, err
	}
	return sh.take(key, limits, w), nil
}

// reserved marks the context of a run that has its place already.
type reserved struct{}

// Reserve has a place for a run within its caller's quota, until release is called.
// It is run, once, with the context that comes back. Errors: Exhausted where there is
// no room now, Invalid where there never is, and those of who may not.
func (s *Service) Reserve(ctx context.Context, run sandbox.Run) (_ context.Context, release func(), err error) {
	who, in, err := session(ctx, uses, run.Session)
	if err != nil {
		return nil, nil, err
	}
	w := wish{session: in, language: run.Language, limits: run.Limits, waits: in == ""}
	if in == "" {
		l := w.limits.WithDefaults()
		if err := within(s.cfg.Quotas.Of(who.Owner), sandbox.Quota{Sandboxes: 1, Execs: 1, Memory: l.Memory, CPUs: l.CPUs}); err != nil {
			return nil, nil, sandbox.Errorf(sandbox.Invalid, "by itself it is more than its owner may have: %s", err.Error()).WithHint("%s", sandbox.HintOf(err))
		}
	}
	if release, err = s.admit(ctx, who, w); err != nil {
		return nil, nil, err
	}
	return context.WithValue(ctx, reserved{}, true), release, nil
}

// look returns what an owner has. Until unlock is called nobody else looks.
func (s *Service) look(ctx context.Context, who sandbox.Caller) (sh *share, views []sandbox.SessionView, unlock func(), err error) {
	sh = s.quotas.of(who.Owner)
	select {
	case sh.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, nil, context.Cause(ctx)
	}
	unlock = func() { <-sh.turn }
	if views, err = s.cfg.Manager.Sessions(ctx, sandbox.SessionFilter{Owner: &who.Owner}); err != nil {
		unlock()
		return nil, nil, nil, err
	}
	return sh, views, unlock, nil
}

// room has the sizes of an owner's workspaces, with another of a size, stay within
// the quota. Until unlock is called nobody else of the owner makes one.
func (s *Service) room(ctx context.Context, who sandbox.Caller, size sandbox.Bytes) (unlock func(), err error) {
	quota := sandbox.Quota{Disk: s.cfg.Quotas.Of(who.Owner).Disk}
	if quota.Disk == 0 {
		return func() {}, nil
	}
	_, views, unlock, err := s.look(ctx, who)
	if err != nil {
		return nil, err
	}
	used := sandbox.Quota{Disk: size}
	for _, v := range views {
		used.Disk += v.Workspace.Size
	}
	if err := within(quota, used); err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// box is the sandbox that a wish is for; "" is none.
func (w *wish) box(views []sandbox.SessionView) (key string, limits sandbox.Limits) {
	if w.session == "" {
		return boxKey("", string(sandbox.NewID())), w.limits.WithDefaults()
	}
	for _, v := range views {
		if v.Name != w.session {
			continue
		}
		if w.language == "" {
			w.language = v.Language
		}
		return boxKey(w.session, w.language), v.Limits
	}
	return "", limits // there is no such session, which the call says itself
}

// sum is what the owner would have with the wish.
func (sh *share) sum(views []sandbox.SessionView, key string, limits sandbox.Limits) sandbox.Quota {
	boxes := map[string]sandbox.Limits{}
	used := sandbox.Quota{Execs: sh.execs}
	for _, v := range views {
		for _, b := range v.Sandboxes {
			if b.State != sandbox.StateGone {
				boxes[boxKey(v.Name, b.Language)] = v.Limits
			}
		}
		for _, e := range v.Execs {
			if e.Background && e.Ended.IsZero() {
				used.Execs++
			}
		}
	}
	for k, l := range sh.boxes {
		boxes[k] = *l
	}
	if key != "" {
		boxes[key] = limits
		used.Execs++
	}
	used.Sandboxes = len(boxes)
	for _, l := range boxes {
		used.Memory += l.Memory
		used.CPUs += l.CPUs
	}
	return used
}

// take reserves a sandbox and an exec in it.
func (sh *share) take(key string, limits sandbox.Limits, w wish) (release func()) {
	if key == "" {
		return func() {}
	}
	sh.boxes[key] = &limits
	sh.users[key]++
	if w.waits {
		sh.execs++
	}
	return sync.OnceFunc(func() {
		sh.mu.Lock()
		defer sh.mu.Unlock()
		if w.waits {
			sh.execs--
		}
		if sh.users[key]--; sh.users[key] == 0 {
			delete(sh.users, key)
			delete(sh.boxes, key)
		}
	})
}

// within is the first bound that is passed.
func within(q, used sandbox.Quota) error {
	over := func(what string, bound, would any, end string) error {
		return sandbox.Errorf(sandbox.Exhausted, "the quota of %v %s is used up: it would be %v", bound, what, would).
			WithHint("%s, or have the server's quotas in caisson.yaml changed", end)
	}
	switch {
	case q.Sandboxes > 0 && used.Sandboxes > q.Sandboxes:
		return over("sandboxes", q.Sandboxes, used.Sandboxes, "remove sessions, or wait for runs to end")
	case q.Execs > 0 && used.Execs > q.Execs:
		return over("execs at once", q.Execs, used.Execs, "wait for some to end")
	case q.Memory > 0 && used.Memory > q.Memory:
		return over("of memory", q.Memory, used.Memory, "ask for less memory, or remove sessions")
	case q.CPUs > 0 && used.CPUs > q.CPUs:
		return over("processors", q.CPUs, used.CPUs, "ask for fewer cpus, or remove sessions")
	case q.Disk > 0 && used.Disk > q.Disk:
		return over("of disk", q.Disk, used.Disk, "ask for a smaller workspace_bytes, or remove sessions")
	}
	return nil
}

// Allow counts a request of a caller to a server. Errors: Exhausted where there
// were too many in this second.
func (s *Service) Allow(who sandbox.Caller) error {
	most := s.cfg.Quotas.Of(who.Owner).Requests
	if most <= 0 {
		return nil
	}
	sh := s.quotas.of(who.Owner)
	sh.mu.Lock()
	if sh.rates == nil {
		sh.rates = rate.NewLimiter(rate.Limit(most), max(1, int(most)))
	}
	limiter := sh.rates
	sh.mu.Unlock()
	if !limiter.Allow() {
		return sandbox.Errorf(sandbox.Exhausted, "more than %v requests in a second", most).WithHint("ask more slowly, or have the server's quotas in caisson.yaml changed")
	}
	return nil
}

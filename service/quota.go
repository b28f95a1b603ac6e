package service

import (
	"context"
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/caisson-dev/caisson/sandbox"
)

// quotas hold owners, and all of them together, to what they may have.
type quotas struct {
	turn   chan struct{} // full while somebody looks and takes
	kick   chan struct{} // there may be room for one in line
	looked time.Time     // last, on behalf of those in line; turn guards it

	mu     sync.Mutex
	owners map[string]*share
	lines  map[string][]*waiter // by owner; none is empty
	served map[string]uint64    // by owner: the turn at which one of theirs was let in last
	turns  uint64
}

func newQuotas() *quotas {
	return &quotas{
		turn: make(chan struct{}, 1), kick: make(chan struct{}, 1),
		owners: map[string]*share{}, lines: map[string][]*waiter{}, served: map[string]uint64{},
	}
}

// share is what an owner has of what the store does not tell yet.
type share struct {
	making chan struct{} // full while somebody makes a workspace
	rates  *rate.Limiter

	mu    sync.Mutex
	execs int                        // that run in the foreground
	boxes map[string]*sandbox.Limits // that are being made or used, by what [boxKey] says
	users map[string]int             // of each of these
	goes  string                     // the sandbox that is ended for those in line; "" is none
}

func (q *quotas) of(owner string) *share {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.shareLocked(owner)
}

func (q *quotas) shareLocked(owner string) *share {
	sh := q.owners[owner]
	if sh == nil {
		sh = &share{making: make(chan struct{}, 1), boxes: map[string]*sandbox.Limits{}, users: map[string]int{}}
		q.owners[owner] = sh
	}
	return sh
}

// inside is how many requests of the owner were let in and have not ended.
func (sh *share) inside() (n int) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for _, users := range sh.users {
		n += users
	}
	return n
}

// boxKey names a sandbox before it has an id: a session has one for a language.
func boxKey(session, language string) string { return session + "/" + language }

// wish is what somebody is about to have.
type wish struct {
	session  string // kept name; "" is a run of its own
	language string
	limits   sandbox.Limits // of a run of its own
	waits    bool           // it runs in the foreground
	files    bool           // it runs nothing
}

// admitFiles is admit for who reads and writes what a session keeps, where a sandbox is
// made for that.
func (s *Service) admitFiles(ctx context.Context, who sandbox.Caller, session string) (release func(), err error) {
	if !s.cfg.Quotas.Bind(who.Owner) {
		return func() {}, nil
	}
	found, err := s.cfg.Manager.Sessions(ctx, sandbox.SessionFilter{Name: session, Running: true})
	if err != nil {
		return nil, err
	}
	for _, v := range found {
		for _, b := range v.Sandboxes {
			if b.State != sandbox.StateGone {
				return func() {}, nil
			}
		}
	}
	return s.admit(ctx, who, wish{session: session, files: true})
}

// admit reserves what is wished for, until release is called. Where there is no room
// for that it waits in line, as long as the caller and the settings allow, and is
// Exhausted then.
func (s *Service) admit(ctx context.Context, who sandbox.Caller, w wish) (release func(), err error) {
	return s.admitWithin(ctx, who, w, time.Duration(s.cfg.Quotas.Wait))
}

func (s *Service) admitWithin(ctx context.Context, who sandbox.Caller, w wish, patience time.Duration) (release func(), err error) {
	if !s.cfg.Quotas.Bind(who.Owner) || ctx.Value(reserved{}) != nil {
		return func() {}, nil
	}
	if w.session == "" && s.never(who.Owner, w.limits) != nil {
		patience = 0 // no waiting makes room
	}
	return s.wait(ctx, s.quotas.enter(who.Owner, w), patience)
}

// never is why a run of its own is more than its owner, or everybody, may ever have.
func (s *Service) never(owner string, l sandbox.Limits) error {
	l = l.WithDefaults()
	return within(s.cfg.Quotas.Of(owner), sandbox.Quota{Sandboxes: 1, Execs: 1, Memory: l.Memory, CPUs: l.CPUs})
}

// fits reserves what a request in line wishes for, where there is room. Else it says
// why not.
func (s *Service) fits(ctx context.Context, v *views, w *waiter) (release func(), why, err error) {
	mine, err := v.of(ctx, w.owner)
	if err != nil {
		return nil, nil, err
	}
	total := s.cfg.Quotas.Total
	var others sandbox.Quota
	if total != (sandbox.Quota{}) {
		if others, err = s.others(ctx, v, w.owner); err != nil {
			return nil, nil, err
		}
	}
	sh := s.quotas.of(w.owner)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	key, limits := w.wish.box(mine)
	if key != "" && key == sh.goes {
		return nil, sandbox.Errorf(sandbox.Exhausted, "its sandbox is being ended for others").WithHint("try again"), nil
	}
	would := sh.sum(mine, key, limits)
	if w.wish.files && key != "" {
		would.Execs--
	}
	if why = within(s.cfg.Quotas.Of(w.owner), would); why == nil {
		why = withinTotal(total, would, others)
	}
	if why != nil {
		s.makeRoom(v, w)
		return nil, why, nil
	}
	return sh.take(key, limits, w.wish, s.quotas.wake), nil, nil
}

// others is what all other owners have.
func (s *Service) others(ctx context.Context, v *views, but string) (used sandbox.Quota, err error) {
	all, err := v.everybody(ctx)
	if err != nil {
		return used, err
	}
	s.quotas.mu.Lock()
	shares := maps.Clone(s.quotas.owners)
	s.quotas.mu.Unlock()
	for owner := range all {
		if shares[owner] == nil {
			shares[owner] = s.quotas.of(owner)
		}
	}
	for owner, sh := range shares {
		if owner == but {
			continue
		}
		sh.mu.Lock()
		has := sh.sum(all[owner], "", sandbox.Limits{})
		sh.mu.Unlock()
		used = used.Plus(has)
	}
	return used, nil
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
		if err := s.never(who.Owner, w.limits); err != nil {
			return nil, nil, sandbox.Errorf(sandbox.Invalid, "by itself it is more than its owner may have: %s", err.Error()).WithHint("%s", sandbox.HintOf(err))
		}
	}
	if release, err = s.admitWithin(ctx, who, w, 0); err != nil { // who reserves has a queue already
		return nil, nil, err
	}
	return context.WithValue(ctx, reserved{}, true), release, nil
}

// room has the sizes of an owner's workspaces, with another of a size, stay within
// the quota. Until unlock is called nobody else of the owner makes one.
func (s *Service) room(ctx context.Context, who sandbox.Caller, size sandbox.Bytes) (unlock func(), err error) {
	quota := sandbox.Quota{Disk: s.cfg.Quotas.Of(who.Owner).Disk}
	if quota.Disk == 0 {
		return func() {}, nil
	}
	sh := s.quotas.of(who.Owner)
	select {
	case sh.making <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	unlock = func() { <-sh.making }
	views, err := s.cfg.Manager.Sessions(ctx, sandbox.SessionFilter{Owner: &who.Owner})
	used := sandbox.Quota{Disk: size}
	for _, v := range views {
		used.Disk += v.Workspace.Size
	}
	if err == nil {
		err = within(quota, used)
	}
	if err != nil {
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

// take reserves a sandbox and an exec in it. freed is called after its release.
func (sh *share) take(key string, limits sandbox.Limits, w wish, freed func()) (release func()) {
	if key == "" {
		return func() {}
	}
	sh.boxes[key] = &limits
	sh.users[key]++
	if w.waits {
		sh.execs++
	}
	return sync.OnceFunc(func() {
		defer freed()
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

// withinTotal is the first bound of all together that is passed. The last quarter is
// for those who have less than three: however much one asks for, another finds room.
func withinTotal(total, would, others sandbox.Quota) error {
	if err := within(total, would.Plus(others)); err != nil {
		return sandbox.Errorf(sandbox.Exhausted, "of all owners together, %w", err).WithHint("%s", sandbox.HintOf(err))
	}
	most := sandbox.Quota{Sandboxes: total.Sandboxes - total.Sandboxes/4, Execs: total.Execs - total.Execs/4, Memory: total.Memory - total.Memory/4, CPUs: total.CPUs * 3 / 4}
	if err := within(most, would); err != nil {
		return sandbox.Errorf(sandbox.Exhausted, "one owner has three quarters of what all may have at most: %w", err).WithHint("%s", sandbox.HintOf(err))
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

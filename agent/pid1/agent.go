//go:build linux

package pid1

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/track"
	"github.com/caisson-dev/caisson/agent/wire"
)

// Config says where an agent lives. The zero value of a field is the place
// that package wire names.
type Config struct {
	// Dir is the private folder: the agent's socket is made in it, and the
	// host's ready socket is looked for there.
	Dir string
	// Cgroup is the root of the cgroup file systems.
	Cgroup string
	// Unclaimed is how long the agent waits for somebody to claim it before it
	// ends, counted anew from each Hello that does not. 0 is one minute.
	Unclaimed time.Duration
	// Alone is set where the sandbox has one user, the agent's own.
	Alone *Alone
	// Build names the agent's version, for people.
	Build string
	// Procs, where set, is told how many processors the agent has work for: one,
	// or two while several execs can have processes. A process of its own passes
	// [runtime.GOMAXPROCS]: with a second one the runtime wakes a thread at every
	// step of an exec to look for work that is not there, and with only one a
	// fork that waits for its turn holds up everybody. It is called with a lock
	// of the agent held.
	Procs func(n int)
}

// Agent runs execs on behalf of its clients. It is made by [New], and [Agent.Run]
// owns it.
type Agent struct {
	cfg     Config
	cgroup  *cgroup
	cores   int // of the machine; 0 is not known
	sampler *sampler
	reaper  *reaper
	spawn   *spawner
	null    *os.File
	acting  chan struct{} // a place for each thread that acts as a user: see [agentThreads]
	putting chan struct{} // fewer, so that puts, which wait for their clients, leave some
	quit    chan string   // why Run is to return
	life    *life
	relays  atomic.Bool // processes of our own stand beside the execs
	tracker *track.Tracker
	room    *room
	watches track.Watches // of all that watches folders
	outward outward
	calling calling
	dialed  chan struct{} // a place for each connection to a port inside
	answers answers
	starts  *starts
	warm    *warmth

	leavable map[string]uint32 // see there; never changed

	mu        sync.Mutex
	claim     *wire.Claim // nil until somebody has claimed the agent; never changed after
	unclaimed *time.Timer // runs until then
	conns     int
	idle      *time.Timer // runs while a one-shot agent has no client
	execs     map[string]*exec
	groups    map[int]*exec
	forbidden []string // what was killed before it began, the newest last
	nextGroup int
	leases    map[string]*lease
	last      lastCounters
	procs     int // what Procs was told last
}

// New prepares an agent. It opens files and starts nothing.
func New(cfg Config) (*Agent, error) {
	if cfg.Dir == "" {
		cfg.Dir = wire.PrivateDir
	}
	if cfg.Cgroup == "" {
		cfg.Cgroup = "/sys/fs/cgroup"
	}
	if cfg.Unclaimed == 0 {
		cfg.Unclaimed = time.Minute
	}
	if cfg.Alone != nil && cfg.Alone.Filter != "" {
		if _, err := os.Stat(cfg.Alone.Filter); err != nil {
			return nil, fmt.Errorf("the filter of system calls: %w", err)
		}
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	a := &Agent{
		cfg: cfg, cgroup: openCgroup(cfg.Cgroup), cores: machineCores(), null: null, quit: make(chan string, 1),
		acting: make(chan struct{}, 4), putting: make(chan struct{}, 2), dialed: make(chan struct{}, wire.MaxDialed),
		execs: map[string]*exec{}, groups: map[int]*exec{}, leases: map[string]*lease{},
	}
	a.sampler = newSampler(a.cgroup)
	a.reaper = newReaper(a.bookOrphan)
	a.spawn = newSpawner(a.reaper)
	a.life = &life{end: a.endWith}
	a.room = newRoom(a)
	a.warm, a.leavable = &warmth{a: a}, leavable()
	a.starts = newStarts(a)
	a.tracker = track.New(track.Config{Root: wire.WorkspaceDir, Watch: true, Watches: &a.watches, As: func(do func()) error { return a.as("", do) }})
	return a, nil
}

// Run serves until ctx is done, until nobody claims the agent in time, or until
// a one-shot agent's clients are gone. The reason is its error, which is never
// nil. As the first process of a container it takes everything else with it.
func (a *Agent) Run(ctx context.Context) error {
	unix.Umask(0o022)
	// Nobody in the sandbox may read this process or attach to it.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("set undumpable: %w", err)
	}
	if unix.Geteuid() == 0 {
		if err := unix.Setgroups(nil); err != nil {
			return fmt.Errorf("drop groups: %w", err)
		}
	}
	if err := os.MkdirAll(wire.StageDir, 0o711); err != nil {
		return fmt.Errorf("make staging place: %w", err)
	}
	go a.reaper.run()
	go a.spawn.run()
	ln, err := new(net.ListenConfig).Listen(ctx, "unix", a.cfg.Dir+"/"+wire.SocketName)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	defer ln.Close()
	// The folders around it are closed; the host's side may be another user.
	if err := os.Chmod(a.cfg.Dir+"/"+wire.SocketName, 0o777); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	if err := a.announce(ctx); err != nil {
		return err
	}
	startThreads() // while the host hears of it; nobody is answered before
	a.mu.Lock()
	a.unclaimed = time.AfterFunc(a.cfg.Unclaimed, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.claim == nil {
			a.endWith("nobody claimed this sandbox")
		}
	})
	a.mu.Unlock()
	defer a.unclaimed.Stop()
	failed := make(chan error, 1)
	go func() { failed <- a.accept(ln) }()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case why := <-a.quit:
		return errors.New(why)
	case err := <-failed:
		return err
	}
}

// endWith makes Run return; the first reason counts.
func (a *Agent) endWith(why string) {
	select {
	case a.quit <- why:
	default:
	}
}

// announce tells the host that the agent listens, where it waits for that.
func (a *Agent) announce(ctx context.Context) error {
	path := a.cfg.Dir + "/" + wire.ReadyName
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	c, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		return fmt.Errorf("announce: %w", err)
	}
	return c.Close()
}

func (a *Agent) accept(ln net.Listener) error {
	for {
		c, err := ln.Accept()
		if err != nil {
			return fmt.Errorf("accept: %w", err)
		}
		if relayed(c) {
			a.relays.Store(true)
		}
		go a.serve(c)
	}
}

// admit checks a Hello, and takes the claim that it may carry. It counts the
// connection, which [Agent.dismiss] gives back.
func (a *Agent) admit(h *wire.Hello) *wire.Failure {
	refuse := func(kind, format string, args ...any) *wire.Failure {
		return &wire.Failure{Kind: kind, Message: fmt.Sprintf(format, args...)}
	}
	if h.Version != wire.Version {
		return refuse("unsupported", "this agent speaks version %d, the client version %d", wire.Version, h.Version)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case h.Claim != nil && a.claim != nil:
		return refuse("conflict", "this sandbox is claimed")
	case h.Claim != nil:
		if err := checkClaim(h.Claim, a.cfg.Alone != nil); err != nil {
			return refuse("invalid", "%v", err)
		}
		if err := a.harden(h.Claim.Harden); err != nil {
			return refuse("unsupported", "harden what runs here: %v", err)
		}
		a.claim = h.Claim
		a.life.renew(h.Claim.Renew)
	case a.claim == nil:
		if a.unclaimed != nil {
			a.unclaimed.Reset(a.cfg.Unclaimed) // somebody still means to
		}
		return refuse("conflict", "this sandbox is not claimed yet")
	case subtle.ConstantTimeCompare(h.Secret, a.claim.Secret) != 1:
		return refuse("denied", "wrong secret")
	}
	a.conns++
	if a.idle != nil {
		a.idle.Stop()
		a.idle = nil
	}
	return nil
}

// dismiss ends a connection that was admitted.
func (a *Agent) dismiss(l *lease) {
	a.leave(l)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.conns--
	if a.conns > 0 || !a.claim.OneShot {
		return
	}
	a.idle = time.AfterFunc(l.grace, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.conns == 0 {
			a.endWith("the client of this one-shot sandbox is gone")
		}
	})
}

// agentThreads is how many threads the agent holds ready. Blocking calls are
// bounded below it: one each for the reaper, the spawner and the runtime's own
// monitor, those that act as a user, and what reads /proc.
const agentThreads = 14

// startThreads makes the runtime start its threads now. Later, user code may
// have used up the process limit, and a runtime that cannot start a thread
// aborts.
func startThreads() {
	var ready, done sync.WaitGroup
	release := make(chan struct{})
	ready.Add(agentThreads)
	for range agentThreads {
		done.Go(func() {
			// A locked goroutine has its thread to itself; unlocked at the end,
			// the thread stays with the runtime for others.
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			ready.Done()
			<-release
		})
	}
	ready.Wait()
	close(release)
	done.Wait()
}

package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/caisson-dev/caisson/agent/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// Places inside every sandbox, for those who compose commands and mounts.
const (
	AgentPath  = wire.AgentPath
	HomeDir    = wire.HomeDir
	RunDir     = wire.RunDir
	PrivateDir = wire.PrivateDir
	SocketName = wire.SocketName
	ReadyName  = wire.ReadyName
)

// StagePath is where a staged file of an exec lies inside the sandbox.
func StagePath(id sandbox.ID, name string) string { return wire.StagePath(string(id), name) }

// MaxStage bounds the staged files of one exec, in bytes.
const MaxStage = sandbox.Bytes(wire.MaxStage)

// Config opens a connection.
type Config struct {
	// Secret is what the claim set; with a Claim, the claim's own.
	Secret []byte
	// Claim takes an agent that nobody owns yet.
	Claim *Claim
	Lease Lease
	// Patience is how much longer than its timeout an exec may take to be
	// answered. Then the agent is taken to be stuck, and its sandbox for broken.
	// 0 is [DefaultPatience]. One that is cancelled has six seconds at least.
	Patience time.Duration
	// Dial connects to the same agent again: then [Client.Egress] takes the programs'
	// own connections, where that can be. nil has them come in streams.
	Dial func(ctx context.Context) (net.Conn, error)
}

// DefaultPatience keeps the promise of an answer within 250 ms of a timeout.
const DefaultPatience = 210 * time.Millisecond

// Claim gives an unclaimed agent its owner. It works once.
type Claim struct {
	Identity sandbox.Identity
	// OneShot makes the sandbox end itself once its clients are gone.
	OneShot bool
	// Idle and TTL end the sandbox as [Client.Renew] says. 0 is never.
	Idle, TTL time.Duration
	// Env is the base of each exec's environment, KEY=VALUE.
	Env []string
	// Workspace bounds what the workspace holds; 0 is no bound.
	Workspace sandbox.Bytes
	// Writable are the folders that programs are held to in a sandbox that is
	// hardened. None leaves them to the sandbox alone.
	Writable []string
	// OpenFiles is how many files a program may have open at first.
	OpenFiles int
}

// entryBytes is for how many bytes of its size a workspace may hold an entry: a
// million for 256 MiB.
const entryBytes = 256

// Lease says what becomes of execs whose client is gone.
type Lease struct {
	ID   sandbox.ID
	Keep bool // they go on; otherwise they are ended after Grace
	// Grace is at most five seconds; 0 is two.
	Grace time.Duration
}

// Client is one connection to an agent. It carries any number of calls at
// once, from any number of goroutines. Its owner closes it.
type Client struct {
	session  *yamux.Session
	guard    *wire.Guarded
	welcome  wire.Welcome
	patience time.Duration
	dial     func(ctx context.Context) (net.Conn, error)
	secret   []byte
	parting  parting
}

// helloPatience bounds the first exchange on a connection, openPatience how
// long an agent may take to accept a call, and answerPatience how long to answer
// a short one.
const (
	helloPatience  = 10 * time.Second
	openPatience   = 60 * time.Second
	answerPatience = 60 * time.Second
)

// New speaks the first words on conn, and owns conn from then on, also when it
// fails. Errors: Denied for a wrong secret, Conflict where the agent is claimed
// or not yet, Unsupported for another protocol version, Unavailable where the
// connection breaks.
func New(ctx context.Context, conn net.Conn, cfg Config) (_ *Client, err error) {
	defer func() {
		if err != nil {
			_ = conn.Close() // the first error is the one to tell
		}
	}()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := conn.SetDeadline(time.Now().Add(helloPatience)); err != nil {
		return nil, broken("connect to the agent", err)
	}
	welcome, err := greet(conn, cfg)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, err
	}
	if !stop() {
		return nil, ctx.Err()
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return nil, broken("connect to the agent", err)
	}
	mux := wire.MuxConfig()
	mux.StreamOpenTimeout = openPatience
	guard := wire.Guard(conn)
	session, err := yamux.Client(wire.Join(guard), mux)
	if err != nil {
		return nil, sandbox.Errorf(sandbox.Internal, "set up the multiplexer: %w", err)
	}
	return &Client{session: session, guard: guard, welcome: welcome, patience: cmp.Or(cfg.Patience, DefaultPatience), dial: cfg.Dial, secret: cfg.Secret}, nil
}

func greet(conn net.Conn, cfg Config) (wire.Welcome, error) {
	h := wire.Hello{
		Version: wire.Version, Secret: cfg.Secret,
		Lease: wire.Lease{ID: string(cfg.Lease.ID), Keep: cfg.Lease.Keep, GraceMS: cfg.Lease.Grace.Milliseconds()},
	}
	if c := cfg.Claim; c != nil {
		h.Claim = &wire.Claim{
			Secret: cfg.Secret, UID: c.Identity.UID, RunnerUID: c.Identity.RunnerUID, OneShot: c.OneShot, Env: c.Env,
			Harden:         hardenOf(c),
			WorkspaceBytes: int64(c.Workspace), WorkspaceEntries: int64(c.Workspace) / entryBytes,
			OpenFiles: c.OpenFiles,
			Renew:     wire.Renew{IdleMS: wireMS(&c.Idle), TTLMS: wireMS(&c.TTL)},
		}
	}
	var w wire.Welcome
	if err := wire.WriteMessage(conn, wire.TypeHello, h); err != nil {
		return w, broken("greet the agent", err)
	}
	f, err := wire.NewReader(conn).Next()
	if err != nil {
		return w, broken("greet the agent", err)
	}
	switch f.Type {
	case wire.TypeFailure:
		return w, failure(f)
	case wire.TypeWelcome:
		err = f.Message(&w)
	default:
		err = fmt.Errorf("%w: type %d for a welcome", wire.ErrFrame, f.Type)
	}
	if err == nil && h.Claim != nil && h.Claim.Harden != nil && !w.Hardened {
		return w, sandbox.Errorf(sandbox.Unsupported, "the agent does not harden what it runs: it is an older one")
	}
	if err != nil {
		return w, broken("greet the agent", err)
	}
	return w, nil
}

func hardenOf(c *Claim) *wire.Harden {
	if len(c.Writable) == 0 {
		return nil
	}
	return &wire.Harden{Writable: c.Writable, OpenFiles: c.OpenFiles}
}

// Close ends the connection, once the agent knows which ends were taken, or has
// not listened for a second. It then deals with its other execs as their lease
// says. Closing twice is fine.
func (c *Client) Close() error {
	select {
	case <-c.parting.wait():
	case <-c.session.CloseChan():
	case <-time.After(time.Second):
	}
	return c.session.Close()
}

// AgentBuild names the agent's version, as it says.
func (c *Client) AgentBuild() string { return c.welcome.Build }

// SeesStarts reports whether the agent can see, and refuse, what execs start.
func (c *Client) SeesStarts() bool { return c.welcome.Starts }

// ErrForged is in every error of an agent that broke the protocol: it may be in
// the hands of what it ran, and its sandbox must not be used again.
var ErrForged = wire.ErrFrame

// ErrSurvivors is in the error of a kill that something survived. Its sandbox
// must not be used again.
var ErrSurvivors = errors.New("processes could not be ended: the sandbox is given up")

// orFault prefers what the agent did to the connection for an error of it.
func (c *Client) orFault(err error) error {
	if fault := c.guard.Fault(); fault != nil {
		return fault
	}
	return err
}

// broken classes a failure of the connection itself.
func broken(doing string, err error) *sandbox.Error {
	if errors.Is(err, io.EOF) {
		err = errors.New("the agent closed the connection")
	}
	return sandbox.Errorf(sandbox.Unavailable, "%s: %w", doing, err)
}

// failure turns a Failure frame into an error of its kind.
func failure(f wire.Frame) error {
	var fl wire.Failure
	if err := f.Message(&fl); err != nil {
		return broken("read the agent's answer", err)
	}
	kind, ok := sandbox.ParseKind(fl.Kind)
	if !ok {
		kind = sandbox.Internal
	}
	const most = 4096 // the agent may be in the hands of what it runs
	return sandbox.Errorf(kind, "agent: %s", fl.Message[:min(len(fl.Message), most)])
}

// open starts a call. An agent that does not take it holds it up until
// [openPatience] is over or ctx is.
func (c *Client) open(ctx context.Context, req wire.Request) (*yamux.Stream, error) {
	s, err := c.session.OpenStream()
	if err != nil {
		return nil, broken("open a call", err)
	}
	_ = s.SetWriteDeadline(time.Now().Add(openPatience)) // never fails on a stream
	stop := context.AfterFunc(ctx, func() { _ = s.SetWriteDeadline(time.Unix(1, 0)) })
	err = wire.WriteMessage(s, wire.TypeRequest, req)
	if stop() {
		_ = s.SetWriteDeadline(time.Time{})
	}
	if err != nil {
		_ = s.Close()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if errors.Is(err, wire.ErrFrame) {
			return nil, sandbox.Errorf(sandbox.Invalid, "the request is too large: %w", err)
		}
		return nil, broken("open a call", err)
	}
	return s, nil
}

// ask makes a short call.
func (c *Client) ask(ctx context.Context, req wire.Request) (wire.Reply, error) {
	s, err := c.open(ctx, req)
	if err != nil {
		return wire.Reply{}, err
	}
	defer s.Close()
	_ = s.SetReadDeadline(time.Now().Add(answerPatience)) // never fails on a stream
	stop := context.AfterFunc(ctx, func() { _ = s.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	r, err := answer(s)
	if err != nil && ctx.Err() != nil {
		return r, ctx.Err()
	}
	return r, err
}

// answer reads the Reply or Failure that ends a call.
func answer(r io.Reader) (wire.Reply, error) {
	var reply wire.Reply
	f, err := wire.NewReader(r).Next()
	switch {
	case err != nil:
		return reply, broken("read the agent's answer", err)
	case f.Type == wire.TypeFailure:
		return reply, failure(f)
	case f.Type != wire.TypeReply:
		return reply, broken("read the agent's answer", fmt.Errorf("%w: type %d for a reply", wire.ErrFrame, f.Type))
	}
	if err := f.Message(&reply); err != nil {
		return reply, broken("read the agent's answer", err)
	}
	return reply, nil
}

// Kill ends everything that an exec started, also what outlived its process. Where
// that cancels it, all who follow it are told the cause; "" is none. One that has not
// begun cannot any more, which is NotFound. Errors: that, Unavailable, and [ErrSurvivors].
func (c *Client) Kill(ctx context.Context, id sandbox.ID, cause string) error {
	r, err := c.ask(ctx, wire.Request{Op: wire.OpKill, Kill: &wire.Kill{ID: string(id), Cause: cause}})
	if err != nil {
		return err
	}
	if r.Count != 0 {
		return sandbox.Errorf(sandbox.Internal, "%d %w", r.Count, ErrSurvivors)
	}
	return nil
}

// Forbid sees to it that an exec that has not begun never does. Errors: Conflict where
// it has, Unavailable.
func (c *Client) Forbid(ctx context.Context, id sandbox.ID) error {
	_, err := c.ask(ctx, wire.Request{Op: wire.OpKill, Kill: &wire.Kill{ID: string(id), Unbegun: true}})
	if errors.Is(err, sandbox.NotFound) {
		return nil
	}
	return err
}

// Scrub removes everything that execs left behind: processes there may be none of, files
// wherever they could write, shared memory. Where it fails the sandbox must not be used
// for anybody else.
func (c *Client) Scrub(ctx context.Context) error {
	_, err := c.ask(ctx, wire.Request{Op: wire.OpScrub})
	return err
}

// ExecInfo describes an exec that runs, or whose end nobody has read.
type ExecInfo struct {
	ID             sandbox.ID
	Argv           []string
	PID            int
	Age            time.Duration
	Running        bool
	Processes      int
	Stdout, Stderr int64 // bytes so far
	// Starts are the first that it started while it ran, where that is seen, and each
	// with its End where that is known; StartsLeftOut counts the others.
	Starts        []Start
	StartsLeftOut int
}

// List returns the execs that the agent knows.
func (c *Client) List(ctx context.Context) ([]ExecInfo, error) {
	r, err := c.ask(ctx, wire.Request{Op: wire.OpList})
	if err != nil {
		return nil, err
	}
	infos := make([]ExecInfo, 0, len(r.Execs))
	for _, e := range r.Execs {
		id := sandbox.ID(e.ID)
		if !id.Valid() {
			return nil, broken("list execs", fmt.Errorf("%w: exec id %q", wire.ErrFrame, e.ID))
		}
		info := ExecInfo{
			ID: id, Argv: e.Argv, PID: e.PID, Age: time.Duration(e.AgeMS) * time.Millisecond, Running: e.Running,
			Processes: e.Processes, Stdout: e.Stdout, Stderr: e.Stderr, StartsLeftOut: max(e.StartsLeftOut, 0),
		}
		for _, t := range e.Starts[:min(len(e.Starts), sandbox.MaxStarts)] {
			info.Starts = append(info.Starts, startOf(&t))
		}
		infos = append(infos, info)
	}
	return infos, nil
}

// Gone reports whether the connection has ended.
func (c *Client) Gone() bool { return c.session.IsClosed() }

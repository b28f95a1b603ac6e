package client

import (
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
}

// Claim gives an unclaimed agent its owner. It works once.
type Claim struct {
	Identity sandbox.Identity
	// OneShot makes the sandbox end itself once its clients are gone.
	OneShot bool
	// Idle and TTL end the sandbox as [Client.Renew] says. 0 is never.
	Idle, TTL time.Duration
	// Env is the base of each exec's environment, KEY=VALUE.
	Env []string
}

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
	session *yamux.Session
	welcome wire.Welcome
	parting parting
}

// helloPatience bounds the first exchange on a connection, openPatience how
// long an agent may take to accept a call.
const (
	helloPatience = 10 * time.Second
	openPatience  = 60 * time.Second
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
	session, err := yamux.Client(wire.Join(conn), mux)
	if err != nil {
		return nil, sandbox.Errorf(sandbox.Internal, "set up the multiplexer: %w", err)
	}
	return &Client{session: session, welcome: welcome}, nil
}

func greet(conn net.Conn, cfg Config) (wire.Welcome, error) {
	h := wire.Hello{
		Version: wire.Version, Secret: cfg.Secret,
		Lease: wire.Lease{ID: string(cfg.Lease.ID), Keep: cfg.Lease.Keep, GraceMS: cfg.Lease.Grace.Milliseconds()},
	}
	if c := cfg.Claim; c != nil {
		h.Claim = &wire.Claim{
			Secret: cfg.Secret, UID: c.Identity.UID, RunnerUID: c.Identity.RunnerUID, OneShot: c.OneShot, Env: c.Env,
			Renew: wire.Renew{IdleMS: wireMS(&c.Idle), TTLMS: wireMS(&c.TTL)},
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
	if err != nil {
		return w, broken("greet the agent", err)
	}
	return w, nil
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

// Kill ends everything that an exec started, also what outlived its process.
// Errors: NotFound, Unavailable, and Internal where something survived.
func (c *Client) Kill(ctx context.Context, id sandbox.ID) error {
	r, err := c.ask(ctx, wire.Request{Op: wire.OpKill, Kill: &wire.Kill{ID: string(id)}})
	if err != nil {
		return err
	}
	if r.Count != 0 {
		return sandbox.Errorf(sandbox.Internal, "%d processes of exec %s could not be ended", r.Count, id.Short())
	}
	return nil
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
		infos = append(infos, ExecInfo{
			ID: id, Argv: e.Argv, PID: e.PID, Age: time.Duration(e.AgeMS) * time.Millisecond, Running: e.Running,
			Processes: e.Processes, Stdout: e.Stdout, Stderr: e.Stderr,
		})
	}
	return infos, nil
}

// Stats is one reading of a sandbox's resources, by the agent's own view.
type Stats struct {
	CPU         time.Duration
	Memory      sandbox.Bytes
	Processes   int // tasks, the agent's included
	Zombies     int
	OOMKills    int64
	PIDsHits    int64
	AgentMemory sandbox.Bytes
	AgentTasks  int
}

// Stats reads the sandbox's resources now.
func (c *Client) Stats(ctx context.Context) (Stats, error) {
	r, err := c.ask(ctx, wire.Request{Op: wire.OpStats})
	if err != nil {
		return Stats{}, err
	}
	if r.Stats == nil {
		return Stats{}, broken("read stats", fmt.Errorf("%w: empty", wire.ErrFrame))
	}
	s := r.Stats
	return Stats{
		CPU: micros(s.CPUUS), Memory: sandbox.Bytes(max(s.MemoryBytes, 0)), Processes: max(s.Processes, 0),
		Zombies: max(s.Zombies, 0), OOMKills: max(s.OOMKills, 0), PIDsHits: max(s.PIDsMax, 0),
		AgentMemory: sandbox.Bytes(max(s.AgentBytes, 0)), AgentTasks: max(s.AgentTasks, 0),
	}, nil
}

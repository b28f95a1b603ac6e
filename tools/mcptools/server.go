package mcptools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/tools"
)

// Times of a server's life.
const (
	startTime = 30 * time.Second       // to begin it and to have it list its tools
	patience  = 10 * time.Second       // of a call, and of who asks for the tools, while it is not there
	firstWait = 100 * time.Millisecond // before it is begun again; each time twice as long
	longest   = 30 * time.Second       // at most, and how long it has to live for the first again
)

// version is the newest of the protocol that every server of today is asked for.
const version = "2025-11-25"

// Server is an MCP server as a source of tools. It is begun when its tools are first
// asked for, and again whenever it has ended, until [Server.Close]. Its methods are
// safe for concurrent use.
type Server struct {
	name  string       // for people
	like  sandbox.Tool // what its entry says of each tool; its name is what theirs begin with
	open  func() mcp.Transport
	log   *slog.Logger
	begin sync.Once
	end   context.CancelFunc
	ctx   context.Context //nolint:containedctx // of the life that begin begins
	over  chan struct{}

	mu    sync.Mutex
	now   *mcp.ClientSession // nil while it is not there
	list  []sandbox.Callable
	has   map[string]declared
	err   error         // why it is not there
	moved chan struct{} // closed at the next change of these
}

// declared is a tool as the server lists it.
type declared struct {
	name string // the server's own
	tool sandbox.Tool
}

var _ tools.Source = (*Server)(nil)

// Open makes servers of the entries of a file of that name that have one. It begins
// none. getenv answers for variables; log gets what goes wrong with them, and nil
// discards. Errors: Invalid.
func Open(entries []tools.Entry, file string, getenv func(string) string, log *slog.Logger) ([]*Server, error) {
	folder, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "tools: %w", err)
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	var all []*Server
	for _, e := range entries {
		if e.MCP == nil {
			continue
		}
		s, err := newServer(e, folder, getenv, log)
		if err != nil {
			return nil, sandbox.Errorf(sandbox.Invalid, "%s: %w", file, err).WithHint("%s", cmp.Or(sandbox.HintOf(err), "docs/tools.md has every key"))
		}
		all = append(all, s)
	}
	return all, nil
}

func newServer(e tools.Entry, folder string, getenv func(string) string, log *slog.Logger) (*Server, error) {
	m, prefix := *e.MCP, ""
	if e.Name != "" {
		prefix = e.Name + "_"
	}
	s := &Server{over: make(chan struct{}), moved: make(chan struct{}), log: log}
	switch {
	case len(e.Command) > 0 || e.URL != "" || len(e.Headers) > 0:
		return nil, sandbox.Errorf(sandbox.Invalid, "command, url or headers beside mcp").WithHint("write mcp: {command: […]} or mcp: {url: …, headers: {…}}")
	case e.Description != "" || e.Parameters != nil || e.Result != nil:
		return nil, sandbox.Errorf(sandbox.Invalid, "description, parameters or result beside mcp").WithHint("leave them out: the server has its own for each tool")
	case (len(m.Command) > 0) == (m.URL != ""):
		return nil, sandbox.Errorf(sandbox.Invalid, "mcp: exactly one of command and url says where the server is")
	case len(m.Command) > 0 && len(m.Headers) > 0 || m.URL != "" && len(m.Env) > 0:
		return nil, sandbox.Errorf(sandbox.Invalid, "mcp: env is for a command, and headers are for a url")
	}
	e.Name = cmp.Or(e.Name, "mcp")
	like, err := e.Tool()
	if err != nil {
		return nil, err
	}
	like.Name = prefix
	s.like = like
	env, err := tools.Expand(m.Env, getenv)
	if err != nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "mcp: env %w", err)
	}
	headers, err := tools.Expand(m.Headers, getenv)
	if err != nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "mcp: header %w", err)
	}
	if m.URL != "" {
		s.name = e.Name
		s.open, err = overHTTP(m.URL, headers)
	} else {
		s.name = cmp.Or(e.Name, filepath.Base(m.Command[0]))
		s.open = func() mcp.Transport { return &program{argv: m.Command, env: env, folder: folder, most: mostMessage} }
	}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s, err
}

// Close ends the server, and what it answers. It is idempotent.
func (s *Server) Close() error {
	s.end()
	s.begin.Do(func() { close(s.over) }) // it was never begun
	<-s.over
	return nil
}

// Tools implements [tools.Source]. A server that is not there keeps what it listed
// last; one that has never been is waited for.
func (s *Server) Tools(ctx context.Context) []sandbox.Callable {
	s.started()
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		s.mu.Lock()
		list, tried, moved := s.list, s.now != nil || s.err != nil, s.moved
		s.mu.Unlock()
		if tried {
			return list
		}
		select {
		case <-moved:
		case <-s.over:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// Err says why the server is not there; nil where it is. Errors: Unavailable.
func (s *Server) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *Server) started() { s.begin.Do(func() { go s.run(s.ctx) }) }

// run keeps the server there until ctx is done.
func (s *Server) run(ctx context.Context) {
	defer close(s.over)
	wait := firstWait
	for ctx.Err() == nil {
		began := time.Now()
		err := s.live(ctx)
		if ctx.Err() != nil {
			err = sandbox.Errorf(sandbox.Unavailable, "caisson is ending")
		} else {
			s.log.Warn("a server of tools has ended", "server", s.name, "error", err.Error())
		}
		s.set(func() {
			s.now, s.err = nil, sandbox.Errorf(sandbox.Unavailable, "the MCP server %s is not there: %w", s.name, err)
		})
		if time.Since(began) > longest {
			wait = firstWait
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, longest)
	}
}

// set changes what is known, and tells who waits for that.
func (s *Server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	close(s.moved)
	s.moved = make(chan struct{})
}

// live is one life of the server: it begins it, has it list its tools, and returns why
// it has ended.
func (s *Server) live(ctx context.Context) error {
	relist := make(chan struct{}, 1)
	client := mcp.NewClient(&mcp.Implementation{Name: "caisson", Version: "1"}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
			select {
			case relist <- struct{}{}:
			default: // it will be listed
			}
		},
	})
	starting, cancel := context.WithTimeoutCause(ctx, startTime, fmt.Errorf("it has not begun within %s", startTime))
	defer cancel()
	transport := s.open()
	session, err := client.Connect(starting, transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		return because(starting, transport, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- session.Wait() }() // it ends with the session
	defer func() {
		_ = session.Close() // why it ends is known
		<-ended
	}()
	if err := s.relist(starting, session); err != nil {
		return because(starting, transport, err)
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-ended:
			ended <- err
			if err == nil {
				err = errors.New("it has ended")
			}
			return because(ctx, transport, err)
		case <-relist:
			listing, cancel := context.WithTimeoutCause(ctx, startTime, fmt.Errorf("it has not listed its tools within %s", startTime))
			err := s.relist(listing, session)
			if err != nil {
				err = because(listing, transport, err)
			}
			if cancel(); err != nil {
				return err
			}
		}
	}
}

// because is why a server's life has ended, in its own words where it said some.
func because(ctx context.Context, transport mcp.Transport, err error) error {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if p, ok := transport.(*program); ok {
		if said := p.lastWords(); said != "" {
			return fmt.Errorf("%w: %s", err, said)
		}
	}
	return err
}

// there is the session of a tool that is listed now. It waits some time for a server
// that is not there. Errors: NotFound, Conflict, Unavailable, and ctx's.
func (s *Server) there(ctx context.Context, t sandbox.Tool) (*mcp.ClientSession, string, error) {
	s.started()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		s.mu.Lock()
		now, is, moved, why := s.now, s.has[t.Name], s.moved, s.err
		s.mu.Unlock()
		switch {
		case now == nil:
		case is.name == "":
			return nil, "", sandbox.Errorf(sandbox.NotFound, "there is no tool %q any more", t.Name).WithHint("its server lists others now: run the program again")
		case string(is.tool.Parameters) != string(t.Parameters) || string(is.tool.Result) != string(t.Result):
			return nil, "", sandbox.Errorf(sandbox.Conflict, "tool %s takes or answers something else now", t.Name).WithHint("run the program again")
		default:
			return now, is.name, nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return nil, "", ctx.Err()
		case <-s.over:
			return nil, "", sandbox.Errorf(sandbox.Unavailable, "tool %s: caisson is ending", t.Name)
		case <-late.C:
			return nil, "", sandbox.Errorf(sandbox.Unavailable, "tool %s: %w", t.Name, cmp.Or(why, errors.New("its server has not begun yet")))
		}
	}
}

// Package mcp is the face for agents: [api.Service] as a server of the Model
// Context Protocol, over a pair of streams or over HTTP. It offers tools (code,
// commands, shells, sessions, files, changes, tests, policy) and resources, tells how
// a run goes, and has the client's user asked where policy asks. It decides nothing:
// who calls is the context's [sandbox.Caller], and the service says what they may.
//
// docs/mcp.md is for its users.
package mcp

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/api/exercise"
	"github.com/caisson-dev/caisson/sandbox"
)

// Service is what the tools and resources need of caisson.
type Service interface {
	exercise.Service
	api.Snapshots
	api.Shells
	api.Workspaces
	api.Changes
	api.Policy
	api.Audit
}

// Config says what is served. Service is required.
type Config struct {
	Service Service
	Version string
	// Approve says what becomes of what policy asks about. "" asks the client's user
	// where the client can, and else leaves the question in the queue.
	Approve sandbox.ApproveMode
	// Log gets what goes wrong with connections; nil discards.
	Log *slog.Logger
}

// Bounds of what is kept and said.
const (
	mostMessage = 64 << 20          // of one message, in bytes
	mostKept    = 128 * sandbox.MiB // of outputs that were cut
	mostOutput  = 16 * sandbox.MiB  // of each stream of a run
)

// Server speaks the protocol. Its methods are safe for concurrent use.
type Server struct {
	cfg   Config
	svc   Service
	mcp   *mcp.Server
	shelf shelf
	calls calls
}

// versions are those of the protocol whose server may ask its client while a call is
// being answered, which is how approvals are asked for. Clients of later ones have
// to know these too.
var versions = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

const instructions = `Runs code and commands in isolated sandboxes, judged by a policy first. run_code without a session is a sandbox of its own, gone afterwards; ` +
	`for work over several calls make a session, whose workspace stays. status says what came of a run: success, error (it failed, or could not be run) or ` +
	`rejected (nothing ran: read why, and do not try to get around it). Long output is cut; the resource that is linked has all of it.`

// New checks a Config and starts nothing. Errors: Invalid.
func New(cfg Config) (*Server, error) {
	if cfg.Service == nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "mcp: a service is required")
	}
	if err := cfg.Approve.Check(); err != nil {
		return nil, err
	}
	if cfg.Approve == sandbox.ApproveDefault {
		cfg.Approve = sandbox.ApproveLater
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{cfg: cfg, svc: cfg.Service, shelf: shelf{most: mostKept}}
	s.mcp = mcp.NewServer(&mcp.Implementation{Name: "caisson", Title: "caisson", Version: cfg.Version}, &mcp.ServerOptions{
		Instructions: instructions, Capabilities: &mcp.ServerCapabilities{}, SupportedProtocolVersions: versions,
	})
	for _, add := range []func(*Server){runTools, sessionTools, fileTools, changeTools, judgeTools, resources} {
		add(s)
	}
	s.mcp.AddReceivingMiddleware(s.calls.middleware)
	return s, nil
}

// Run speaks with one client until it closes in, or ctx is done, which closes the
// server. What runs for the client ends with it; sessions stay.
func (s *Server) Run(ctx context.Context, in io.Reader, out io.Writer) error {
	defer context.AfterFunc(ctx, s.calls.close)()
	err := s.mcp.Run(ctx, &mcp.IOTransport{Reader: io.NopCloser(in), Writer: nopCloser{out}, MaxLineLength: mostMessage})
	if errors.Is(err, io.EOF) || ctx.Err() != nil {
		return nil
	}
	return err
}

type nopCloser struct{ io.Writer }

// Close leaves the stream to whoever opened it.
func (nopCloser) Close() error { return nil }

// seconds is a time in a tool's arguments; 0 is not given.
func seconds(s float64) sandbox.Duration { return sandbox.Duration(s * float64(time.Second)) }

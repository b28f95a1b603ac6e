package scanner

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/policy/facts"
	"github.com/caisson-dev/caisson/sandbox"
)

// Config says how scanners are run. Zero fields mean the defaults.
type Config struct {
	// Path of caisson-scan; see [Find] where empty.
	Path string
	// Tables are what the extractors know; Encoded is the same, encoded, which
	// goes before. One of them is required.
	Tables  *facts.Tables
	Encoded []byte
	Limits  facts.Limits
	// Require is the least lockdown; [Filtered] where 0.
	Require Lockdown
	// Size is how many scan at once; the number of CPUs where 0.
	Size int
	// Idle is how many processes wait for their owners to come back; 8, or Size
	// where that is more, where 0. One takes about ten times as long to start as
	// to scan a short text.
	Idle int
	// Requests and Bytes are after how much a process is replaced: 2000 and
	// 64 MiB where 0.
	Requests int
	Bytes    int
	// Start bounds the start of a process that has a processor to itself; 2 s
	// where 0. One that others keep from it may take [facts.Patience] times as long.
	Start time.Duration
}

// Pool is a pool of scanner processes. It is safe for concurrent use. Close
// ends all processes.
type Pool struct {
	c      Config
	tables []byte // all processes get the same
	slots  chan struct{}

	mu     sync.Mutex
	idle   []*process
	closed bool
}

// Find gives the path of caisson-scan: CAISSON_SCAN, beside this program, or in
// libexec beside its folder. Its error is NotFound.
func Find() (string, error) {
	if p := os.Getenv("CAISSON_SCAN"); p != "" {
		return p, nil
	}
	self, err := os.Executable()
	if err == nil {
		dir := filepath.Dir(self)
		for _, p := range []string{filepath.Join(dir, "caisson-scan"), filepath.Join(dir, "..", "libexec", "caisson-scan"), filepath.Join(dir, "..", "libexec", "caisson", "caisson-scan")} {
			if s, err := os.Stat(p); err == nil && s.Mode().IsRegular() && s.Mode()&0o111 != 0 {
				return p, nil
			}
		}
	}
	if p, err := exec.LookPath("caisson-scan"); err == nil {
		return p, nil
	}
	return "", sandbox.Errorf(sandbox.NotFound, "caisson-scan is not beside caisson, not in libexec, not in PATH").WithHint("set CAISSON_SCAN to its path, or run `make build`")
}

// New makes a pool. It starts nothing.
func New(c Config) (*Pool, error) {
	if c.Tables == nil && c.Encoded == nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "scanner: no tables given")
	}
	if c.Path == "" {
		p, err := Find()
		if err != nil {
			return nil, err
		}
		c.Path = p
	}
	if c.Require == 0 {
		c.Require = Filtered
	}
	if c.Size <= 0 {
		c.Size = runtime.NumCPU()
	}
	if c.Idle <= 0 {
		c.Idle = max(c.Size, 8)
	}
	if c.Requests <= 0 {
		c.Requests = 2000
	}
	if c.Bytes <= 0 {
		c.Bytes = 64 << 20
	}
	if c.Start <= 0 {
		c.Start = 2 * time.Second
	}
	if c.Encoded == nil {
		var err error
		if c.Encoded, err = c.Tables.MarshalBinary(); err != nil {
			return nil, sandbox.Errorf(sandbox.Internal, "scanner: encode the tables: %w", err)
		}
	}
	return &Pool{c: c, tables: c.Encoded, slots: make(chan struct{}, c.Size)}, nil
}

// Warm starts one process, so that the first request need not wait for it, and
// reports what lockdown it reached.
func (p *Pool) Warm(ctx context.Context) (Ready, error) {
	pr, err := start(ctx, p.c, p.tables)
	if err != nil {
		return Ready{}, err
	}
	p.put(pr)
	return pr.ready, nil
}

// Scan gives the facts of a text. Any error means that there are none; its
// kind is TimedOut where the time was over, Exhausted where the text is too
// long, Unavailable where no scanner could be started, Internal otherwise.
func (p *Pool) Scan(ctx context.Context, r facts.Request) (*facts.Document, error) {
	if len(r.Code) > MaxSource {
		return nil, sandbox.Errorf(sandbox.Exhausted, "the source has %d bytes, at most %d are scanned", len(r.Code), MaxSource)
	}
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, sandbox.Errorf(sandbox.TimedOut, "wait for a scanner: %w", context.Cause(ctx))
	}
	defer func() { <-p.slots }()
	pr, err := p.take(ctx, r.Owner)
	if err != nil {
		return nil, err
	}
	doc, err := pr.scan(ctx, r)
	if err != nil {
		pr.kill()
		return nil, err
	}
	if pr.requests >= p.c.Requests || pr.bytes >= p.c.Bytes {
		pr.kill()
		return doc, nil
	}
	p.put(pr)
	return doc, nil
}

// take gives an idle process of this owner, or one that has had none, or a
// fresh one. One that served somebody else is ended.
func (p *Pool) take(ctx context.Context, owner string) (*process, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, sandbox.Errorf(sandbox.Unavailable, "the scanner is closed")
	}
	var found, stale *process
	for i := len(p.idle) - 1; i >= 0 && found == nil; i-- {
		if pr := p.idle[i]; pr.requests == 0 || pr.owner == owner {
			found = pr
			p.idle = append(p.idle[:i], p.idle[i+1:]...)
		}
	}
	if found == nil && len(p.idle) >= p.c.Idle {
		stale, p.idle = p.idle[0], p.idle[1:]
	}
	p.mu.Unlock()
	if stale != nil {
		stale.kill()
	}
	if found == nil {
		var err error
		if found, err = start(ctx, p.c, p.tables); err != nil {
			return nil, err
		}
	}
	found.owner = owner
	return found, nil
}

func (p *Pool) put(pr *process) {
	p.mu.Lock()
	if !p.closed && len(p.idle) < p.c.Idle {
		p.idle = append(p.idle, pr)
		pr = nil
	}
	p.mu.Unlock()
	if pr != nil {
		pr.kill()
	}
}

// Close ends all idle processes; those that scan end with their request. It
// may be called twice.
func (p *Pool) Close() error {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = nil, true
	p.mu.Unlock()
	for _, pr := range idle {
		pr.kill()
	}
	return nil
}

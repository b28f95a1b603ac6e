package mcp

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// How often a client that waits is told that its run goes on: when something was
// put out, and when nothing was.
const (
	toldSoon = 250 * time.Millisecond
	toldIdle = 5 * time.Second
)

// progress tells a client how a run goes: how long, how much was put out, and the
// last line of it.
type progress struct {
	session *mcp.ServerSession
	token   any
	begun   time.Time
	news    chan struct{}

	mu   sync.Mutex
	size int64
	line string // the newest that is whole
	part strings.Builder
}

// follow begins to tell whoever has asked for it. done ends that, and waits for it.
// Its writers take the run's output.
func follow(ctx context.Context, req *mcp.CallToolRequest) (stdout, stderr io.Writer, done func()) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return nil, nil, func() {}
	}
	p := &progress{session: req.Session, token: token, begun: time.Now(), news: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(ctx)
	var telling sync.WaitGroup
	telling.Go(func() { p.tell(ctx) })
	return p, p, func() {
		cancel()
		telling.Wait()
	}
}

// Write implements [io.Writer].
func (p *progress) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.size += int64(len(b))
	for _, c := range strings.ToValidUTF8(string(b[max(0, len(b)-4096):]), "\uFFFD") {
		if c != '\n' && c != '\r' {
			if p.part.Len() < 200 {
				p.part.WriteRune(c)
			}
			continue
		}
		if p.part.Len() > 0 {
			p.line = p.part.String()
			p.part.Reset()
		}
	}
	select {
	case p.news <- struct{}{}:
	default: // it is told that there is something already
	}
	return len(b), nil
}

func (p *progress) tell(ctx context.Context) {
	idle := time.NewTicker(toldIdle)
	defer idle.Stop()
	for n := 1; ; n++ {
		p.mu.Lock()
		message := fmt.Sprintf("%s, %d bytes of output", time.Since(p.begun).Round(time.Second), p.size)
		if p.line != "" {
			message += ": " + p.line
		}
		p.mu.Unlock()
		// A client that cannot be told is gone, which ends the run by its context.
		_ = p.session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: p.token, Progress: float64(n), Message: message})
		soon := time.NewTimer(toldSoon)
		select {
		case <-soon.C:
		case <-ctx.Done():
			soon.Stop()
			return
		}
		select {
		case <-p.news:
		case <-idle.C:
		case <-ctx.Done():
			return
		}
	}
}

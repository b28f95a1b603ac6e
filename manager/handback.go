package manager

import (
	"context"
	"io"
	"regexp"
	"sync"

	"github.com/caisson-dev/caisson/manager/box"
	"github.com/caisson-dev/caisson/sandbox"
)

// prompted is a run in a shell that is handed back at its prompts. Between two calls
// it goes on, and nobody waits for it.
type prompted struct {
	in     *io.PipeWriter
	cancel context.CancelFunc
	done   chan struct{} // closed once it has ended: res and err hold then
	res    sandbox.Result
	err    error

	mu   sync.Mutex
	id   sandbox.ID
	keep int64
	out  [2]promptedOutput
	more chan struct{} // closed, and made anew, when something has come
}

// promptedOutput is one of its outputs, since it was handed back last.
type promptedOutput struct {
	p    *prompted
	kept *capture
	tail []byte    // for patterns
	to   io.Writer // of who waits; nil is nobody
}

// Write implements [io.Writer].
func (o *promptedOutput) Write(b []byte) (int, error) {
	o.p.mu.Lock()
	defer o.p.mu.Unlock()
	_, _ = o.kept.Write(b) // it passes nothing on, and never fails
	o.tail = append(o.tail, b...)
	if n := len(o.tail) - mostAsked; n > 0 {
		o.tail = o.tail[n:]
	}
	close(o.p.more)
	o.p.more = make(chan struct{})
	if o.to == nil {
		return len(b), nil
	}
	return o.to.Write(b)
}

// join has who waits get the outputs: what came meanwhile, and what comes.
func (p *prompted) join(streams sandbox.Streams) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, to := range [2]io.Writer{streams.Stdout, streams.Stderr} {
		o := &p.out[i]
		if o.to = to; to == nil {
			continue
		}
		if b, _ := o.kept.bytes(); len(b) > 0 {
			if _, err := to.Write(b); err != nil {
				return err
			}
		}
	}
	return nil
}

// tell puts into a Result what came since the last one.
func (p *prompted) tell(res *sandbox.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	res.Stdout, res.Truncated.Stdout = p.out[0].kept.bytes()
	res.Stderr, res.Truncated.Stderr = p.out[1].kept.bytes()
	for i := range p.out {
		p.out[i] = promptedOutput{p: p, kept: newCapture(nil, p.keep)}
	}
}

// prompt finds a pattern that one of the outputs shows.
func (p *prompted) prompt(patterns []string) (which string, more <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, text := range patterns {
		re := regexp.MustCompile(text) // checked before
		if re.Match(p.out[0].tail) || re.Match(p.out[1].tail) {
			return text, nil
		}
	}
	return "", p.more
}

// runPrompted begins a run that is handed back, or goes on with one, and waits for its
// next prompt or its end.
func (m *Manager) runPrompted(ctx context.Context, v sandbox.SessionView, e sandbox.ExecRecord, b *box.Box, run sandbox.ShellRun, streams sandbox.Streams) (sandbox.Result, error) {
	m.mu.Lock()
	p := m.prompts[e.ID]
	m.mu.Unlock()
	switch {
	case run.Continue && p == nil:
		return sandbox.Result{}, sandbox.Errorf(sandbox.Conflict, "nothing in shell %s waits for input", e.Shell.Name).
			WithHint("run a text with patterns at which it is handed back, and go on with that")
	case !run.Continue:
		p = m.beginPrompted(ctx, v, e, b, run, streams)
	}
	if err := p.join(streams); err != nil {
		p.cancel()
		<-p.done
		return sandbox.Result{}, err
	}
	if run.Continue {
		p.enter(ctx, run.Text)
	}
	for {
		which, more := p.prompt(run.Until)
		if which != "" {
			res := sandbox.Result{Session: v.Name, Language: e.Shell.Kind.Language(), Sandbox: b.ID, Shell: &sandbox.ShellState{Name: e.Shell.Name, Prompt: which}}
			p.mu.Lock()
			res.ExecID = p.id
			p.mu.Unlock()
			p.tell(&res)
			return res, nil
		}
		select {
		case <-more:
			continue
		case <-p.done:
		case <-ctx.Done():
			p.cancel()
			<-p.done
		}
		if which, _ := p.prompt(run.Until); which != "" && ctx.Err() == nil {
			continue // it was shown before the end
		}
		m.mu.Lock()
		delete(m.prompts, e.ID)
		m.mu.Unlock()
		res := p.res
		p.tell(&res)
		return res, p.err
	}
}

// beginPrompted begins one. It ends with its shell, its own time limit, or the
// manager.
func (m *Manager) beginPrompted(ctx context.Context, v sandbox.SessionView, e sandbox.ExecRecord, b *box.Box, run sandbox.ShellRun, streams sandbox.Streams) *prompted {
	r, w := io.Pipe()
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p := &prompted{in: w, cancel: cancel, done: make(chan struct{}), more: make(chan struct{}), keep: int64(run.WithDefaults().KeepOutput)}
	for i := range p.out {
		p.out[i] = promptedOutput{p: p, kept: newCapture(nil, p.keep)}
	}
	var stdin io.Reader = r
	if streams.Stdin != nil {
		stdin = io.MultiReader(streams.Stdin, r)
	}
	m.mu.Lock()
	m.prompts[e.ID] = p
	m.mu.Unlock()
	m.tasks.Go(func() {
		defer close(p.done)
		defer cancel()
		told := func(id sandbox.ID) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.id = id
		}
		p.res, p.err = m.runShell(running, v, e, b, run, sandbox.Streams{Stdin: stdin, Stdout: &p.out[0], Stderr: &p.out[1], Artifact: streams.Artifact, Local: streams.Local}, told)
		_ = r.Close() // never fails
	})
	return p
}

// enter writes to its input, as far as it takes it before its end.
func (p *prompted) enter(ctx context.Context, text string) {
	typed := make(chan struct{})
	go func() {
		defer close(typed)
		_, _ = io.WriteString(p.in, text) // it fails once the run has ended, which is told
	}()
	select {
	case <-typed:
	case <-p.done:
	case <-ctx.Done():
	}
}

package client

import "sync"

// parting counts last words that are on their way to the agent.
type parting struct {
	mu    sync.Mutex
	words int
	over  chan struct{} // set by who waits; closed once words is 0
}

// say has say called on a goroutine of its own, which wait then waits for. What
// comes after wait is said all the same.
func (p *parting) say(say func()) {
	p.mu.Lock()
	p.words++
	p.mu.Unlock()
	go func() {
		say()
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.words--; p.words == 0 && p.over != nil {
			close(p.over)
			p.over = nil
		}
	}()
}

// wait returns a channel that is closed once nothing is on its way.
func (p *parting) wait() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	over := p.over
	if over == nil {
		over = make(chan struct{})
		if p.words == 0 {
			close(over)
			return over
		}
		p.over = over
	}
	return over
}

// Done is closed once the connection is.
func (c *Client) Done() <-chan struct{} { return c.session.CloseChan() }

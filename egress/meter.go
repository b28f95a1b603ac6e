package egress

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/caisson-dev/caisson/sandbox"
)

// Meter bounds what the ways that share it move together. It is safe for concurrent
// use, and made by [NewMeter].
type Meter struct {
	whose  string
	limits sandbox.NetworkLimits
	now    func() time.Time
	window time.Duration // after which bytes are counted anew; 0 is never
	places chan struct{} // nil is no bound
	rate   *rate.Limiter // nil is no bound

	mu    sync.Mutex
	moved sandbox.Bytes
	since time.Time
}

// NewMeter returns a meter. whose is for refusals. Bytes are counted anew after a
// window, 0 is never. now is the clock; nil is [time.Now].
func NewMeter(whose string, limits sandbox.NetworkLimits, window time.Duration, now func() time.Time) *Meter {
	if now == nil {
		now = time.Now
	}
	m := &Meter{whose: whose, limits: limits, window: window, now: now, since: now()}
	if limits.Connections > 0 {
		m.places = make(chan struct{}, limits.Connections)
	}
	if limits.Rate > 0 {
		m.rate = rate.NewLimiter(rate.Limit(limits.Rate), int(min(limits.Rate, 1<<30)))
	}
	return m
}

// enter waits until one more connection may be open, until leave.
func (m *Meter) enter(ctx context.Context) (leave func(), err error) {
	if err := m.spent(0); err != nil {
		return nil, err
	}
	if m.places == nil {
		return func() {}, nil
	}
	select {
	case m.places <- struct{}{}:
		return func() { <-m.places }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// spent counts bytes, and refuses once there were too many.
func (m *Meter) spent(n int) error {
	if m.limits.Bytes == 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := m.now(); m.window > 0 && now.Sub(m.since) > m.window {
		m.since, m.moved = now, 0
	}
	if m.moved += sandbox.Bytes(n); m.moved >= m.limits.Bytes {
		return refuse("%s has moved all of the %s that it may", m.whose, m.limits.Bytes.Human())
	}
	return nil
}

// pass counts bytes that have passed, and waits as long as the rate asks for.
func (m *Meter) pass(ctx context.Context, n int) error {
	if err := m.spent(n); err != nil {
		return err
	}
	for m.rate != nil && n > 0 {
		step := min(n, m.rate.Burst())
		if err := m.rate.WaitN(ctx, step); err != nil {
			return err
		}
		n -= step
	}
	return nil
}

// pass has all meters count bytes that have passed.
func (w *Way) pass(ctx context.Context, n int) error {
	for _, m := range w.cfg.Meters {
		if err := m.pass(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// enter takes a place of each meter.
func (w *Way) enter(ctx context.Context) (leave func(), err error) {
	var taken []func()
	leave = func() {
		for _, l := range taken {
			l()
		}
	}
	for _, m := range w.cfg.Meters {
		l, err := m.enter(ctx)
		if err != nil {
			leave()
			return nil, err
		}
		taken = append(taken, l)
	}
	return leave, nil
}

package pool

import (
	"context"
	"errors"
	"time"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/manager/box"
	"github.com/caisson-dev/caisson/sandbox"
)

// Run keeps the pool filled until ctx is done, and destroys then what is ready.
// It is called once. From then on nothing is taken from the pool.
func (p *Pool) Run(ctx context.Context) {
	beat := time.NewTicker(p.cfg.Beat)
	defer beat.Stop()
	var later *time.Timer
	for ctx.Err() == nil {
		if again := p.fill(ctx); again > 0 {
			if later != nil {
				later.Stop()
			}
			later = time.AfterFunc(again, p.wake)
		}
		select {
		case <-ctx.Done():
		case <-p.kick:
		case <-beat.C:
			p.look(ctx)
		}
	}
	if later != nil {
		later.Stop()
	}
	p.mu.Lock()
	p.closed = true
	for _, s := range p.all {
		for _, e := range s.ready {
			p.endLocked(e)
		}
		s.ready = nil
	}
	p.mu.Unlock()
	p.tasks.Wait()
}

// fill begins to make what is missing, and says when to look again; 0 is when
// something has happened.
func (p *Pool) fill(ctx context.Context) (again time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.cfg.Now()
	p.trimLocked(now)
	for p.making < p.cfg.Workers {
		s, pause := p.emptiestLocked(now)
		if s == nil {
			if p.needed = (time.Time{}); p.making > 0 {
				return 0
			}
			return pause
		}
		if p.needed.IsZero() {
			p.needed = now
		}
		if calm := p.asked.Add(p.cfg.Calm).Sub(now); calm > 0 && now.Sub(p.needed) < p.cfg.Hurry {
			return calm // whoever asks right now has the machine to itself
		}
		p.making++
		s.making++
		p.tasks.Go(func() { p.make(ctx, s) })
	}
	return 0
}

// emptiestLocked is the shelf that lacks the largest part of what it is to have, and
// else when one that pauses is due.
func (p *Pool) emptiestLocked(now time.Time) (emptiest *shelf, pause time.Duration) {
	most := 0.0
	for _, s := range p.all {
		size := s.size(now, p.cfg.Idle)
		missing := size - len(s.ready) - s.making
		if missing <= 0 {
			continue
		}
		if left := s.retry.Sub(now); left > 0 {
			if pause == 0 || left < pause {
				pause = left
			}
			continue
		}
		if part := float64(missing) / float64(size); part > most {
			emptiest, most = s, part
		}
	}
	return emptiest, pause
}

// make makes one sandbox for a shelf.
func (p *Pool) make(ctx context.Context, s *shelf) {
	inst, image, err := p.cfg.Make(ctx, s.kind)
	defer p.wake()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.making--
	s.making--
	if err != nil {
		if ctx.Err() == nil {
			pause := s.fail(err, p.cfg.Now())
			p.cfg.Log.Warn("a sandbox of the pool cannot be made", "language", s.kind.Language, "runtime", s.kind.Runtime, "error", err, "again_in", pause)
		}
		return
	}
	s.failures, s.problem = 0, nil
	e := &entry{kind: s.kind, instance: inst}
	e.kind.Image = image.ID
	if p.closed || s.dropped {
		p.endLocked(e)
		return
	}
	s.ready = append(s.ready, e) // one too many is trimmed
}

// trimLocked ends what is ready beyond what is to be, the oldest first, and drops
// shelves that are empty for good.
func (p *Pool) trimLocked(now time.Time) {
	kept := p.all[:0]
	for _, s := range p.all {
		size := s.size(now, p.cfg.Idle)
		for len(s.ready) > size {
			p.endLocked(s.ready[0])
			s.ready = s.ready[1:]
		}
		if size > 0 || s.making > 0 {
			kept = append(kept, s)
		}
	}
	clear(p.all[len(kept):])
	p.all = kept
}

// endLocked destroys a sandbox in the background, few at a time. What fails is swept
// once this process is gone.
func (p *Pool) endLocked(e *entry) {
	p.tasks.Go(func() {
		p.work <- struct{}{}
		defer func() { <-p.work }()
		ctx, cancel := context.WithTimeout(context.Background(), box.EndPatience)
		defer cancel()
		if err := e.instance.Destroy(ctx); err != nil {
			p.cfg.Log.Warn("a sandbox of the pool cannot be removed", "sandbox", e.instance.Handle().ID, "error", err)
		}
	})
}

// look asks each agent whether it is there, which has it wait on, and gives up those
// that are not.
func (p *Pool) look(ctx context.Context) {
	p.mu.Lock()
	var all []*entry
	for _, s := range p.all {
		all = append(all, s.ready...)
	}
	p.mu.Unlock()
	for _, e := range all {
		if err := p.ping(ctx, e); err != nil && ctx.Err() == nil {
			p.giveUp(e, err)
		}
	}
}

// pingPatience bounds how long an agent that does nothing may take to answer.
const pingPatience = 10 * time.Second

// ping hears of an agent: it refuses who neither claims it nor has.
func (p *Pool) ping(ctx context.Context, e *entry) error {
	ctx, cancel := context.WithTimeout(ctx, pingPatience)
	defer cancel()
	conn, err := e.instance.Dial(ctx)
	if err != nil {
		return err
	}
	c, err := client.New(ctx, conn, client.Config{Secret: make([]byte, 32)})
	switch {
	case err == nil:
		_ = c.Close()
		return sandbox.Errorf(sandbox.Conflict, "its agent takes anybody")
	case errors.Is(err, sandbox.Conflict):
		return nil // nobody has claimed it
	}
	return err
}

// giveUp ends a sandbox that is not what it was, unless somebody took it.
func (p *Pool) giveUp(e *entry, why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.all {
		for i := range s.ready {
			if s.ready[i] == e {
				s.ready = append(s.ready[:i:i], s.ready[i+1:]...)
				p.endLocked(e)
				p.cfg.Log.Info("a sandbox of the pool is given up", "sandbox", e.instance.Handle().ID, "error", why)
				return
			}
		}
	}
}

package service

import (
	"context"
	"errors"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// Sandboxes of sessions stay when nothing runs in them, and so could hold up for ever
// what waits for room: many sessions that each wait for their second language, say.
// The one that was idle the longest goes then; its session makes another at its next
// use, and keeps its workspace.

// endPatience bounds how long the end of one may take.
const endPatience = time.Minute

// makeRoom begins to end an idle sandbox for one who has waited for a while: one of
// its own owner's, or of anybody's where all together have too much. One is ended at
// a time. The lock of the owner's share is held.
func (s *Service) makeRoom(v *views, w *waiter) {
	if time.Since(w.since) < roomAfter {
		return
	}
	select {
	case s.ending <- struct{}{}:
	default:
		return // one is going
	}
	among := v.own[w.owner]
	if v.all != nil {
		among = nil
		for _, list := range v.all {
			among = append(among, list...)
		}
	}
	s.tasks.Go(func() {
		defer s.quotas.wake()
		defer func() { <-s.ending }()
		ctx, cancel := context.WithTimeout(context.Background(), endPatience)
		defer cancel()
		if err := s.endIdle(ctx, among); err != nil {
			s.cfg.Log.Warn("an idle sandbox cannot be ended", "error", err)
		}
	})
}

// endIdle ends the sandbox that was idle the longest.
func (s *Service) endIdle(ctx context.Context, among []sandbox.SessionView) error {
	var oldest *sandbox.SandboxRecord
	var last time.Time
	var of sandbox.SessionView
	for _, seen := range among {
		v, err := s.cfg.Manager.Session(ctx, seen.Name) // and what has ended in it
		if errors.Is(err, sandbox.NotFound) {
			continue
		}
		if err != nil {
			return err
		}
		for i := range v.Sandboxes {
			b := &v.Sandboxes[i]
			used, idle := usedLast(v, b)
			if idle && s.quotas.of(v.Owner).unused(boxKey(v.Name, b.Language)) && (oldest == nil || used.Before(last)) {
				oldest, last, of = b, used, v
			}
		}
	}
	if oldest == nil {
		return nil
	}
	sh, key := s.quotas.of(of.Owner), boxKey(of.Name, oldest.Language)
	if !sh.goAway(key) {
		return nil
	}
	defer sh.goAway("")
	_, err := s.cfg.Manager.EndIdle(ctx, of.Name, oldest.ID, "it was idle, and others needed the room")
	return err
}

// usedLast is when a sandbox was used last, and whether nothing runs in it.
func usedLast(v sandbox.SessionView, b *sandbox.SandboxRecord) (last time.Time, idle bool) {
	last = b.Created
	for _, e := range v.Execs {
		if e.Sandbox != b.ID {
			continue
		}
		if e.Ended.IsZero() {
			return last, false
		}
		if e.Ended.After(last) {
			last = e.Ended
		}
	}
	return last, b.State == sandbox.StateReady
}

// unused reports whether nobody was let in to a sandbox.
func (sh *share) unused(key string) bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.users[key] == 0
}

// goAway marks a sandbox that is being ended, into which nobody is let meanwhile. It
// is false for one that somebody uses. "" is none.
func (sh *share) goAway(key string) bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.users[key] > 0 {
		return false
	}
	sh.goes = key
	return true
}

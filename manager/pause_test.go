package manager_test

import (
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/sandbox"
)

// TestPausedLong freezes a sandbox for longer than its idle time: that does not
// count.
func TestPausedLong(t *testing.T) {
	t.Parallel()
	const idle = 15 * time.Second // the rest of which is enough on a busy machine
	for name, freeze := range map[string]func(t *testing.T, p *place, id sandbox.ID, thaw bool) error{
		"by caisson": func(t *testing.T, p *place, _ sandbox.ID, thaw bool) error {
			if thaw {
				return p.ResumeSession(t.Context(), "work")
			}
			return p.PauseSession(t.Context(), "work")
		},
		"by a stranger": func(t *testing.T, p *place, id sandbox.ID, thaw bool) error {
			if thaw {
				return p.kit.API.ContainerUnpause(t.Context(), enginetest.ContainerName(id))
			}
			return p.kit.API.ContainerPause(t.Context(), enginetest.ContainerName(id))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.create(t, sandbox.SessionOptions{Name: "work", Idle: sandbox.Duration(idle)})
			id := sh(t, p.Manager, "work", "true").Sandbox
			if err := freeze(t, p, id, false); err != nil {
				t.Fatal(err)
			}
			time.Sleep(idle + time.Second)
			if err := freeze(t, p, id, true); err != nil {
				t.Fatal(err)
			}
			if res := sh(t, p.Manager, "work", "true"); res.Replaced || res.Sandbox != id {
				t.Error("it ended while it was frozen")
			}
		})
	}
}

// TestPauseBesideOneThatEnded pauses and resumes a session of which one sandbox
// has ended: the other is, and the next use of the ended one makes it anew.
func TestPauseBesideOneThatEnded(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "python")
	p.create(t, sandbox.SessionOptions{Name: "work"})
	python := func() sandbox.Result {
		t.Helper()
		res, err := p.ExecIn(t.Context(), "work", sandbox.Run{Language: "python", Code: "1"}, sandbox.Streams{})
		if err != nil || res.Code != 0 {
			t.Fatalf("%+v, %v", res, err)
		}
		return res
	}
	lasts := sh(t, p.Manager, "work", "true").Sandbox
	end := func(id sandbox.ID) {
		t.Helper()
		if err := p.kit.API.ContainerRemove(t.Context(), enginetest.ContainerName(id), container.RemoveOptions{Force: true}); err != nil {
			t.Fatal(err)
		}
	}
	end(python().Sandbox)
	if err := p.PauseSession(t.Context(), "work"); err != nil {
		t.Fatalf("pause: %v", err)
	}
	if err := p.ResumeSession(t.Context(), "work"); err != nil {
		t.Fatalf("resume: %v", err)
	}
	again := python()
	if !again.Replaced {
		t.Error("nothing says that the sandbox is another one")
	}
	if err := p.PauseSession(t.Context(), "work"); err != nil {
		t.Fatalf("pause: %v", err)
	}
	end(again.Sandbox)
	if err := p.ResumeSession(t.Context(), "work"); err != nil {
		t.Fatalf("resume beside one that ended while it was paused: %v", err)
	}
	if res := sh(t, p.Manager, "work", "true"); res.Replaced || res.Sandbox != lasts {
		t.Error("the other sandbox was replaced")
	}
}

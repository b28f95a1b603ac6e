package service_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/service"
)

// long is how long a request may wait that is to get in.
const long = sandbox.Duration(5 * time.Minute)

func echo() sandbox.Run { return sandbox.Run{Language: "shell", Command: []string{"echo"}} }

// hold has an owner run n programs that do not end until stop is called, and returns
// once they run. Who is refused is a failure.
func hold(t *testing.T, p place, owner string, n, running int) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(as(t.Context(), owner, ""))
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			if _, err := p.Run(ctx, sandbox.Run{Language: "shell", Command: []string{"sleep", "600"}}, sandbox.Streams{}); errors.Is(err, sandbox.Exhausted) {
				t.Errorf("%s: %v", owner, err)
			}
		})
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		run := 0
		for _, l := range p.manager.Live() {
			if l.Owner == owner && len(l.Execs) > 0 {
				run++
			}
		}
		if run == running {
			break
		}
		if run > running || time.Now().After(end) {
			t.Fatalf("%d of %s run, not %d", run, owner, running)
		}
	}
	return func() { cancel(); all.Wait() }
}

// TestLine has requests over a quota wait until there is room, and no more than may
// run at once.
func TestLine(t *testing.T) {
	t.Parallel()
	p := open(t, func(c *service.Config) {
		c.Quotas = sandbox.Quotas{Default: sandbox.Quota{Execs: 2}, Wait: long}
	})
	stop := hold(t, p, "ann", 2, 2)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if _, err := p.Run(as(t.Context(), "ann", ""), echo(), sandbox.Streams{}); err != nil {
				t.Errorf("one who waited: %v", err)
			}
		})
	}
	if _, err := p.Run(as(t.Context(), "bob", ""), echo(), sandbox.Streams{}); err != nil {
		t.Errorf("another meanwhile: %v", err)
	}
	stop()
	all.Wait()
}

// TestWaitedInVain tells who waited for nothing what to change: at the end of the
// settings' time, and of the caller's own. Who gives up is out of the line.
func TestWaitedInVain(t *testing.T) {
	t.Parallel()
	p := open(t, func(c *service.Config) {
		c.Quotas = sandbox.Quotas{Default: sandbox.Quota{Execs: 1, Memory: sandbox.GiB}, Wait: sandbox.Duration(20 * time.Millisecond)}
	})
	defer hold(t, p, "ann", 1, 1)()
	ann := as(t.Context(), "ann", "")
	if _, err := p.Run(ann, echo(), sandbox.Streams{}); !errors.Is(err, sandbox.Exhausted) || !strings.Contains(err.Error(), "it waited for") || sandbox.HintOf(err) == "" {
		t.Errorf("after the settings' time: %v", err)
	}
	large := echo()
	large.Limits.Memory = 2 * sandbox.GiB
	if _, err := p.Run(ann, large, sandbox.Streams{}); !errors.Is(err, sandbox.Exhausted) || strings.Contains(err.Error(), "it waited for") {
		t.Errorf("what there never is room for: %v", err)
	}

	p = open(t, func(c *service.Config) { c.Quotas = sandbox.Quotas{Default: sandbox.Quota{Execs: 1}, Wait: long} })
	stop := hold(t, p, "ann", 1, 1)
	short, cancel := context.WithTimeout(ann, 20*time.Millisecond)
	defer cancel()
	if _, err := p.Run(short, echo(), sandbox.Streams{}); !errors.Is(err, sandbox.Exhausted) || sandbox.HintOf(err) == "" {
		t.Errorf("after the caller's time: %v", err)
	}
	gone, giveUp := context.WithCancel(ann)
	giveUp()
	if _, err := p.Run(gone, echo(), sandbox.Streams{}); !errors.Is(err, context.Canceled) {
		t.Errorf("who gives up: %v", err)
	}
	stop()
	if _, err := p.Run(ann, echo(), sandbox.Streams{}); err != nil {
		t.Errorf("once there is room: %v", err)
	}
}

// TestTotal has all owners together stay within what there is, and one that asks for
// everything leave the others room.
func TestTotal(t *testing.T) {
	t.Parallel()
	for name, total := range map[string]sandbox.Quota{"execs": {Execs: 4}, "sandboxes": {Sandboxes: 4}, "memory": {Memory: 2 * sandbox.GiB}, "cpus": {CPUs: 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := open(t, func(c *service.Config) { c.Quotas = sandbox.Quotas{Total: total, Wait: long} })
			defer hold(t, p, "ann", 50, 3)()
			for range 20 {
				if _, err := p.Run(as(t.Context(), "bob", ""), echo(), sandbox.Streams{}); err != nil {
					t.Fatalf("another beside who asks for all: %v", err)
				}
			}
			stop := hold(t, p, "bob", 1, 1)
			short, cancel := context.WithTimeout(as(t.Context(), "eve", ""), 3*time.Second) // time to look
			defer cancel()
			if _, err := p.Run(short, echo(), sandbox.Streams{}); !errors.Is(err, sandbox.Exhausted) || !strings.Contains(err.Error(), "of all owners together") {
				t.Errorf("a fifth: %v", err)
			}
			stop()
			if _, err := p.Run(as(t.Context(), "eve", ""), echo(), sandbox.Streams{}); err != nil {
				t.Errorf("once there is room: %v", err)
			}
		})
	}
}

// TestSecondLanguage has sessions that fill the quota all want a second sandbox at
// once: each gets it, since what is idle makes room. What is in use does not.
func TestSecondLanguage(t *testing.T) {
	t.Parallel()
	p := open(t, func(c *service.Config) {
		c.Quotas = sandbox.Quotas{Default: sandbox.Quota{Sandboxes: 3}, Wait: long}
	})
	ann := as(t.Context(), "ann", "")
	names := []string{"a", "b", "c"}
	in := func(name, language string) error {
		run := echo()
		run.Language = language
		return second(p.Exec(ann, name, run, sandbox.Streams{}))
	}
	for _, name := range names {
		if _, err := p.CreateSession(ann, api.SessionOptions{Name: name, Workspace: inMemory}, sandbox.Local{}); err != nil {
			t.Fatal(err)
		}
		if err := in(name, "shell"); err != nil {
			t.Fatal(err)
		}
	}
	var all sync.WaitGroup
	for _, name := range names {
		all.Go(func() {
			if err := in(name, "python"); err != nil {
				t.Errorf("the second language of %s: %v", name, err)
			}
		})
	}
	all.Wait()
	for _, name := range names {
		if err := in(name, "shell"); err != nil {
			t.Errorf("the first language of %s again: %v", name, err)
		}
		if err := p.RemoveSession(ann, name, true); err != nil {
			t.Error(err)
		}
	}
}

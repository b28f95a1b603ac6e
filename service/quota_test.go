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

var inMemory = sandbox.Workspace{Kind: sandbox.WorkspaceTmpfs}

// TestQuotas has each owner have so much at once, whoever else has what.
func TestQuotas(t *testing.T) {
	t.Parallel()
	p := open(t, func(c *service.Config) {
		c.Quotas = sandbox.Quotas{
			Default: sandbox.Quota{Sandboxes: 2, Memory: 1100 * sandbox.MiB, CPUs: 3, Disk: 600 * sandbox.MiB},
			Owners:  map[string]sandbox.Quota{"small": {Sandboxes: 1}, "free": {}},
		}
	})
	session := func(owner, name string, l sandbox.Limits) error {
		return second(p.CreateSession(as(t.Context(), owner, ""), api.SessionOptions{Name: name, Workspace: inMemory, Limits: l}, sandbox.Local{}))
	}
	exec := func(owner, name string) error {
		return second(p.Exec(as(t.Context(), owner, ""), name, sandbox.Run{Command: []string{"echo"}}, sandbox.Streams{}))
	}
	run := func(owner string, l sandbox.Limits) error {
		return second(p.Run(as(t.Context(), owner, ""), sandbox.Run{Language: "shell", Command: []string{"echo"}, Limits: l}, sandbox.Streams{}))
	}
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, sandbox.Exhausted) || sandbox.HintOf(err) == "" {
			t.Errorf("%s: %v", what, err)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	must(session("small", "a", sandbox.Limits{}))
	must(exec("small", "a"))
	must(exec("small", "a")) // the same sandbox again
	refused("a second sandbox", run("small", sandbox.Limits{}))
	must(session("small", "b", sandbox.Limits{}))
	refused("one of another session", exec("small", "b"))
	undo := func(name string) error {
		return second(p.Undo(as(t.Context(), "small", ""), name, api.UndoOptions{Exec: sandbox.NewID()}))
	}
	refused("one to undo in", undo("b"))
	if err := undo("a"); errors.Is(err, sandbox.Exhausted) {
		t.Errorf("undo where there is a sandbox: %v", err)
	}
	must(p.RemoveSession(as(t.Context(), "small", ""), "a", true))
	must(exec("small", "b"))

	must(session("ann", "a", sandbox.Limits{Memory: 600 * sandbox.MiB, CPUs: 1}))
	must(exec("ann", "a"))
	refused("memory", run("ann", sandbox.Limits{Memory: 600 * sandbox.MiB}))
	refused("processors", run("ann", sandbox.Limits{CPUs: 2.5}))
	must(run("ann", sandbox.Limits{Memory: 400 * sandbox.MiB}))
	must(run("ann", sandbox.Limits{Memory: 400 * sandbox.MiB})) // the one before is gone
	must(session("ann", "b", sandbox.Limits{}))
	refused("disk", session("ann", "c", sandbox.Limits{}))
	must(session("ann", "c", sandbox.Limits{Workspace: 10 * sandbox.MiB}))

	for range 3 {
		must(run("free", sandbox.Limits{Memory: 8 * sandbox.GiB}))
		must(second(p.Run(t.Context(), sandbox.Run{Language: "shell", Command: []string{"echo"}, Limits: sandbox.Limits{CPUs: 9}}, sandbox.Streams{})))
	}
	for owner, names := range map[string][]string{"small": {"b"}, "ann": {"a", "b", "c"}} {
		for _, name := range names {
			must(p.RemoveSession(as(t.Context(), owner, ""), name, true))
		}
	}
}

// TestQuotaAtOnce has as many run at once as may, and no more, however many ask.
func TestQuotaAtOnce(t *testing.T) {
	t.Parallel()
	p := open(t, func(c *service.Config) { c.Quotas.Default = sandbox.Quota{Execs: 3} })
	ctx, cancel := context.WithCancel(as(t.Context(), "ann", ""))
	defer cancel()
	var mu sync.Mutex
	refused := 0
	held := make(chan struct{})
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			_, err := p.Run(ctx, sandbox.Run{Language: "shell", Command: []string{"sleep", "60"}}, sandbox.Streams{})
			if errors.Is(err, sandbox.Exhausted) {
				mu.Lock()
				if refused++; refused == 7 {
					close(held)
				}
				mu.Unlock()
			}
		})
	}
	<-held
	cancel()
	all.Wait()
	if refused != 7 {
		t.Errorf("%d of 10 were refused", refused)
	}
	if _, err := p.Run(as(t.Context(), "ann", ""), sandbox.Run{Language: "shell", Command: []string{"echo"}}, sandbox.Streams{}); err != nil {
		t.Errorf("once they have ended: %v", err)
	}
}

// TestRequestsInASecond counts each owner's requests apart.
func TestRequestsInASecond(t *testing.T) {
	t.Parallel()
	p := open(t, func(c *service.Config) { c.Quotas.Default = sandbox.Quota{Requests: 0.001} })
	for _, owner := range []string{"ann", "bob"} {
		who := sandbox.Caller{Owner: owner}
		if err := p.Allow(who); err != nil {
			t.Errorf("the first of %s: %v", owner, err)
		}
		if err := p.Allow(who); !errors.Is(err, sandbox.Exhausted) {
			t.Errorf("the second of %s: %v", owner, err)
		}
	}
	for range 10 {
		if err := p.Allow(sandbox.Caller{}); err != nil {
			t.Errorf("the local user: %v", err)
		}
	}
}

// TestQuotasOfExecutions: over a quota an execution waits, and says for what, while
// those of others go on; it runs once there is room. One that is too much by itself
// fails, since it would wait forever.
func TestQuotasOfExecutions(t *testing.T) {
	t.Parallel()
	for name, quota := range map[string]sandbox.Quota{
		"of 1 sandboxes": {Sandboxes: 1}, "of memory": {Memory: 1000 * sandbox.MiB}, "processors": {CPUs: 1.5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := open(t, func(c *service.Config) { c.Quotas = sandbox.Quotas{Owners: map[string]sandbox.Quota{"ann": quota}} })
			ann, bob := as(t.Context(), "ann", ""), as(t.Context(), "bob", "")
			if _, err := p.CreateSession(ann, api.SessionOptions{Name: "a", Workspace: inMemory, Limits: sandbox.Limits{Memory: 600 * sandbox.MiB, CPUs: 1}}, sandbox.Local{}); err != nil {
				t.Fatal(err)
			}
			if _, err := p.Exec(ann, "a", sandbox.Run{Command: []string{"echo"}}, sandbox.Streams{}); err != nil {
				t.Fatal(err)
			}
			if err := p.book.Start(t.Context(), p.Service); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = p.book.Close() }) // it is all in memory
			submit := func(ctx context.Context, l sandbox.Limits) sandbox.ID {
				t.Helper()
				e, err := p.SubmitExecution(ctx, sandbox.ExecutionOptions{Run: sandbox.Run{Language: "shell", Command: []string{"echo"}, Limits: l}}, sandbox.Local{})
				if err != nil {
					t.Fatal(err)
				}
				return e.ID
			}
			ended := func(ctx context.Context, id sandbox.ID) sandbox.Execution {
				t.Helper()
				e, err := p.Execution(ctx, id, sandbox.Duration(time.Minute))
				if err != nil {
					t.Fatal(err)
				}
				return e
			}
			large := sandbox.Limits{Memory: 600 * sandbox.MiB, CPUs: 1}
			var waiting []sandbox.ID
			for range 20 { // more than there are workers
				waiting = append(waiting, submit(ann, large))
			}
			if e := ended(bob, submit(bob, large)); e.State != sandbox.ExecutionSucceeded {
				t.Errorf("another's meanwhile: %+v", e)
			}
			for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
				e, err := p.Execution(ann, waiting[0], 0)
				if err == nil && e.State == sandbox.ExecutionQueued && strings.Contains(e.Waits, name) {
					break
				}
				if time.Since(begin) > time.Minute {
					t.Fatalf("it does not wait: %+v, %v", e, err)
				}
			}
			if err := p.RemoveSession(ann, "a", true); err != nil {
				t.Fatal(err)
			}
			for _, id := range waiting {
				if e := ended(ann, id); e.State != sandbox.ExecutionSucceeded {
					t.Errorf("%+v, %+v", e, e.Error)
				}
			}
			if quota.Sandboxes == 0 {
				if e := ended(ann, submit(ann, sandbox.Limits{Memory: 2000 * sandbox.MiB, CPUs: 2})); e.State != sandbox.ExecutionFailed || e.Error == nil || !strings.Contains(e.Error.Message, "quota") {
					t.Errorf("more than the quota: %+v, %+v", e, e.Error)
				}
			}
		})
	}
}

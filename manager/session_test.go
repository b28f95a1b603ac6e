package manager_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/store/storetest"
)

// TestSession goes through a session's life with two languages.
func TestSession(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "python")
	p.create(t, sandbox.SessionOptions{Name: "work", Language: "python"})
	if _, err := p.CreateSession(t.Context(), sandbox.SessionOptions{Name: "work"}); !errors.Is(err, sandbox.Conflict) || sandbox.HintOf(err) == "" {
		t.Errorf("a taken name: %v", err)
	}
	if _, err := p.ExecIn(t.Context(), "gone", sandbox.Run{Command: []string{"true"}}, sandbox.Streams{}); !errors.Is(err, sandbox.NotFound) || sandbox.HintOf(err) == "" {
		t.Errorf("a session that is not there: %v", err)
	}
	if err := p.PauseSession(t.Context(), "work"); !errors.Is(err, sandbox.Conflict) {
		t.Errorf("nothing to pause: %v", err)
	}
	res, err := p.ExecIn(t.Context(), "work", sandbox.Run{Code: "open('a','w').write('from python')"}, sandbox.Streams{})
	if err != nil || res.Code != 0 || res.Replaced {
		t.Fatalf("python: %+v, %v", res, err)
	}
	// Another manager on the state goes on with it, in the other language.
	other := p.manager(t)
	if res := sh(t, other, "work", "cat a; sleep 100 & echo b > b"); string(res.Stdout) != "from python" {
		t.Errorf("the shell reads %q", res.Stdout)
	}
	v, err := p.Session(t.Context(), "work")
	if err != nil || len(v.Sandboxes) != 2 || len(p.held(t)) != 3 {
		t.Errorf("%d sandboxes, the engine holds %q, %v", len(v.Sandboxes), p.held(t), err)
	}
	if err := p.PauseSession(t.Context(), "work"); err != nil {
		t.Fatal(err)
	}
	if _, err := other.ExecIn(t.Context(), "work", sandbox.Run{Command: []string{"true"}}, sandbox.Streams{}); !errors.Is(err, sandbox.Conflict) || sandbox.HintOf(err) == "" {
		t.Errorf("an exec in a paused session: %v", err)
	}
	if _, err := other.Files(t.Context(), "work"); !errors.Is(err, sandbox.Conflict) {
		t.Errorf("files of a paused session: %v", err)
	}
	if err := other.ResumeSession(t.Context(), "work"); err != nil {
		t.Fatal(err)
	}
	sh(t, p.Manager, "work", "test -e b")
	if err := p.RemoveSession(t.Context(), "work", false); err != nil {
		t.Fatal(err)
	}
	if left := p.held(t); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	if locks, _ := os.ReadDir(p.dir + "/locks"); len(locks) > 0 {
		t.Errorf("locks left behind: %v", locks)
	}
	if _, err := other.ExecIn(t.Context(), "work", sandbox.Run{Command: []string{"true"}}, sandbox.Streams{}); !errors.Is(err, sandbox.NotFound) {
		t.Errorf("a removed session: %v", err)
	}
}

// TestFirstUse lets processes make the first use of a session at once.
func TestFirstUse(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "python")
	p.create(t, sandbox.SessionOptions{Name: "work"})
	var wg sync.WaitGroup
	for i := range 6 {
		lang := []string{"shell", "python"}[i%2]
		wg.Go(func() {
			cmd := p.caisson(t.Context(), t, "exec", "work", "-l", lang, "--", "sh", "-c", "echo hello >> all; echo done")
			if out, err := cmd.CombinedOutput(); err != nil || string(out) != "done\n" {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wg.Wait()
	if held := p.held(t); len(held) != 3 {
		t.Errorf("the engine holds %q", held)
	}
	if res := sh(t, p.Manager, "work", "cat all"); string(res.Stdout) != strings.Repeat("hello\n", 6) {
		t.Errorf("the workspace has %q", res.Stdout)
	}
}

// TestBackground starts, lists, reads, signals and kills from several managers.
func TestBackground(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.create(t, sandbox.SessionOptions{Name: "work"})
	other := p.manager(t)
	ctx := t.Context()
	script := "trap 'echo got it' USR1; echo one; echo err >&2; i=0; while [ $i -lt 2000 ]; do sleep 0.05; i=$((i+1)); done"
	e, err := p.StartIn(ctx, "work", sandbox.Run{Command: []string{"bash", "-c", script}}, sandbox.Local{})
	if err != nil {
		t.Fatal(err)
	}
	read := func(m *manager.Manager, from int64) (string, string, int64) {
		var out, errs bytes.Buffer
		o, err := m.AttachExec(ctx, "work", e.ID, sandbox.AttachOptions{Stdout: from}, &out, &errs)
		if err != nil || o.Ended {
			t.Fatalf("output: ended %v, %v", o.Ended, err)
		}
		return out.String(), errs.String(), o.Stdout
	}
	until(t, "it says one", func() bool { out, errs, _ := read(other, 0); return out == "one\n" && errs == "err\n" })
	list, err := other.Processes(ctx, "work")
	if err != nil || len(list) != 1 || !list[0].Running || list[0].Age <= 0 || !strings.Contains(strings.Join(list[0].Argv, " "), "trap") {
		t.Errorf("processes: %+v, %v", list, err)
	}
	if err := p.RemoveSession(ctx, "work", false); !errors.Is(err, sandbox.Conflict) || sandbox.HintOf(err) == "" {
		t.Errorf("a busy session: %v", err)
	}
	if err := other.SignalExec(ctx, "work", e.ID, 10, false); err != nil {
		t.Fatal(err)
	}
	until(t, "it tells of the signal", func() bool { out, _, at := read(p.Manager, 4); return out == "got it\n" && at == 11 })
	followed := make(chan sandbox.Exit, 1)
	go func() {
		out, err := p.AttachExec(ctx, "work", e.ID, sandbox.AttachOptions{Follow: true}, nil, nil)
		if err != nil || !out.Ended {
			t.Errorf("follow: ended %v, %v", out.Ended, err)
		}
		followed <- out.Exit
	}()
	time.Sleep(50 * time.Millisecond)
	if err := other.KillExec(ctx, "work", e.ID); err != nil {
		t.Fatal(err)
	}
	if exit := <-followed; exit.Code == 0 {
		t.Errorf("a killed exec: %+v", exit)
	}
	v, err := p.Session(ctx, "work")
	if err != nil || len(v.Execs) != 1 || v.Execs[0].Ended.IsZero() {
		t.Errorf("the end is not recorded: %+v, %v", v.Execs, err)
	}
	if err := other.KillExec(ctx, "work", e.ID); err != nil && !errors.Is(err, sandbox.Conflict) {
		t.Errorf("kill what has ended: %v", err)
	}
	if _, err := p.StartIn(ctx, "work", sandbox.Run{Command: []string{"/no/such"}}, sandbox.Local{}); !errors.Is(err, sandbox.NotFound) {
		t.Errorf("a command that is not there: %v", err)
	}
	if _, err := p.AttachExec(ctx, "work", sandbox.NewID(), sandbox.AttachOptions{}, nil, nil); !errors.Is(err, sandbox.NotFound) {
		t.Errorf("an exec that is not there: %v", err)
	}
}

// TestEnds lets idle time, TTL and a stranger end sandboxes. The workspace
// outlives each, and the next result says that the sandbox was replaced.
func TestEnds(t *testing.T) {
	t.Parallel()
	const life = 15 * time.Second // in which it is used, also on a busy machine
	for name, c := range map[string]struct {
		opts sandbox.SessionOptions
		end  func(t *testing.T, p *place, id sandbox.ID)
	}{
		"idle": {sandbox.SessionOptions{Idle: sandbox.Duration(10 * time.Second)}, nil},
		"ttl":  {sandbox.SessionOptions{TTL: sandbox.Duration(life)}, nil},
		"shortened": {sandbox.SessionOptions{TTL: sandbox.Duration(time.Hour), Idle: sandbox.Duration(time.Hour)}, func(t *testing.T, p *place, _ sandbox.ID) {
			second := sandbox.Duration(time.Second)
			if err := p.RenewSession(t.Context(), "work", nil, &second); err != nil {
				t.Error(err)
			}
		}},
		"stranger": {sandbox.SessionOptions{}, func(t *testing.T, p *place, id sandbox.ID) {
			if err := p.kit.API.ContainerRemove(t.Context(), enginetest.ContainerName(id), container.RemoveOptions{Force: true}); err != nil {
				t.Error(err)
			}
		}},
		"recovered": {sandbox.SessionOptions{TTL: sandbox.Duration(life)}, func(t *testing.T, p *place, _ sandbox.ID) {
			time.Sleep(life + time.Second/2)
			if _, err := p.manager(t).Recover(t.Context()); err != nil {
				t.Error(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			c.opts.Name = "work"
			p.create(t, c.opts)
			sh(t, p.Manager, "work", "echo kept > kept; echo lost > /tmp/lost")
			e, err := p.StartIn(t.Context(), "work", sandbox.Run{Command: []string{"sleep", "1000"}}, sandbox.Local{})
			if name == "idle" { // a background exec is a use
				if err == nil {
					err = p.KillExec(t.Context(), "work", e.ID)
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			id := e.Sandbox
			if c.end != nil {
				c.end(t, p, id)
			}
			until(t, "the sandbox ends", func() bool {
				got, err := p.kit.API.ContainerInspect(t.Context(), enginetest.ContainerName(id))
				return err != nil || !got.State.Running
			})
			never := sandbox.Duration(0)
			if err := p.manager(t).RenewSession(t.Context(), "work", &never, &never); err != nil { // or the next ends as soon
				t.Fatal(err)
			}
			m := p.manager(t) // another process, which knows nothing of the end
			res := sh(t, m, "work", "cat kept; test ! -e /tmp/lost")
			if !res.Replaced || string(res.Stdout) != "kept\n" {
				t.Errorf("replaced %v, the workspace has %q", res.Replaced, res.Stdout)
			}
			if res := sh(t, m, "work", "true"); res.Replaced {
				t.Error("replaced again")
			}
			if v, err := m.Session(t.Context(), "work"); err != nil || len(v.Sandboxes) != 1 {
				t.Errorf("sandboxes: %+v, %v", v.Sandboxes, err)
			}
		})
	}
}

// TestClockSet has the clock of a next manager differ from that of the one before: a
// sandbox that runs is not over for that, and no exec took less than no time.
func TestClockSet(t *testing.T) {
	t.Parallel()
	for name, by := range map[string]time.Duration{"ahead": 100 * time.Hour, "back": -100 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.create(t, sandbox.SessionOptions{Name: "work", TTL: sandbox.Duration(time.Hour), Idle: sandbox.Duration(time.Hour)})
			e, err := p.StartIn(t.Context(), "work", sandbox.Run{Command: []string{"sleep", "1000"}}, sandbox.Local{})
			if err != nil {
				t.Fatal(err)
			}
			p.now = func() time.Time { return time.Now().Add(by) }
			next := p.manager(t)
			if did, err := next.Recover(t.Context()); err != nil || did.Removed != 0 || did.Running != 1 {
				t.Errorf("%+v, %v", did, err)
			}
			if res := sh(t, next, "work", "true"); res.Replaced || res.Sandbox != e.Sandbox {
				t.Error("its sandbox is another")
			}
			if err := p.kit.API.ContainerRemove(t.Context(), enginetest.ContainerName(e.Sandbox), container.RemoveOptions{Force: true}); err != nil {
				t.Fatal(err)
			}
			if res := sh(t, next, "work", "true"); !res.Replaced {
				t.Error("its sandbox is the same")
			}
			for event, err := range p.store.Events(t.Context(), sandbox.EventFilter{Exec: e.ID, Kinds: []string{sandbox.EventExecEnded}}) {
				var told struct {
					Duration sandbox.Duration `json:"duration_ms"`
				}
				if err = errors.Join(err, json.Unmarshal(event.Data, &told)); err != nil || told.Duration < 0 {
					t.Errorf("%s, %v", event.Data, err)
				}
			}
		})
	}
}

// TestRenewedLonger moves an end away.
func TestRenewedLonger(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.create(t, sandbox.SessionOptions{Name: "work", Idle: sandbox.Duration(15 * time.Second), TTL: sandbox.Duration(15 * time.Second)})
	id := sh(t, p.Manager, "work", "true").Sandbox
	never, hour := sandbox.Duration(0), sandbox.Duration(time.Hour)
	if err := p.manager(t).RenewSession(t.Context(), "work", &never, &hour); err != nil {
		t.Fatal(err)
	}
	time.Sleep(16 * time.Second)
	if res := sh(t, p.Manager, "work", "true"); res.Replaced || res.Sandbox != id {
		t.Error("it was renewed, and ended all the same")
	}
}

// TestFrozen freezes a sandbox behind caisson's back. It does not answer, and
// is not given up for that.
func TestFrozen(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.create(t, sandbox.SessionOptions{Name: "work"})
	id := sh(t, p.Manager, "work", "true").Sandbox
	if err := p.kit.API.ContainerPause(t.Context(), enginetest.ContainerName(id)); err != nil {
		t.Fatal(err)
	}
	_, err := p.manager(t).ExecIn(t.Context(), "work", sandbox.Run{Command: []string{"true"}}, sandbox.Streams{})
	if !errors.Is(err, sandbox.Unavailable) {
		t.Errorf("a sandbox that does not answer: %v", err)
	}
	if err := p.kit.API.ContainerUnpause(t.Context(), enginetest.ContainerName(id)); err != nil {
		t.Fatal(err)
	}
	if res := sh(t, p.manager(t), "work", "true"); res.Replaced || res.Sandbox != id {
		t.Error("it was replaced")
	}
}

// TestKilled kills every process of caisson's at moments that nobody chose,
// under load, and lets another take up what they left.
func TestKilled(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	rounds := 30
	if enginetest.Soaking() {
		rounds = 200
	}
	p.create(t, sandbox.SessionOptions{Name: "work"})
	sh(t, p.Manager, "work", "true")
	confirmed := map[string]bool{"work": true}
	var mu sync.Mutex
	for i := range rounds {
		ctx, kill := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		name := "s" + string(sandbox.NewID()[:10])
		load := [][]string{
			{"session", "create", name},
			{"exec", "work", "--", "sh", "-c", "echo a; sleep 0.1; echo b"},
			{"exec", "work", "--detach", "--", "sleep", "0.2"},
			{"exec", "work", "--", "sleep", "0.05"},
			{"run", "-l", "shell", "-c", "sleep 0.1"},
		}
		for _, args := range load {
			wg.Go(func() {
				out, err := p.caisson(ctx, t, args...).CombinedOutput()
				if err == nil && args[0] == "session" {
					mu.Lock()
					confirmed[name] = true
					mu.Unlock()
				} else if err != nil && ctx.Err() == nil {
					t.Errorf("%q: %v: %s", args, err, out)
				}
			})
		}
		time.Sleep(time.Duration(20+rand.IntN(600)) * time.Millisecond)
		kill()
		wg.Wait()
		if i%3 == 2 {
			recoverOne(t, p)
		}
	}
	recoverOne(t, p)
	list, err := p.Sessions(t.Context(), sandbox.SessionFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range list {
		delete(confirmed, v.Name)
	}
	if len(confirmed) > 0 {
		t.Errorf("confirmed and lost: %v", confirmed)
	}
	if res := sh(t, p.Manager, "work", "true"); res.Replaced {
		t.Error("the session's sandbox was lost")
	}
}

// recoverOne recovers until nothing runs that a dead process began.
func recoverOne(t *testing.T, p *place) {
	t.Helper()
	m := p.manager(t)
	until(t, "everything has ended", func() bool {
		rec, err := m.Recover(t.Context())
		if err != nil || len(rec.Failures) > 0 {
			t.Fatalf("recover: %+v, %v", rec, err)
		}
		return rec.Running == 0
	})
	// The engine may still make what a dead process asked for.
	until(t, "nothing is without a holder", func() bool {
		if _, err := m.Sweep(t.Context(), false, false); err != nil {
			t.Fatalf("sweep: %v", err)
		}
		return !slices.ContainsFunc(must(m.Sweep(t.Context(), true, false)), func(o sandbox.Orphan) bool {
			return strings.HasPrefix(o.Name, p.kit.Base) || o.Holder == "state:"+p.store.ID()
		})
	})
	storetest.Sound(t, p.store)
}

func must[T any](v T, _ error) T { return v }

// An engine that goes away while it makes a sandbox keeps one that the journal
// does not know, and it would hold the workspace.
func TestSessionTakesUnknownSandboxesAlong(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.create(t, sandbox.SessionOptions{Name: "work"})
	sh(t, p.Manager, "work", "true")
	v := must(p.Session(t.Context(), "work"))
	known, err := p.kit.API.ContainerInspect(t.Context(), enginetest.ContainerName(v.Sandboxes[0].ID))
	if err != nil {
		t.Fatal(err)
	}
	id := sandbox.NewID()
	labels := maps.Clone(known.Config.Labels)
	labels["dev.caisson.id"] = string(id)
	host := &container.HostConfig{Mounts: []mount.Mount{{Type: mount.TypeVolume, Source: v.Workspace.Source, Target: "/workspace"}}}
	_, err = p.kit.API.ContainerCreate(t.Context(), &container.Config{Image: known.Image, Cmd: []string{"true"}, Labels: labels}, host, nil, nil,
		enginetest.ContainerName(id))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.RemoveSession(t.Context(), "work", true); err != nil {
		t.Errorf("remove: %v", err)
	}
	if left := p.held(t); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// The records of background execs that have ended are bounded: the oldest go.
func TestEndedAreBounded(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.create(t, sandbox.SessionOptions{Name: "work"})
	sh(t, p.Manager, "work", "true")
	box := must(p.Session(t.Context(), "work")).Sandboxes[0].ID
	const many = 300
	var ids []sandbox.ID
	var change sandbox.Transaction
	for i := range many {
		e := sandbox.ExecRecord{
			ID: sandbox.NewID(), Session: "work", Sandbox: box, Argv: []string{"true"}, Holder: "x", Background: true,
			Started: time.Unix(int64(i), 0), Ended: time.Unix(int64(many+i), 0),
		}
		ids = append(ids, e.ID)
		change.PutExecs = append(change.PutExecs, e)
	}
	if err := p.store.Apply(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	e, err := p.StartIn(t.Context(), "work", sandbox.Run{Command: []string{"sleep", "100"}}, sandbox.Local{})
	if err != nil {
		t.Fatal(err)
	}
	left := map[sandbox.ID]bool{}
	for _, e := range must(p.Session(t.Context(), "work")).Execs {
		left[e.ID] = true
	}
	if len(left) != 256 || !left[e.ID] || !left[ids[many-1]] || left[ids[0]] {
		t.Errorf("%d records are left; the new one %v, the newest %v, the oldest %v", len(left), left[e.ID], left[ids[many-1]], left[ids[0]])
	}
}

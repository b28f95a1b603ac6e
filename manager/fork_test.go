package manager_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// TestForkLive forks sessions while something runs in them: it goes on, in the same
// sandbox, and the fork has what stood there. Then of one that lies on layers.
func TestForkLive(t *testing.T) {
	branching(t, func(t *testing.T, p *place, by sandbox.CopiedBy) {
		p.create(t, sandbox.SessionOptions{Name: "a"})
		live := func(of, name string) sandbox.Session {
			t.Helper()
			before := sh(t, p.Manager, of, `mkdir -p d; echo one > d/f; ln -sf d/f soft; chmod 640 d/f; touch -d 2001-02-03 d/f d`).Sandbox
			rec, err := p.StartIn(t.Context(), of, sandbox.Run{Command: []string{"sh", "-c", "while [ ! -e go ]; do sleep 0.05; done; echo went on"}, Hold: true}, sandbox.Local{})
			if err != nil {
				t.Fatal(err)
			}
			look := string(sh(t, p.Manager, of, lookScript).Stdout)
			f, how, err := p.Fork(t.Context(), of, sandbox.ForkOptions{Name: name, Live: true})
			if err != nil || how != sandbox.CopiedByBytes {
				t.Fatalf("%s, %v", how, err)
			}
			if res := sh(t, p.Manager, name, lookScript); string(res.Stdout) != look || len(res.Changes) != 0 {
				t.Errorf("%s has\n%s\nchanges %s; %s had\n%s", name, res.Stdout, summary(res.Changes), of, look)
			}
			sh(t, p.Manager, name, "echo two > d/f")
			if res := sh(t, p.Manager, of, "grep one d/f; touch go"); res.Replaced || res.Sandbox != before {
				t.Errorf("%s has another sandbox", of)
			}
			var out strings.Builder
			got, err := p.AttachExec(t.Context(), of, rec.ID, sandbox.AttachOptions{Follow: true}, &out, &out)
			if err != nil || got.Exit.Reason != sandbox.ReasonExited || out.String() != "went on\n" {
				t.Errorf("what ran in %s: %+v, %q, %v", of, got.Exit, out.String(), err)
			}
			return f
		}
		live("a", "b")
		if _, how, err := p.Fork(t.Context(), "b", sandbox.ForkOptions{Name: "c"}); err != nil || how != by {
			t.Fatalf("%s, %v", how, err)
		}
		live("c", "d")
		for _, name := range []string{"a", "b", "c"} {
			if err := p.RemoveSession(t.Context(), name, true); err != nil {
				t.Fatal(err)
			}
		}
		sh(t, p.Manager, "d", "grep two d/f")
	})
}

// TestForkSettings gives forks settings of their own, and none where they are wrong.
func TestForkSettings(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	hour, none, network := sandbox.Duration(time.Hour), sandbox.Duration(0), sandbox.Network{}
	p.create(t, sandbox.SessionOptions{Name: "a", Env: []string{"A=1", "AB=2"}, TTL: hour, Idle: hour, Labels: sandbox.Labels{"k": "a"}})
	same, _, err := p.Fork(t.Context(), "a", sandbox.ForkOptions{Name: "same", Live: true})
	if err != nil || !slices.Equal(same.Env, []string{"A=1", "AB=2"}) || same.TTL != hour || same.Idle != hour || same.Labels["k"] != "a" {
		t.Errorf("%+v, %v", same, err)
	}
	other, how, err := p.Fork(t.Context(), "a", sandbox.ForkOptions{
		Name: "other", Labels: sandbox.Labels{"l": "b"}, Env: []string{"A=3", "C=4"}, TTL: &none, Idle: &none, Network: &network,
	})
	if err != nil || !slices.Equal(other.Env, []string{"AB=2", "A=3", "C=4"}) || other.TTL != 0 || other.Idle != 0 || other.Labels["k"] != "" || other.Labels["l"] != "b" || other.Network.Mode != sandbox.NetworkNone {
		t.Errorf("%+v, %v", other, err)
	}
	if how != sandbox.CopiedByOverlay {
		t.Errorf("one that nothing runs in is copied by %s", how)
	}
	if got := string(sh(t, p.Manager, "other", "echo $A $AB $C").Stdout); got != "3 2 4\n" {
		t.Errorf("its environment: %q", got)
	}
	sandboxOf := sh(t, p.Manager, "a", "true").Sandbox
	negative := sandbox.Duration(-1)
	for name, o := range map[string]sandbox.ForkOptions{
		"labels": {Labels: sandbox.Labels{"": "x"}}, "env": {Env: []string{"x"}}, "ttl": {TTL: &negative}, "idle": {Idle: &negative},
	} {
		if _, _, err := p.Fork(t.Context(), "a", o); !errors.Is(err, sandbox.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := sh(t, p.Manager, "a", "true"); got.Sandbox != sandboxOf {
		t.Error("a refusal ended its sandbox")
	}
	// One that is frozen stays so.
	if err := p.PauseSession(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.Fork(t.Context(), "a", sandbox.ForkOptions{Name: "asleep", Live: true}); err != nil {
		t.Fatal(err)
	}
	if v, err := p.Session(t.Context(), "a"); err != nil || v.Sandboxes[0].State != sandbox.StatePaused {
		t.Errorf("%+v, %v", v.Sandboxes, err)
	}
}

// TestStopSession ends what a session has, frozen or not; its files stay.
func TestStopSession(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.create(t, sandbox.SessionOptions{Name: "a"})
	for _, frozen := range []bool{false, true} {
		sh(t, p.Manager, "a", "echo kept > kept")
		rec, err := p.StartIn(t.Context(), "a", sandbox.Run{Command: []string{"sleep", "300"}}, sandbox.Local{})
		if err != nil {
			t.Fatal(err)
		}
		if frozen {
			if err := p.PauseSession(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // the second time there is nothing to end
			if err := p.StopSession(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
		}
		v, err := p.Session(t.Context(), "a")
		if err != nil || slices.ContainsFunc(v.Sandboxes, func(b sandbox.SandboxRecord) bool { return b.State != sandbox.StateGone }) {
			t.Errorf("%+v, %v", v.Sandboxes, err)
		}
		at := slices.IndexFunc(v.Execs, func(e sandbox.ExecRecord) bool { return e.ID == rec.ID })
		if at < 0 || v.Execs[at].Ended.IsZero() || !strings.Contains(v.Execs[at].Exit.Cause, "its session was stopped") {
			t.Errorf("frozen %v: what ran: %+v", frozen, v.Execs)
		}
		if res := sh(t, p.Manager, "a", "cat kept; cat /proc/[0-9]*/comm | grep -c sleep || true"); string(res.Stdout) != "kept\n0\n" || !res.Replaced || len(res.Changes) != 0 {
			t.Errorf("%q, replaced %v, changes %s", res.Stdout, res.Replaced, summary(res.Changes))
		}
	}
	if err := p.StopSession(t.Context(), "none"); !errors.Is(err, sandbox.NotFound) {
		t.Error(err)
	}
}

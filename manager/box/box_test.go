package box_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/manager/box"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/runtimetest"
	"github.com/caisson-dev/caisson/sandbox"
)

// anImage is there once it was made, and gone while it is forgotten.
type anImage struct{ forgotten int }

func (i *anImage) Ensure(_ context.Context, ref string) (sandbox.Image, error) {
	return sandbox.Image{Ref: ref, ID: "sha256:0"}, nil
}

func (i *anImage) Forget(sandbox.Image) { i.forgotten++ }

// makes returns a maker on a runtime in memory, which must be empty at the end.
func makes(t *testing.T) (*box.Maker, *runtimetest.Memory, *anImage) {
	t.Helper()
	rt, images := &runtimetest.Memory{}, &anImage{}
	t.Cleanup(func() {
		if left, err := rt.List(context.Background()); err != nil || len(left) > 0 {
			t.Errorf("left in the runtime: %v, %+v", err, left)
		}
	})
	return &box.Maker{Images: images, Holder: "me", Patience: enginetest.Patience}, rt, images
}

func permit(context.Context, *runtimes.Plan) error { return nil }

func end(t *testing.T, b *box.Box) {
	t.Helper()
	if err := b.End(context.Background()); err != nil {
		t.Error(err)
	}
}

// pages is a book that can refuse.
type pages struct {
	said           []string
	rt             *runtimetest.Memory
	creating, last error
}

func (p *pages) say(what string) {
	left, _ := p.rt.List(context.Background())
	if len(left) > 0 {
		what += ", which is there"
	}
	p.said = append(p.said, what)
}

func (p *pages) Creating(context.Context, *box.Box) error { p.say("creating"); return p.creating }

func (p *pages) Ready(context.Context, *box.Box) error { p.say("ready"); return p.last }

func (p *pages) Failed(_ context.Context, _ *box.Box, why error) error {
	p.say("failed")
	return nil
}

// TestBook says what happens before a box is made, and that nothing is left of
// one that was not to be, when that is written down.
func TestBook(t *testing.T) {
	t.Parallel()
	no := errors.New("no")
	for _, tt := range []struct {
		name                     string
		judge, book, make, ready error
		want                     []string
	}{
		{name: "made", want: []string{"creating", "ready, which is there"}},
		{name: "refused", judge: no},
		{name: "not written down", book: no, want: []string{"creating"}},
		{name: "not made", make: no, want: []string{"creating", "failed"}},
		{name: "not ready", ready: no, want: []string{"creating", "ready, which is there", "failed"}},
		{name: "without its image", make: sandbox.Errorf(sandbox.NotFound, "no image"), want: []string{"creating", "failed", "creating", "failed"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m, rt, images := makes(t)
			rt.OnCreate = func(context.Context, runtimes.Plan) error { return tt.make }
			p := &pages{rt: rt, creating: tt.book, last: tt.ready}
			b, err := m.New(t.Context(), box.Order{Runtime: rt, Image: "x", Book: p, Judge: func(context.Context, *runtimes.Plan) error { return tt.judge }})
			if err == nil {
				defer end(t, b)
			}
			want := errors.Join(tt.judge, tt.book, tt.make, tt.ready)
			if (err == nil) != (want == nil) || !slices.Equal(p.said, tt.want) {
				t.Errorf("%v; the book says %q, want %q", err, p.said, tt.want)
			}
			if gone := errors.Is(err, sandbox.NotFound); gone != (images.forgotten > 0) {
				t.Errorf("%v, and the image was forgotten %d times", err, images.forgotten)
			}
		})
	}
}

// TestTakeWhatIsMade goes the one way with a sandbox that is there before anybody
// asks: whose it is and what bounds it are settled when it is claimed, and that is
// what is judged.
func TestTakeWhatIsMade(t *testing.T) {
	t.Parallel()
	m, rt, _ := makes(t)
	made := func() runtimes.Instance {
		t.Helper()
		id := sandbox.NewID()
		plan, err := rt.Plan(t.Context(), sandbox.Spec{Image: sandbox.Image{Ref: "x", ID: "sha256:0"}, Holder: "a pool", Identity: sandbox.IdentityFor(id)})
		if err != nil {
			t.Fatal(err)
		}
		inst, err := rt.Create(t.Context(), id, plan)
		if err != nil {
			t.Fatal(err)
		}
		return inst
	}
	var judged sandbox.Spec
	order := box.Order{Runtime: rt, Image: "x", From: made(), Judge: func(_ context.Context, plan *runtimes.Plan) error {
		judged = plan.Spec
		return nil
	}}
	order.Spec = sandbox.Spec{Language: "shell", Session: "theirs", Identity: sandbox.Identity{UID: 20100, RunnerUID: 20101}}
	order.Spec.Limits.Memory = 64 * sandbox.MiB
	b, err := m.New(t.Context(), order)
	if err != nil {
		t.Fatal(err)
	}
	defer end(t, b)
	out, err := b.Client.Run(t.Context(), client.Command{ID: sandbox.NewID(), Argv: []string{"echo", "ok"}})
	if err != nil || out.Reason != sandbox.ReasonExited || out.Code != 0 {
		t.Errorf("run in what was taken: %v, %+v", err, out)
	}
	if judged.Identity != order.Spec.Identity || judged.Session != "theirs" || judged.Limits.Memory != order.Spec.Limits.Memory || judged.Holder != "me" {
		t.Errorf("judged as %+v", judged)
	}
	if h := b.Instance.Handle(); h.ID != b.ID || h.Session != "theirs" || h.Holder != "me" || h.Language != "shell" {
		t.Errorf("taken as %+v", h)
	}

	// Without an identity that is asked for, the one that it was made with stays.
	own, err := m.New(t.Context(), box.Order{Runtime: rt, Image: "x", From: made(), Judge: permit})
	if err != nil {
		t.Fatal(err)
	}
	defer end(t, own)
	if own.Plan.Spec.Identity != sandbox.IdentityFor(own.ID) {
		t.Errorf("sandbox %s is used by %+v", own.ID, own.Plan.Spec.Identity)
	}

	// One that cannot be handed over is not used, and not left either.
	if _, err := m.New(t.Context(), box.Order{Runtime: rt, Image: "x", From: struct{ runtimes.Instance }{made()}, Judge: permit}); !errors.Is(err, sandbox.Unsupported) {
		t.Errorf("take what cannot be handed over: %v", err)
	}
}

// fromPool is a sandbox of a pool, which notes what becomes of it.
type fromPool struct {
	inst       runtimes.Instance
	kept, over int
}

func (p *fromPool) Handle() runtimes.Handle { return p.inst.Handle() }
func (p *fromPool) Kept()                   { p.kept++ }
func (p *fromPool) Over() error {
	p.over++
	return p.inst.Destroy(context.Background())
}

// prepared is a sandbox of a pool that was made of an image.
func prepared(t *testing.T, m *box.Maker, rt runtimes.Runtime, image string) *fromPool {
	t.Helper()
	inst, got, err := m.Prepare(t.Context(), box.Order{Runtime: rt, Image: image, Judge: permit})
	if err != nil || got.Ref != image {
		t.Fatalf("%v, %+v", err, got)
	}
	return &fromPool{inst: inst}
}

// TestTakeFromPool takes a sandbox of a pool, which ends it; one that is in the book
// is its taker's. Where it cannot be taken after all, there is another.
func TestTakeFromPool(t *testing.T) {
	t.Parallel()
	m, rt, _ := makes(t)
	order := func(p *fromPool) box.Order {
		return box.Order{Runtime: rt, Image: "x", Judge: permit, Take: func(_ context.Context, spec sandbox.Spec) box.Ready {
			if spec.Image.Ref != "x" {
				t.Errorf("asked for a sandbox of %+v", spec.Image)
			}
			return p
		}}
	}
	p := prepared(t, m, rt, "x")
	b, err := m.New(t.Context(), order(p))
	if err != nil || b.ID != p.Handle().ID || b.Plan.Spec.Identity != sandbox.IdentityFor(b.ID) {
		t.Fatalf("%v, %+v", err, b)
	}
	end(t, b)
	if p.over != 1 || p.kept != 0 {
		t.Errorf("the pool was told %+v", p)
	}

	inBook := prepared(t, m, rt, "x")
	o := order(inBook)
	o.Book = &pages{rt: rt}
	if b, err = m.New(t.Context(), o); err != nil || b.ID != inBook.Handle().ID {
		t.Fatalf("%v, %+v", err, b)
	}
	end(t, b)
	if inBook.over != 0 || inBook.kept != 1 {
		t.Errorf("the pool was told %+v", inBook)
	}

	other := prepared(t, m, rt, "another image")
	if b, err = m.New(t.Context(), order(other)); err != nil || b.ID == other.Handle().ID || other.over != 1 {
		t.Errorf("for one that cannot be taken: %v, %+v; the pool was told %+v", err, b, other)
	}
	end(t, b)

	gone := prepared(t, m, rt, "x")
	if err := gone.inst.Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if b, err = m.New(t.Context(), order(gone)); err != nil || b.ID == gone.Handle().ID || gone.over != 1 {
		t.Errorf("for one that is gone: %v, %+v; the pool was told %+v", err, b, gone)
	}
	end(t, b)

	refused := prepared(t, m, rt, "x")
	o = order(refused)
	o.Judge = func(context.Context, *runtimes.Plan) error { return sandbox.Errorf(sandbox.Denied, "no") }
	if _, err := m.New(t.Context(), o); !errors.Is(err, sandbox.Denied) || refused.over != 1 {
		t.Errorf("refused: %v; the pool was told %+v", err, refused)
	}
}

// TestReach connects to a box as another process would, and tells one that has
// ended from one that has not.
func TestReach(t *testing.T) {
	t.Parallel()
	m, rt, _ := makes(t)
	b, err := m.New(t.Context(), box.Order{Runtime: rt, Image: "x", Session: sandbox.NewID(), Judge: permit})
	if err != nil {
		t.Fatal(err)
	}
	defer end(t, b)
	reach := func() error {
		again := &box.Box{ID: b.ID, Secret: b.Secret, Session: b.Session, Plan: b.Plan}
		err := m.Reach(t.Context(), rt, b.Instance.Handle(), again)
		if err == nil {
			_ = again.Client.Close()
		}
		return err
	}
	if err := reach(); err != nil {
		t.Errorf("a box that runs: %v", err)
	}
	rt.Break(b.ID)
	if err := reach(); !errors.Is(err, box.ErrEnded) || !errors.Is(err, sandbox.Unavailable) {
		t.Errorf("one that has ended: %v", err)
	}
	end(t, b)
	if err := reach(); !errors.Is(err, box.ErrEnded) || !errors.Is(err, sandbox.NotFound) {
		t.Errorf("one that is gone: %v", err)
	}
}

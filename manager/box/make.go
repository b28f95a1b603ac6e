package box

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/telemetry"
)

// Images is what it takes of the images.
type Images interface {
	// Ensure makes an image present in the engine. ref is a language's image, or
	// what a caller named.
	Ensure(ctx context.Context, ref string) (sandbox.Image, error)
	// Forget makes the next Ensure look whether the image is there still.
	Forget(img sandbox.Image)
}

// Maker makes boxes. Its fields are set before its first use, and it is safe for
// concurrent use then.
type Maker struct {
	Images Images
	// Holder names this process to others that share the engine.
	Holder string
	// Patience is how much longer than its timeout an exec may go unanswered; 0 is
	// the agent's client's own.
	Patience time.Duration
}

// Order asks for a box.
type Order struct {
	Runtime  runtimes.Runtime // that makes it
	Language sandbox.Language // zero without one
	Image    string           // reference, in place of the language's; "" is that
	// Spec lacks the image. An identity or a holder that is unset is settled when
	// the box is made: an identity of its own, and this process.
	Spec      sandbox.Spec
	Session   sandbox.ID       // "" is a box that ends with its caller
	Owner     string           // whose it is, for who watches it
	Labels    sandbox.Labels   // of the session, or of the run that it is for
	Idle, TTL sandbox.Duration // of a session's
	// Judge says whether what is planned may be made; its error refuses. Required.
	Judge func(ctx context.Context, plan *runtimes.Plan) error
	Book  Book // nil: nobody remembers it
	// Take returns a sandbox of a pool that can become what a spec, with its image,
	// asks for, or nil. Where it cannot after all, a new one is made. It may be nil.
	Take func(ctx context.Context, spec sandbox.Spec) Ready
	// From was made before anybody asked, and is taken in place of a new one. Its
	// runtime settles what the order asks for.
	From runtimes.Instance
}

// Ready is a sandbox of a pool, which its taker alone can claim. Exactly one of Kept
// and Over is called.
type Ready interface {
	Handle() runtimes.Handle
	// Kept says that the sandbox is somebody's for longer than the pool may live: who
	// has it also destroys it.
	Kept()
	// Over has the pool destroy it, which nobody waits for. Its error says that the
	// pool cannot: the caller has to.
	Over() error
}

// Book is where it is written down that a box is made.
type Book interface {
	// Creating comes before it is made. Its error prevents that.
	Creating(ctx context.Context, b *Box) error
	// Ready comes once it is claimed. Its error ends the box.
	Ready(ctx context.Context, b *Box) error
	// Failed comes after Creating, once nothing is left of the box.
	Failed(ctx context.Context, b *Box, why error) error
}

// New makes a box. There is no other way to one:
//
//	image present ─► plan ─► judge ─► book ─► create ─► claim ─► book
//
// Errors: NotFound for the image, those of the order's Judge and Book, and those
// of the runtime. On an error nothing is left, but of an Order's From that was not
// to be claimed yet.
func (m *Maker) New(ctx context.Context, o Order) (b *Box, err error) {
	err = m.WithImage(ctx, o.Runtime, o.Language, o.Image, func(image sandbox.Image) (err error) {
		o.Spec.Image = image
		b, err = m.makeOf(ctx, o)
		return err
	})
	return b, err
}

func (m *Maker) makeOf(ctx context.Context, o Order) (_ *Box, err error) {
	b := &Box{ID: sandbox.NewID(), Instance: o.From, Session: o.Session, Owner: o.Owner, Labels: o.Labels, Secret: make([]byte, 32)}
	_, _ = rand.Read(b.Secret) // crypto/rand.Read never fails: it ends the process instead
	if o.From == nil && o.Take != nil {
		o.From = b.take(ctx, o)
	}
	if o.From != nil {
		b.ID = o.From.Handle().ID
	}
	if b.Plan, err = m.plan(ctx, b.ID, o); err != nil {
		return nil, errors.Join(err, b.giveBack(ctx))
	}
	pooled := b.ready != nil
	if err = m.settle(ctx, b, o); err != nil && pooled && ctx.Err() == nil {
		b.ID, o.From = sandbox.NewID(), nil
		err = m.settle(ctx, b, o)
	}
	return b, err
}

// take takes a sandbox of a pool.
func (b *Box) take(ctx context.Context, o Order) runtimes.Instance {
	ready := o.Take(ctx, o.Spec)
	if ready == nil {
		return nil
	}
	b.ready = ready
	inst, err := o.Runtime.Attach(ctx, ready.Handle())
	if err != nil {
		_ = b.giveBack(ctx) // it is gone, or is swept: another is made
		return nil
	}
	b.Instance = inst
	return inst
}

// giveBack ends a sandbox of a pool that was not claimed.
func (b *Box) giveBack(ctx context.Context) error {
	if b.ready == nil {
		return nil
	}
	return b.End(ctx)
}

// settle makes the box that is planned, or claims the one that is there. On an error
// nothing is left of either.
func (m *Maker) settle(ctx context.Context, b *Box, o Order) (err error) {
	b.Instance = o.From
	if o.Book != nil {
		if err := o.Book.Creating(ctx, b); err != nil {
			return errors.Join(err, b.giveBack(ctx))
		}
		defer func() {
			if err != nil {
				err = errors.Join(err, o.Book.Failed(ctx, b, err))
			}
		}()
	}
	if o.From == nil {
		creating, done := telemetry.Start(ctx, "create", telemetry.ID("sandbox", b.ID), slog.String("runtime", b.Plan.Runtime))
		b.Instance, err = o.Runtime.Create(creating, b.ID, b.Plan)
		done(err)
		if err != nil {
			return OfImage(err)
		}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.End(ctx))
		}
	}()
	claiming, done := telemetry.Start(ctx, "claim", telemetry.ID("sandbox", b.ID))
	err = m.claim(claiming, b, o)
	if done(err); err == nil && o.Book != nil {
		if err = o.Book.Ready(ctx, b); err == nil && b.ready != nil {
			b.ready.Kept() // who is in the book outlives this process, and the pool
			b.ready = nil
		}
	}
	return err
}

// Prepare makes a sandbox that nobody has asked for yet, for a pool: its order says
// no Session, Book or Take. It is judged as any, and again once it is claimed.
func (m *Maker) Prepare(ctx context.Context, o Order) (inst runtimes.Instance, image sandbox.Image, err error) {
	err = m.WithImage(ctx, o.Runtime, o.Language, o.Image, func(made sandbox.Image) error {
		image, o.Spec.Image = made, made
		id := sandbox.NewID()
		plan, err := m.plan(ctx, id, o)
		if err != nil {
			return err
		}
		inst, err = o.Runtime.Create(ctx, id, plan)
		return OfImage(err)
	})
	return inst, image, err
}

// plan settles what the box will be, and has that judged.
func (m *Maker) plan(ctx context.Context, id sandbox.ID, o Order) (runtimes.Plan, error) {
	if o.Spec.Identity == (sandbox.Identity{}) {
		o.Spec.Identity = sandbox.IdentityFor(id)
	}
	if o.Spec.Holder == "" {
		o.Spec.Holder = m.Holder
	}
	plan, err := o.Runtime.Plan(ctx, o.Spec)
	if err != nil {
		return plan, err
	}
	return plan, o.Judge(ctx, &plan)
}

// claim makes the sandbox and its agent ours: the agent gets the sandbox's users
// and a secret, and is told when to end.
func (m *Maker) claim(ctx context.Context, b *Box, o Order) (err error) {
	if o.From != nil {
		claimer, ok := o.From.(runtimes.Claimer)
		if !ok {
			return sandbox.Errorf(sandbox.Unsupported, "the %s runtime cannot hand over a sandbox that is made already", b.Plan.Runtime)
		}
		if err := claimer.Claim(ctx, b.Plan); err != nil {
			return err
		}
	}
	spec := b.Plan.Spec
	b.Client, err = m.greet(ctx, b, &client.Claim{
		Identity: spec.Identity, OneShot: b.Session == "", Idle: time.Duration(o.Idle), TTL: time.Duration(o.TTL), Env: baseEnv(spec.Image),
		Workspace: watchedSize(spec.Workspace), Writable: writable(b.Plan), OpenFiles: spec.Limits.OpenFiles,
	})
	if errors.Is(err, sandbox.Unsupported) && b.Plan.Hardened {
		return sandbox.Errorf(sandbox.Unsupported, "%w", err).WithHint("leave hardening out by --hardening off; caisson doctor says what is missing")
	}
	return err
}

// writable are the folders that the agent holds programs to; none where it is not to.
func writable(p runtimes.Plan) []string {
	if !p.Hardened {
		return nil
	}
	return sandbox.Writable(p.Spec.Image.Volumes)
}

// Reach connects to a box that was made before, by whomever: of is what is known
// of it, and gets its Instance and its Client here. Errors: [ErrEnded] where it is
// not there any more, Unavailable where it does not answer.
func (m *Maker) Reach(ctx context.Context, rt runtimes.Runtime, h runtimes.Handle, of *Box) error {
	inst, err := rt.Attach(ctx, h)
	if errors.Is(err, sandbox.NotFound) {
		return sandbox.Errorf(sandbox.NotFound, "%w: %w", ErrEnded, err)
	}
	if err != nil {
		return err
	}
	of.Instance = inst
	of.Client, err = m.greet(ctx, of, nil)
	if errors.Is(err, sandbox.Unavailable) {
		return Whether(ctx, inst, err)
	}
	return err
}

// greet opens a connection to a sandbox's agent. claim is nil for one that is
// ours already. What a session's agent runs goes on without its clients.
func (m *Maker) greet(ctx context.Context, b *Box, claim *client.Claim) (*client.Client, error) {
	conn, err := b.Instance.Dial(ctx)
	if err != nil {
		return nil, err
	}
	return client.New(ctx, conn, client.Config{
		Secret: b.Secret, Claim: claim, Lease: client.Lease{ID: b.ID, Keep: b.Session != ""}, Patience: m.Patience, Dial: b.Instance.Dial,
	})
}

// Answer takes what an exec has handed back, as [client.TakeAnswer] does.
func (b *Box) Answer(ctx context.Context, exec sandbox.ID, most int64) (*os.File, error) {
	conn, err := b.Instance.Dial(ctx)
	if err != nil {
		return nil, err
	}
	b.lent.Store(true)
	return client.TakeAnswer(ctx, conn, b.Secret, exec, most)
}

// watchedSize is the size that the agent holds a workspace to where its file system
// does not. A folder of the host is its owner's, of whatever size.
func watchedSize(w sandbox.Workspace) sandbox.Bytes {
	if w.Kind == sandbox.WorkspaceVolume || w.Kind == sandbox.WorkspaceOverlay {
		return w.Size
	}
	return 0
}

// baseEnv is what every exec finds in its environment: the image's own
// variables, and over them what the sandbox sets. Nothing of the host's.
func baseEnv(image sandbox.Image) []string {
	// Bytecode beside a module would be asked about when the module is imported again.
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "PYTHONDONTWRITEBYTECODE=1"}
	env = append(env, image.Env...)
	return append(env, "HOME="+client.HomeDir, "USER="+image.User(), "LOGNAME="+image.User(), "SHELL=/bin/sh")
}

// WithImage calls do with what a runtime makes sandboxes of: an image of its own,
// or one in the engine, present. One that somebody removed since it was last seen
// is made anew, once: what the runtime does of an image, it does in here, and says
// by [OfImage] how it went. named is an image in place of the language's, or "".
func (m *Maker) WithImage(ctx context.Context, rt runtimes.Runtime, lang sandbox.Language, named string, do func(sandbox.Image) error) error {
	if own, ok := rt.(runtimes.Provisioner); ok {
		making, done := telemetry.Start(ctx, "image")
		image, err := own.Provision(making, lang, named)
		done(err)
		if err != nil {
			return err
		}
		return do(image)
	}
	for tried := false; ; tried = true {
		making, done := telemetry.Start(ctx, "image")
		image, err := m.Images.Ensure(making, cmp.Or(named, lang.Image))
		done(err)
		if err != nil {
			return err
		}
		err = do(image)
		if _, gone := errors.AsType[imageGone](err); !gone {
			return err
		}
		m.Images.Forget(image)
		if tried {
			return err
		}
	}
}

// imageGone is the error of a runtime that found no image.
type imageGone struct{ error }

func (g imageGone) Unwrap() error { return g.error }

// OfImage marks an error of a runtime that was to make something of an image.
func OfImage(err error) error {
	if errors.Is(err, sandbox.NotFound) {
		return imageGone{err}
	}
	return err
}

package images

import (
	"context"
	"errors"
	"time"

	"github.com/docker/docker/client"

	"github.com/caisson-dev/caisson/sandbox"
)

// Make makes an image of the catalogue, or pulls any other. It differs from
// [Store.Ensure] in that a way can be chosen, and that it can make an image
// again. Its errors are those of [Store.Ensure], and [sandbox.Unsupported] where
// the image does not come about in this way.
func (s *Store) Make(ctx context.Context, ref string, opts sandbox.MakeImageOptions) (sandbox.Image, error) {
	api, err := s.cfg.Engine.API(ctx)
	if err != nil {
		return sandbox.Image{}, err
	}
	img, err := s.obtain(ctx, api, ref, opts.Way, opts.Again)
	if err == nil {
		err = s.checkPin(ctx, img)
	}
	if err != nil {
		return sandbox.Image{}, err
	}
	s.remember(ref, img)
	return img, nil
}

// step is one way to an image of a recipe.
type step struct {
	way sandbox.ImageWay
	ref string // what it makes
	do  func(ctx context.Context) error
}

// steps lists the ways to an image, in their order.
func (s *Store) steps(api *client.Client, rec recipe, known bool, only sandbox.ImageWay) []step {
	var list []step
	add := func(possible bool, way sandbox.ImageWay, ref string, do func(context.Context) error) {
		if possible && (only == "" || only == way) {
			list = append(list, step{way, ref, do})
		}
	}
	if !known {
		add(!s.cfg.NoPull || only == sandbox.ImagePulled, sandbox.ImagePulled, rec.Ref, s.fetchStep(api, rec.Ref, rec.Ref, needs))
		return list
	}
	add(rec.Pull != "", sandbox.ImagePulled, rec.Ref, s.fetchStep(api, rec.Pull, rec.Ref, used))
	add(rec.Dockerfile != "", sandbox.ImageBuilt, rec.Ref, func(ctx context.Context) error { return s.build(ctx, api, rec) })
	add(rec.Assembled, sandbox.ImageAssembled, rec.Ref, func(ctx context.Context) error { return s.assembleNow(ctx, api, rec) })
	if rec.Offline != "" && !rec.Assembled {
		other, _ := s.cfg.Catalogue.recipeFor(rec.Offline)
		add(other.Assembled, sandbox.ImageAssembled, other.Ref, func(ctx context.Context) error { return s.assembleOther(ctx, api, other) })
	}
	return list
}

func (s *Store) fetchStep(api *client.Client, source, as string, who demand) func(context.Context) error {
	return func(ctx context.Context) error { return s.fetch(ctx, api, source, as, who) }
}

// obtain makes an image, unless another goroutine or process does so first.
func (s *Store) obtain(ctx context.Context, api *client.Client, ref string, only sandbox.ImageWay, again bool) (sandbox.Image, error) {
	pin, pinned, err := s.pinFor(ref)
	if err != nil {
		return sandbox.Image{}, err
	}
	unlock, err := lock(ctx, s.path("locks", lockName(ref)))
	if err != nil {
		return sandbox.Image{}, err
	}
	defer unlock()
	missing := errNotMade
	if !again {
		img, err := s.present(ctx, api, ref)
		if !errors.Is(err, sandbox.NotFound) {
			return img, err
		}
		missing = err
	}
	if pinned && pin.Digest != "" && only != sandbox.ImageBuilt && only != sandbox.ImageAssembled {
		if err := s.fetch(ctx, api, pin.Digest, ref, needs); err != nil {
			return sandbox.Image{}, err
		}
		return s.present(ctx, api, ref)
	}
	rec, known := s.cfg.Catalogue.recipeFor(ref)
	rec.Ref = ref
	steps := s.steps(api, rec, known, only)
	if len(steps) == 0 {
		return sandbox.Image{}, noWay(ref, only, missing)
	}
	for i, st := range steps {
		err = st.do(ctx)
		if err == nil {
			found, _ := s.cfg.Catalogue.recipeFor(st.ref)
			return s.inspect(ctx, api, st.ref, found)
		}
		if i+1 == len(steps) || !worthAnotherWay(ctx, err) {
			break
		}
		s.sayInstead(ref, err, steps[i+1])
	}
	return sandbox.Image{}, err
}

// errNotMade is where an image is made again, and no way leads to it.
var errNotMade error = sandbox.Errorf(sandbox.NotFound, "nothing says how it is made")

func noWay(ref string, only sandbox.ImageWay, missing error) error {
	if only != "" {
		return sandbox.Errorf(sandbox.Unsupported, "image %s does not come about in this way: %s", ref, only).
			WithHint("leave --from out, or see what the catalogue says of it")
	}
	return missing
}

// worthAnotherWay reports whether an error of one way is no reason to give up:
// it does not concern the image, the disk or the caller.
func worthAnotherWay(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	switch sandbox.KindOf(err) {
	case sandbox.Unavailable, sandbox.NotFound, sandbox.TimedOut, sandbox.Internal, sandbox.Unsupported:
		return true
	default:
		return false
	}
}

// ways in the words of a remark.
var wayWords = map[sandbox.ImageWay]string{sandbox.ImageBuilt: "building from its Dockerfile", sandbox.ImageAssembled: "assembling from Debian packages"}

// sayInstead is one line on what is done instead. That a registry is silent is
// said when it is found out, and not again.
func (s *Store) sayInstead(ref string, err error, next step) {
	if errors.Is(err, errKnownSilent) {
		return
	}
	s.say(ref, "%v: %s instead", err, wayWords[next.way])
}

// assembleOther assembles a stand-in, which has a lock of its own.
func (s *Store) assembleOther(ctx context.Context, api *client.Client, rec recipe) error {
	unlock, err := lock(ctx, s.path("locks", lockName(rec.Ref)))
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := s.inspect(ctx, api, rec.Ref, rec); !errors.Is(err, sandbox.NotFound) {
		return err
	}
	return s.assembleNow(ctx, api, rec)
}

// assembleNow assembles the image of a recipe, and says so.
func (s *Store) assembleNow(ctx context.Context, api *client.Client, rec recipe) error {
	if err := s.checkEngine(ctx, api); err != nil {
		return err
	}
	if err := s.tool.check(); err != nil {
		return err
	}
	start := s.cfg.Now()
	s.say(rec.Ref, "assembling from Debian packages, once; this takes half a minute")
	size, err := s.assemble(ctx, api, rec)
	if err != nil {
		s.done(rec.Ref, "")
		return err
	}
	s.done(rec.Ref, "assembled in %s, %s", s.cfg.Now().Sub(start).Round(100*time.Millisecond), size.Human())
	return nil
}

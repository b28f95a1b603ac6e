package service

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// Images is what the service needs of the images, beyond what the manager does.
type Images interface {
	manager.Images
	// Languages lists the catalogue.
	Languages() []sandbox.Language
	// LanguageOf tells a file's language by its name. Errors: Invalid.
	LanguageOf(file string) (string, error)
	// Lookup says whether an image is present, and its size, without making it.
	Lookup(ctx context.Context, ref string) (img sandbox.Image, size sandbox.Bytes, err error)
	// Make makes an image in a way of the caller's choice.
	Make(ctx context.Context, ref string, opts sandbox.MakeImageOptions) (sandbox.Image, error)
	// Pull fetches an image from its registry.
	Pull(ctx context.Context, ref string, opts sandbox.PullImageOptions) (sandbox.Image, error)
	// Pin writes what references are now into the lock file.
	Pin(ctx context.Context, refs ...string) ([]sandbox.ImagePin, error)
	// Verify compares what is pinned with what there is.
	Verify(ctx context.Context) ([]sandbox.ImageCheck, error)
	// Unpack unpacks an image, and Roots lists what is unpacked.
	Unpack(ctx context.Context, ref string) (sandbox.ImageRoot, error)
	Roots() ([]sandbox.ImageRoot, error)
	// Prune removes what the catalogue's recipes made once.
	Prune(ctx context.Context, dryRun bool) ([]sandbox.PrunedImage, error)
}

// Languages lists the catalogue with the state of its images.
func (s *Service) Languages(ctx context.Context) ([]api.LanguageInfo, error) {
	if _, err := may(ctx, reads); err != nil {
		return nil, err
	}
	var infos []api.LanguageInfo
	for _, l := range s.cfg.Images.Languages() {
		info := api.LanguageInfo{Language: l}
		img, size, err := s.cfg.Images.Lookup(ctx, l.Image)
		switch {
		case err == nil:
			info.Present, info.Image, info.ImageID, info.Size = true, img.Ref, img.ID, size
		case !errors.Is(err, sandbox.NotFound):
			return nil, err
		}
		infos = append(infos, info)
	}
	return infos, nil
}

// LanguageOf tells a file's language by its name.
func (s *Service) LanguageOf(file string) (string, error) { return s.cfg.Images.LanguageOf(file) }

// imageRef is the reference that a name stands for.
func (s *Service) imageRef(name string) string {
	if l, err := s.cfg.Images.Language(name); err == nil {
		return l.Image
	}
	return name
}

// EnsureImage makes an image present: a language's by its name, or any other by
// its reference.
func (s *Service) EnsureImage(ctx context.Context, name string) (sandbox.Image, error) {
	if _, err := may(ctx, uses); err != nil {
		return sandbox.Image{}, err
	}
	return s.cfg.Images.Ensure(ctx, s.imageRef(name))
}

// MakeImage makes an image in a way of the caller's choice, or again.
func (s *Service) MakeImage(ctx context.Context, name string, o sandbox.MakeImageOptions) (sandbox.Image, error) {
	if _, err := may(ctx, governs); err != nil {
		return sandbox.Image{}, err
	}
	if !slices.Contains([]sandbox.ImageWay{"", sandbox.ImagePulled, sandbox.ImageBuilt, sandbox.ImageAssembled}, o.Way) {
		return sandbox.Image{}, sandbox.Errorf(sandbox.Invalid, "no way to an image is called %q", o.Way).
			WithHint("the ways are pull, build and assemble")
	}
	return s.cfg.Images.Make(ctx, s.imageRef(name), o)
}

// PullImage fetches what a registry has now.
func (s *Service) PullImage(ctx context.Context, name string, o sandbox.PullImageOptions) (sandbox.Image, error) {
	if _, err := may(ctx, governs); err != nil {
		return sandbox.Image{}, err
	}
	return s.cfg.Images.Pull(ctx, s.imageRef(name), o)
}

// atOnce is how many images are made at the same time: they share the disk and
// the network.
const atOnce = 3

// PrewarmImages makes several images present at once.
func (s *Service) PrewarmImages(ctx context.Context, names []string) ([]api.ImageResult, error) {
	if _, err := may(ctx, uses); err != nil {
		return nil, err
	}
	if len(names) == 0 {
		for _, l := range s.cfg.Images.Languages() {
			if !l.IsVersion() {
				names = append(names, l.Name)
			}
		}
	}
	results := make([]api.ImageResult, len(names))
	room := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			img, err := s.EnsureImage(ctx, name)
			results[i] = api.ImageResult{Name: name, Image: img, Problem: sandbox.ProblemOfOne(err)}
		})
	}
	wg.Wait()
	return results, ctx.Err()
}

// PinImages writes what is present now into the lock file.
func (s *Service) PinImages(ctx context.Context, names []string) ([]sandbox.ImagePin, error) {
	if _, err := may(ctx, governs); err != nil {
		return nil, err
	}
	var refs []string
	for _, name := range names {
		img, _, err := s.cfg.Images.Lookup(ctx, s.imageRef(name))
		if err != nil {
			return nil, err
		}
		refs = append(refs, img.Ref)
	}
	if len(names) == 0 {
		infos, err := s.Languages(ctx)
		if err != nil {
			return nil, err
		}
		for _, i := range infos {
			if i.Present {
				refs = append(refs, i.Image)
			}
		}
	}
	return s.cfg.Images.Pin(ctx, refs...)
}

// VerifyImages compares what is pinned with what there is and what runs.
func (s *Service) VerifyImages(ctx context.Context) ([]sandbox.ImageCheck, error) {
	if _, err := may(ctx, governs); err != nil {
		return nil, err
	}
	return s.cfg.Images.Verify(ctx)
}

// PruneImages removes what caisson made once and would not make now.
func (s *Service) PruneImages(ctx context.Context, dryRun bool) ([]sandbox.PrunedImage, error) {
	if _, err := may(ctx, governs); err != nil {
		return nil, err
	}
	return s.cfg.Images.Prune(ctx, dryRun)
}

// UnpackImage unpacks an image.
func (s *Service) UnpackImage(ctx context.Context, name string) (sandbox.ImageRoot, error) {
	if _, err := may(ctx, governs); err != nil {
		return sandbox.ImageRoot{}, err
	}
	return s.cfg.Images.Unpack(ctx, s.imageRef(name))
}

// UnpackedImages lists what is unpacked.
func (s *Service) UnpackedImages(ctx context.Context) ([]sandbox.ImageRoot, error) {
	if _, err := may(ctx, governs); err != nil {
		return nil, err
	}
	return s.cfg.Images.Roots()
}

package images

import (
	"context"

	"github.com/caisson-dev/caisson/internal/dockerclient"
	"github.com/caisson-dev/caisson/sandbox"
)

// Languages lists the catalogue, sorted by name.
func (s *Store) Languages() []sandbox.Language {
	var list []sandbox.Language
	for _, name := range s.cfg.Catalogue.Names() {
		list = append(list, s.cfg.Catalogue.language(name))
	}
	return list
}

// LanguageOf tells a file's language by its suffix. Its error is
// [sandbox.Invalid] and says to name one.
func (s *Store) LanguageOf(file string) (string, error) {
	l, err := s.cfg.Catalogue.ForFile(file)
	return l.Name, err
}

// Lookup says whether an image is present and current, and how large it is,
// without making it. Of the catalogue's it may
// be the one that stands in. Its errors are [sandbox.NotFound] and the engine's.
func (s *Store) Lookup(ctx context.Context, ref string) (sandbox.Image, sandbox.Bytes, error) {
	api, err := s.cfg.Engine.API(ctx)
	if err != nil {
		return sandbox.Image{}, 0, err
	}
	img, err := s.present(ctx, api, ref)
	if err != nil {
		return sandbox.Image{}, 0, err
	}
	found, err := api.ImageInspect(ctx, img.ID)
	if err != nil {
		return sandbox.Image{}, 0, dockerclient.Wrap(err, "inspect image %s", ref)
	}
	return img, sandbox.Bytes(found.Size), nil
}

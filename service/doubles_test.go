package service_test

import (
	"context"
	"iter"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/service"
)

// none has nothing to tell.
type none struct{}

func (none) Subscribe(context.Context) iter.Seq[sandbox.AlertNews] {
	return func(func(sandbox.AlertNews) bool) {}
}

func (none) Examine(context.Context, api.Examined) ([]api.Check, error) { return nil, nil }

// catalogue knows one language, whose image is always there.
type catalogue struct{ service.Images }

var shell = sandbox.Language{Name: "shell", Suffixes: []string{".sh"}, Image: "shell", RunCode: []string{"sh", "-c", "{code}"}, RunFile: []string{"sh", "{file}"}}

func (catalogue) Language(name string) (sandbox.Language, error) {
	lang := shell
	if name == "python" {
		lang.Name = name
	}
	return lang, nil
}
func (catalogue) Languages() []sandbox.Language     { return []sandbox.Language{shell} }
func (catalogue) LanguageOf(string) (string, error) { return "shell", nil }
func (catalogue) Forget(sandbox.Image)              {}
func (catalogue) Ensure(_ context.Context, ref string) (sandbox.Image, error) {
	return sandbox.Image{Ref: ref, ID: "sha256:0"}, nil
}

func (c catalogue) Lookup(ctx context.Context, ref string) (sandbox.Image, sandbox.Bytes, error) {
	img, err := c.Ensure(ctx, ref)
	return img, 0, err
}

func (c catalogue) Make(ctx context.Context, ref string, _ sandbox.MakeImageOptions) (sandbox.Image, error) {
	return c.Ensure(ctx, ref)
}

func (c catalogue) Pull(ctx context.Context, ref string, _ sandbox.PullImageOptions) (sandbox.Image, error) {
	return c.Ensure(ctx, ref)
}
func (catalogue) Pin(context.Context, ...string) ([]sandbox.ImagePin, error) { return nil, nil }
func (catalogue) Verify(context.Context) ([]sandbox.ImageCheck, error)       { return nil, nil }
func (catalogue) Prune(context.Context, bool) ([]sandbox.PrunedImage, error) { return nil, nil }

func (catalogue) Roots() ([]sandbox.ImageRoot, error) { return nil, nil }
func (catalogue) Unpack(context.Context, string) (sandbox.ImageRoot, error) {
	return sandbox.ImageRoot{}, nil
}

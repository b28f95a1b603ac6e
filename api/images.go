package api

import (
	"context"

	"github.com/caisson-dev/caisson/sandbox"
)

// Languages are what can be run.
type Languages interface {
	// Languages lists them, with the state of their images.
	Languages(ctx context.Context) ([]LanguageInfo, error)
	// LanguageOf tells a file's language by its name. Errors: Invalid.
	LanguageOf(file string) (string, error)
}

// Images are what sandboxes are made of. Where a name is asked for, it is a
// language's, or an image's reference.
type Images interface {
	// EnsureImage makes an image present.
	EnsureImage(ctx context.Context, name string) (sandbox.Image, error)
	// MakeImage makes a language's image in a way of the caller's choice, or
	// again. Errors: those of EnsureImage, and Unsupported.
	MakeImage(ctx context.Context, name string, opts sandbox.MakeImageOptions) (sandbox.Image, error)
	// PullImage fetches what a registry has now. Errors: Conflict where that is
	// not what is pinned, Denied, NotFound, Unavailable, Unsupported.
	PullImage(ctx context.Context, name string, opts sandbox.PullImageOptions) (sandbox.Image, error)
	// PrewarmImages makes several images present at once, and says of each how
	// that went. Without names it is every language, in its usual version.
	PrewarmImages(ctx context.Context, names []string) ([]ImageResult, error)
	// PruneImages removes what caisson made once and would not make now.
	PruneImages(ctx context.Context, dryRun bool) ([]sandbox.PrunedImage, error)
}

// ImageRoots are images as folders of the host, for runtimes without an engine.
type ImageRoots interface {
	// UnpackImage makes an image present and unpacks it. What is unpacked already
	// stays as it is. Errors: those of EnsureImage.
	UnpackImage(ctx context.Context, name string) (sandbox.ImageRoot, error)
	// UnpackedImages lists what is unpacked, the newest first. It needs no engine.
	UnpackedImages(ctx context.Context) ([]sandbox.ImageRoot, error)
}

// ImageLock holds images to what they were once. Names are those of [Images].
type ImageLock interface {
	// PinImages writes what is present now into the lock file. Without names it
	// is every language whose image is there. Errors: NotFound, Invalid.
	PinImages(ctx context.Context, names []string) ([]sandbox.ImagePin, error)
	// VerifyImages compares what is pinned with what there is and what runs.
	VerifyImages(ctx context.Context) ([]sandbox.ImageCheck, error)
}

// LanguageInfo is a language and whether its image is there.
type LanguageInfo struct {
	sandbox.Language
	Present bool          `json:"present"`
	ImageID string        `json:"image_id,omitempty"`
	Size    sandbox.Bytes `json:"size_bytes,omitempty"`
}

// ImageResult is what came of one image among several.
type ImageResult struct {
	Name  string        `json:"name"`
	Image sandbox.Image `json:"image,omitzero"`
	// Problem is nil where the image is present.
	Problem *sandbox.Problem `json:"problem,omitempty"`
}

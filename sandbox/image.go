package sandbox

import (
	"slices"
	"strings"
	"time"
)

// Image is a container image that is present in the engine.
type Image struct {
	Ref string `json:"ref"`
	// ID is the content digest, "sha256:…". What runs is the ID, not the Ref.
	ID string `json:"id,omitempty"`
	// Env is the image's own environment, KEY=VALUE.
	Env []string `json:"env,omitempty"`
	// Volumes are the places for which the image wants volumes. A sandbox has
	// places there that are bounded, empty at first, and go with it.
	Volumes []string `json:"volumes,omitempty"`
	// Link is a folder of the image that is a link to the workspace, as its label
	// says; "" is none. Who judges programs takes paths below it to be the workspace's.
	Link string `json:"link,omitempty"`
}

// User is the name of who runs programs in a sandbox of the image: NAME where its link
// is /home/NAME.
func (i Image) User() string {
	name, ok := strings.CutPrefix(i.Link, "/home/")
	if !ok || strings.ContainsAny(name, "/:\n") || slices.Contains([]string{"", "root", "runner"}, name) {
		return "sandbox"
	}
	return name
}

// ImageRoot is an image as a folder of the host, from which runtimes without an
// engine make sandboxes, read-only.
type ImageRoot struct {
	Image Image     `json:"image"`
	Path  string    `json:"path"` // of the folder
	Size  Bytes     `json:"size_bytes"`
	Made  time.Time `json:"made"`
}

// ImageWay is how an image comes about.
type ImageWay string

// The ways, in the order in which they are tried.
const (
	ImagePulled    ImageWay = "pull"
	ImageBuilt     ImageWay = "build"
	ImageAssembled ImageWay = "assemble"
)

// MakeImageOptions say how an image is made. The zero value makes one that is
// missing, in whatever way can.
type MakeImageOptions struct {
	// Way is the only one to be tried. "" tries them in their order.
	Way ImageWay `json:"way,omitempty"`
	// Again makes it also where it is present.
	Again bool `json:"again,omitempty"`
}

// PullImageOptions say how an image is pulled.
type PullImageOptions struct {
	// Repin takes what the registry has now and pins it, in place of refusing what
	// differs from the lock file.
	Repin bool `json:"repin,omitempty"`
}

// ImagePin is what a reference is meant to be.
type ImagePin struct {
	Ref string `json:"ref,omitempty"` // "" in a lock file, which has it beside the pin
	// ID is the image's content digest: what runs is this or nothing.
	ID string `json:"id"`
	// Digest names the image in its registry, "repository@sha256:…", for who
	// wants to pull it. It is empty for an image that was assembled.
	Digest string `json:"digest,omitempty"`
	// Packages are those of an image that was made here, "name=version", sorted:
	// where it is made again and differs, they say in what.
	Packages []string `json:"packages,omitempty"`
}

// ImageState says whether an image is what it is pinned to.
type ImageState string

// The states.
const (
	ImageMatches ImageState = "matches" // it is the pinned one
	ImageDiffers ImageState = "differs" // the reference names another image
	ImageMissing ImageState = "missing" // the engine has no such image
)

// ImageCheck is what was found about one pinned reference, or about a sandbox that
// was made of it.
type ImageCheck struct {
	Ref   string     `json:"ref"`
	State ImageState `json:"state"`
	// Pinned and Found are content digests.
	Pinned string `json:"pinned"`
	Found  string `json:"found,omitempty"`
	// Sandbox names the container that runs what was found. It is "" for the
	// image that the reference names.
	Sandbox string `json:"sandbox,omitempty"`
	// Changes says in what packages an image that differs does so, where the pin
	// has them: "libssl3 was 3.0.15-1 and is 3.0.16-1".
	Changes []string `json:"changes,omitempty"`
}

// PrunedImage is an image, or a file that images are made of, that was removed or
// would be.
type PrunedImage struct {
	Name  string `json:"name"` // an image's content digest, or a file's path
	Size  Bytes  `json:"size_bytes"`
	InUse bool   `json:"in_use,omitempty"` // and was left therefore
}

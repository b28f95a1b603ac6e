package images

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/docker/docker/client"

	"github.com/caisson-dev/caisson/internal/dockerclient"
	"github.com/caisson-dev/caisson/sandbox"
)

// Labels of an image that caisson made. A container inherits them, so they
// stand apart from the labels of sandboxes.
const (
	LabelRecipe   = "dev.caisson.image.recipe"   // digest of the recipe
	LabelLanguage = "dev.caisson.image.language" // name in the catalogue
	LabelLink     = "dev.caisson.image.link"     // [sandbox.Image.Link]
)

// Config says where a [Store] finds and makes images.
type Config struct {
	// Engine is required.
	Engine *dockerclient.Client
	// Catalogue is [Builtin] where it is nil.
	Catalogue *Catalogue
	// StateDir holds locks, the shared base and work in progress. Required.
	StateDir string
	// Progress hears of long steps, from several goroutines. nil discards.
	Progress func(sandbox.Progress)
	// LockFile pins images, "" for none. It need not exist.
	LockFile string
	// Dockerfiles holds the folders that the catalogue's languages are built
	// from. nil: those with an absolute path alone can be.
	Dockerfiles fs.FS
	// Judge is asked before anything is built, and its error refuses. nil lets
	// every Dockerfile pass that the catalogue names.
	Judge func(ctx context.Context, build Build) error
	// Mirrors are asked before the registry of that name, in their order:
	// "docker.io" to "mirror.example/hub". What they hold is pulled under their
	// names and then gets its own.
	Mirrors map[string][]string
	// NoPull keeps what nobody has pulled from being pulled by being used.
	NoPull bool
	// Mirror is the Debian mirror to assemble from. "" is that of
	// CAISSON_DEBIAN_MIRROR, or else mmdebstrap's own choice.
	Mirror string
	// DockerConfig is the folder of docker's configuration, for its
	// credentials. "" is docker's own default.
	DockerConfig string
	// Now is the clock. nil is [time.Now].
	Now func() time.Time
}

// Store makes images present in one engine. It is safe for concurrent use,
// and so are several of them in several processes on one StateDir.
type Store struct {
	cfg  Config
	tool mmdebstrap
	need sandbox.Bytes // room to begin an assembly with
	// How long a registry may be silent before it counts as one that does not
	// answer: where there is another way, and where somebody asked for a pull.
	patience, pullPatience time.Duration

	mu   sync.Mutex
	seen map[string]sandbox.Image // by reference; guarded by mu
}

// New makes a Store. It touches neither the engine nor the disk. Its error is
// [sandbox.Invalid].
func New(cfg Config) (*Store, error) {
	if cfg.Engine == nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "images: no engine")
	}
	if cfg.StateDir == "" || !filepath.IsAbs(cfg.StateDir) {
		return nil, sandbox.Errorf(sandbox.Invalid, "images: state folder %q is not an absolute path", cfg.StateDir)
	}
	if cfg.Catalogue == nil {
		cfg.Catalogue = Builtin()
	}
	if cfg.Progress == nil {
		cfg.Progress = func(sandbox.Progress) {}
	}
	if cfg.Mirror == "" {
		cfg.Mirror = os.Getenv("CAISSON_DEBIAN_MIRROR")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Store{
		cfg: cfg, tool: mmdebstrap{mirror: cfg.Mirror}, need: needed, seen: map[string]sandbox.Image{},
		patience: 5 * time.Second, pullPatience: time.Minute,
	}, nil
}

// Catalogue is the catalogue in use.
func (s *Store) Catalogue() *Catalogue { return s.cfg.Catalogue }

// Language looks a language up by its name or an alias. Its error is
// [sandbox.Invalid] and lists those known.
func (s *Store) Language(name string) (sandbox.Language, error) {
	return s.cfg.Catalogue.Language(name)
}

// Ensure makes an image present: it takes what the engine has; else pulls it,
// where the catalogue or the user names a registry's image; else builds it from
// its Dockerfile; else assembles it from Debian packages. Of the catalogue's it
// may return the version that stands in where no registry answers.
//
// What this Store has seen before costs no call to the engine; where it was
// removed since, creating a container from it fails with [sandbox.NotFound],
// and [Store.Forget] makes the next Ensure look again.
//
// Its errors are [sandbox.NotFound] for an image that nobody has,
// [sandbox.Unavailable] where its registry does not answer,
// [sandbox.Unsupported] for one of another architecture and where assembling
// needs what this machine lacks, [sandbox.Conflict] where the image is not the
// one that the lock file pins, [sandbox.Denied] where a registry or
// [Config].Judge refuses, [sandbox.Exhausted] for a full disk, and those of the
// engine.
func (s *Store) Ensure(ctx context.Context, ref string) (sandbox.Image, error) {
	if ref == "" {
		return sandbox.Image{}, sandbox.Errorf(sandbox.Invalid, "no image is named").
			WithHint("name a language with -l, or an image with --image")
	}
	if img, ok := s.recall(ref); ok {
		return img, nil
	}
	api, err := s.cfg.Engine.API(ctx)
	if err != nil {
		return sandbox.Image{}, err
	}
	img, err := s.present(ctx, api, ref)
	if errors.Is(err, sandbox.NotFound) {
		img, err = s.obtain(ctx, api, ref, "", false)
	}
	if err == nil {
		err = s.checkPin(ctx, img)
	}
	if err != nil {
		return sandbox.Image{}, err
	}
	s.remember(ref, img)
	return img, nil
}

// present finds an image, or what stands in for it.
func (s *Store) present(ctx context.Context, api *client.Client, ref string) (sandbox.Image, error) {
	rec, _ := s.cfg.Catalogue.recipeFor(ref)
	img, err := s.inspect(ctx, api, ref, rec)
	if errors.Is(err, sandbox.NotFound) && rec.Offline != "" {
		other, _ := s.cfg.Catalogue.recipeFor(rec.Offline)
		if in, otherErr := s.inspect(ctx, api, rec.Offline, other); otherErr == nil {
			return in, nil
		}
	}
	return img, err
}

// Forget makes the next [Store.Ensure] of img ask the engine again.
func (s *Store) Forget(img sandbox.Image) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ref, seen := range s.seen { // also under the name that it stands in for
		if seen.ID == img.ID || ref == img.Ref {
			delete(s.seen, ref)
		}
	}
}

func (s *Store) recall(ref string) (sandbox.Image, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	img, ok := s.seen[ref]
	return owned(img), ok
}

func (s *Store) remember(ref string, img sandbox.Image) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[ref] = owned(img)
}

// owned is img with slices of its own.
func owned(img sandbox.Image) sandbox.Image {
	img.Env, img.Volumes = slices.Clone(img.Env), slices.Clone(img.Volumes)
	return img
}

// inspect reads a present image. An image that an older recipe made counts as
// missing; one that somebody else made is theirs.
func (s *Store) inspect(ctx context.Context, api *client.Client, ref string, rec recipe) (sandbox.Image, error) {
	found, err := s.find(ctx, api, ref)
	if errors.Is(err, sandbox.NotFound) {
		return sandbox.Image{}, sandbox.Errorf(sandbox.NotFound, "image %s is not in the engine", ref).
			WithHint("caisson images pull %s, or name a language: %s", ref, strings.Join(s.cfg.Catalogue.Names(), ", "))
	}
	if err != nil {
		return sandbox.Image{}, err
	}
	if err := s.checkArchitecture(ctx, api, ref, found.Os, found.Architecture); err != nil {
		return sandbox.Image{}, err
	}
	img := sandbox.Image{Ref: ref, ID: found.ID}
	if found.Config == nil {
		return img, nil
	}
	img.Env, img.Volumes, img.Link = found.Config.Env, slices.Sorted(maps.Keys(found.Config.Volumes)), found.Config.Labels[LabelLink]
	other := rec.Ref != "" && rec.pulledOther(found.RepoDigests)
	if rec.Ref != "" && !s.current(rec, found.Config.Labels[LabelRecipe]) {
		made, err := made(ctx, api, found.ID)
		if err != nil {
			return sandbox.Image{}, err
		}
		other = other || made
	}
	if other {
		return sandbox.Image{}, sandbox.Errorf(sandbox.NotFound, "image %s is of another recipe", ref)
	}
	return img, nil
}

// current reports whether an image's label is that of a recipe as it is now.
// One without a label was made by somebody else and is theirs.
func (s *Store) current(rec recipe, label string) bool {
	return label == "" || label == rec.digest() || label == s.buildDigest(rec)
}

// pulledOther reports whether an image was pulled from where the recipe says,
// and is not what it names there by digest.
func (r recipe) pulledOther(digests []string) bool {
	_, digest, pinned := strings.Cut(r.Pull, "@")
	if !pinned {
		return false
	}
	repository := repositoryOf(r.Pull)
	same := slices.DeleteFunc(slices.Clone(digests), func(d string) bool { return !strings.HasPrefix(d, repository+"@") })
	return len(same) > 0 && !slices.Contains(same, repository+"@"+digest)
}

// repositoryOf is a reference without its tag and digest.
func repositoryOf(ref string) string {
	ref, _, _ = strings.Cut(ref, "@")
	if i := strings.LastIndexByte(ref, ':'); i > strings.LastIndexByte(ref, '/') {
		ref = ref[:i]
	}
	return ref
}

// checkEngine refuses to assemble for an engine of another architecture.
func (s *Store) checkEngine(ctx context.Context, api *client.Client) error {
	system, arch, err := platform(ctx, api)
	if err == nil && (arch != runtime.GOARCH || system != "linux") {
		err = sandbox.Errorf(sandbox.Unsupported, "the engine is %s/%s, and images are assembled here for linux/%s", system, arch, runtime.GOARCH).
			WithHint("name an image that the engine has with --image, or build one from docker/")
	}
	return err
}

// checkArchitecture refuses an image that the engine's machine cannot run. A
// local engine is of this machine's kind, and need not be asked.
func (s *Store) checkArchitecture(ctx context.Context, api *client.Client, ref, system, arch string) error {
	if s.cfg.Engine.Local() && system == "linux" && arch == runtime.GOARCH {
		return nil
	}
	engineSystem, engineArch, err := platform(ctx, api)
	if err == nil && (system != engineSystem || arch != engineArch) {
		err = sandbox.Errorf(sandbox.Unsupported, "image %s is for %s/%s, and the engine is %s/%s", ref, system, arch, engineSystem, engineArch).
			WithHint("docker pull --platform %s/%s %s", engineSystem, engineArch, ref)
	}
	return err
}

func platform(ctx context.Context, api *client.Client) (system, arch string, err error) {
	v, err := api.ServerVersion(ctx)
	return v.Os, v.Arch, dockerclient.Wrap(err, "ask the engine for its architecture")
}

func (s *Store) path(elem ...string) string {
	return filepath.Join(append([]string{s.cfg.StateDir}, elem...)...)
}

// lockName makes a reference usable as a file's name.
func lockName(ref string) string {
	return strings.NewReplacer("/", "_", ":", "_", "@", "_").Replace(ref) + ".lock"
}

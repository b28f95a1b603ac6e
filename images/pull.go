package images

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/distribution/reference"
	"github.com/docker/docker/client"

	"github.com/caisson-dev/caisson/internal/dockerclient"
	"github.com/caisson-dev/caisson/internal/lazyregexp"
	"github.com/caisson-dev/caisson/sandbox"
)

// Pull fetches an image from its registry through the engine, also where it is
// present already, and returns what the reference names then. Credentials are
// those of docker's configuration. Two processes that pull the same image at
// once fetch it once.
//
// Its errors are [sandbox.Invalid] for a reference that is none,
// [sandbox.NotFound], [sandbox.Denied] where the registry wants other
// credentials, [sandbox.Unsupported] for an image of another architecture and
// for one that is made here, [sandbox.Conflict] where it is not what the lock
// file pins, [sandbox.Exhausted] for a full disk, and [sandbox.Unavailable]
// where the registry does not answer or not as it should.
func (s *Store) Pull(ctx context.Context, ref string, opts sandbox.PullImageOptions) (sandbox.Image, error) {
	rec, known := s.cfg.Catalogue.recipeFor(ref)
	source := ref
	if known {
		if source = rec.Pull; source == "" {
			return sandbox.Image{}, sandbox.Errorf(sandbox.Unsupported, "image %s is made here, and no registry has it", ref).
				WithHint("make it with: caisson images build %s", rec.Language)
		}
	}
	full, err := parse(source)
	if err != nil {
		return sandbox.Image{}, err
	}
	api, err := s.cfg.Engine.API(ctx)
	if err != nil {
		return sandbox.Image{}, err
	}
	unlock, err := lock(ctx, s.path("locks", lockName(full.String())))
	if err != nil {
		return sandbox.Image{}, err
	}
	defer unlock()
	if err := s.checkMoved(ctx, api, ref, full, opts); err != nil {
		return sandbox.Image{}, err
	}
	if err := s.fetch(ctx, api, source, ref, asked); err != nil {
		return sandbox.Image{}, err
	}
	img, err := s.inspect(ctx, api, ref, recipe{})
	if err == nil && opts.Repin {
		_, err = s.Pin(ctx, ref)
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

// parse reads a reference and completes it.
func parse(ref string) (reference.Named, error) {
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "image %q: %w", ref, err).
			WithHint("write REPOSITORY:TAG or REPOSITORY@sha256:…, in lower case")
	}
	return reference.TagNameOnly(named), nil
}

// checkMoved asks the registry, before anything is pulled, whether a pinned tag
// still names what it is pinned to.
func (s *Store) checkMoved(ctx context.Context, api *client.Client, ref string, full reference.Named, opts sandbox.PullImageOptions) error {
	pin, ok, err := s.pinFor(ref)
	if err != nil || !ok || pin.Digest == "" || opts.Repin {
		return err
	}
	auth, err := s.credentials(reference.Domain(full))
	if err != nil {
		return err
	}
	now, err := api.DistributionInspect(ctx, full.String(), auth)
	if err != nil {
		return pullError(ref, err)
	}
	_, pinned, _ := strings.Cut(pin.Digest, "@")
	if got := now.Descriptor.Digest.String(); got != pinned {
		return sandbox.Errorf(sandbox.Conflict, "the registry's %s is %s now, and %s pins %s", ref, short(got), filepath.Base(s.cfg.LockFile), short(pinned)).
			WithHint("docker pull %s takes the pinned one; caisson images pull --repin %s takes the new one and pins it", pin.Digest, ref)
	}
	return nil
}

// pullMessage is one line of the engine's answer to a pull.
type pullMessage struct {
	ID       string `json:"id"`
	Status   string `json:"status"`
	Error    string `json:"error"`
	Progress struct {
		Current sandbox.Bytes `json:"current"`
		Total   sandbox.Bytes `json:"total"`
	} `json:"progressDetail"`
}

// What the engine says of a registry, which it hands on as text alone. The
// first that matches counts.
var pullErrors = []struct {
	text func() *regexp.Regexp
	kind sandbox.Kind
	hint string // may name the image by %s
}{
	{lazyregexp.New(`(?i)no space left on device`), sandbox.Exhausted, "`docker system df` shows what uses the engine's disk"},
	{lazyregexp.New(`(?i)no matching manifest|does not match the specified platform`), sandbox.Unsupported, "name an image that is built for this machine's architecture"},
	// An engine that takes a registry for insecure tries TLS, is refused, and
	// tells of its second try alone.
	{lazyregexp.New(`(?i)HTTP request to an HTTPS server`), sandbox.Denied, "docker login to the registry of %s, as the same user, and check its certificate"},
	{lazyregexp.New(`(?i)verification failed|digest|content size of zero|invalid checksum|manifest verification`), sandbox.Unavailable, "the registry sent other bytes than it announced: pull from another registry or mirror"},
	{lazyregexp.New(`(?i)manifest unknown|not found|name unknown|does not exist`), sandbox.NotFound, "check the name and the tag of %s, and docker login where it is private"},
	{lazyregexp.New(`(?i)unauthorized|denied|authentication required|no basic auth`), sandbox.Denied, "docker login to the registry of %s, as the same user"},
	{lazyregexp.New(`(?i)no such host|connection refused|timeout|deadline|TLS|x509|certificate|EOF|reset by peer|50\d|too ?many requests|network is unreachable|temporary failure|lookup|server misbehaving|malformed HTTP`), sandbox.Unavailable, "check the network, the registry, and the engine's proxy and mirror settings"},
}

// pullError classes what a pull ended with.
func pullError(ref string, err error) error {
	for _, p := range pullErrors {
		if p.text().MatchString(err.Error()) {
			hint := p.hint
			if strings.Contains(hint, "%s") {
				hint = fmt.Sprintf(hint, ref)
			}
			return sandbox.Errorf(p.kind, "pull %s: %w", ref, err).WithHint("%s", hint)
		}
	}
	return dockerclient.Wrap(err, "pull %s", ref)
}

// brokeOff are errors of the way, which may be gone a moment later.
var brokeOff = lazyregexp.New(`(?i)EOF|reset by peer|broken pipe|50[0234]|timeout|too ?many requests|server misbehaving`)

func worthAnotherTry(err error) bool { return brokeOff().MatchString(err.Error()) }

package images

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"

	"github.com/caisson-dev/caisson/internal/dockerclient"
	"github.com/caisson-dev/caisson/sandbox"
)

// How often a pull that broke off is taken up again, and how long it waits
// before. Layers that were complete are not fetched twice.
const (
	pullTries = 3
	pullPause = time.Second
)

// Pull fetches an image from its registry through the engine, also where it is
// present already, and returns what the reference names then. Credentials are
// those of docker's configuration. Two processes that pull the same image at
// once fetch it once.
//
// Its errors are [sandbox.Invalid] for a reference that is none,
// [sandbox.NotFound], [sandbox.Denied] where the registry wants other
// credentials, [sandbox.Unsupported] for an image of another architecture,
// [sandbox.Exhausted] for a full disk, and [sandbox.Unavailable] where the
// registry does not answer or not as it should.
func (s *Store) Pull(ctx context.Context, ref string) (sandbox.Image, error) {
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return sandbox.Image{}, sandbox.Errorf(sandbox.Invalid, "image %q: %w", ref, err).
			WithHint("write REPOSITORY:TAG or REPOSITORY@sha256:…, in lower case")
	}
	full := reference.TagNameOnly(named)
	api, err := s.cfg.Engine.API(ctx)
	if err != nil {
		return sandbox.Image{}, err
	}
	auth, err := s.credentials(reference.Domain(named))
	if err != nil {
		return sandbox.Image{}, err
	}
	unlock, err := lock(ctx, s.path("locks", lockName(full.String())))
	if err != nil {
		return sandbox.Image{}, err
	}
	defer unlock()
	for try := 1; ; try++ {
		err = s.pullOnce(ctx, api, full.String(), auth)
		if err == nil || try == pullTries || !worthAnotherTry(err) || ctx.Err() != nil {
			break
		}
		s.say("%s: broke off (%v), trying again", ref, err)
		select {
		case <-ctx.Done():
		case <-time.After(pullPause):
		}
	}
	switch {
	case ctx.Err() != nil:
		return sandbox.Image{}, waitError(ctx, "pull "+ref)
	case err != nil:
		return sandbox.Image{}, pullError(ref, err)
	}
	img, err := s.inspect(ctx, api, ref, recipe{})
	if err == nil {
		err = s.checkPin(img)
	}
	if err == nil {
		s.remember(img)
		s.say("%s: pulled", ref)
	}
	return img, err
}

// pullOnce asks the engine to pull, and reports its progress until it is done.
func (s *Store) pullOnce(ctx context.Context, api *client.Client, ref, auth string) error {
	body, err := api.ImagePull(ctx, ref, image.PullOptions{RegistryAuth: auth})
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	p := progress{say: func(text string) { s.say("%s: %s", ref, text) }, now: s.cfg.Now}
	for dec := json.NewDecoder(body); ; {
		var m pullMessage
		if err := dec.Decode(&m); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("read the engine's answer: %w", err)
		}
		if m.Error != "" {
			return errors.New(m.Error)
		}
		p.add(m)
	}
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

// progress sums up the layers of a pull, and says so every few seconds.
type progress struct {
	say    func(text string)
	now    func() time.Time
	layers map[string][2]sandbox.Bytes
	last   time.Time
}

const progressEvery = 2 * time.Second

func (p *progress) add(m pullMessage) {
	if p.layers == nil {
		p.layers, p.last = map[string][2]sandbox.Bytes{}, p.now()
	}
	if m.Status != "Downloading" || m.Progress.Total <= 0 {
		return
	}
	p.layers[m.ID] = [2]sandbox.Bytes{m.Progress.Current, m.Progress.Total}
	if p.now().Sub(p.last) < progressEvery {
		return
	}
	p.last = p.now()
	var current, total sandbox.Bytes
	for _, l := range p.layers {
		current, total = current+l[0], total+l[1]
	}
	p.say(fmt.Sprintf("%s of %s", current.Human(), total.Human()))
}

// What the engine says of a registry, which it hands on as text alone. The
// first that matches counts.
var pullErrors = []struct {
	text *regexp.Regexp
	kind sandbox.Kind
	hint string // may name the image by %s
}{
	{regexp.MustCompile(`(?i)no space left on device`), sandbox.Exhausted, "`docker system df` shows what uses the engine's disk"},
	{regexp.MustCompile(`(?i)no matching manifest|does not match the specified platform`), sandbox.Unsupported, "name an image that is built for this machine's architecture"},
	// An engine that takes a registry for insecure tries TLS, is refused, and
	// tells of its second try alone.
	{regexp.MustCompile(`(?i)HTTP request to an HTTPS server`), sandbox.Denied, "docker login to the registry of %s, as the same user, and check its certificate"},
	{regexp.MustCompile(`(?i)verification failed|digest|content size of zero|invalid checksum|manifest verification`), sandbox.Unavailable, "the registry sent other bytes than it announced: pull from another registry or mirror"},
	{regexp.MustCompile(`(?i)manifest unknown|not found|name unknown|does not exist`), sandbox.NotFound, "check the name and the tag of %s, and docker login where it is private"},
	{regexp.MustCompile(`(?i)unauthorized|denied|authentication required|no basic auth`), sandbox.Denied, "docker login to the registry of %s, as the same user"},
	{regexp.MustCompile(`(?i)no such host|connection refused|timeout|deadline|TLS|x509|certificate|EOF|reset by peer|50\d|too ?many requests|network is unreachable|temporary failure|lookup|server misbehaving|malformed HTTP`), sandbox.Unavailable, "check the network, the registry, and the engine's proxy and mirror settings"},
}

// pullError classes what a pull ended with.
func pullError(ref string, err error) error {
	for _, p := range pullErrors {
		if p.text.MatchString(err.Error()) {
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
var brokeOff = regexp.MustCompile(`(?i)EOF|reset by peer|broken pipe|50[0234]|timeout|too ?many requests|server misbehaving`)

func worthAnotherTry(err error) bool { return brokeOff.MatchString(err.Error()) }

package images

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"

	"github.com/caisson-dev/caisson/internal/dockerclient"
	"github.com/caisson-dev/caisson/internal/lazyregexp"
	"github.com/caisson-dev/caisson/sandbox"
)

// How often a pull that broke off is taken up again, and how long it waits
// before. Layers that were complete are not fetched twice.
const (
	pullTries = 3
	pullPause = time.Second
)

// silence is how long a registry that did not answer is not asked again, by
// whatever process, unless somebody asks for a pull.
const silence = 10 * time.Minute

// errSilent marks a registry that does not answer, errKnownSilent one that was
// found out before.
var (
	errSilent      = errors.New("the registry does not answer")
	errKnownSilent = fmt.Errorf("%w, as was found out a short while ago", errSilent)
)

// demand says who wants an image pulled.
type demand int

const (
	asked demand = iota // somebody asked for the pull, and is patient
	needs               // there is no other way to the image
	used                // there is another way: a registry known to be silent is not asked
)

// fetch pulls source, or what a mirror has of it, and names it as; a name with
// a digest cannot be given, and [Store.find] knows it by the mirror's. The
// caller holds the lock of what it makes.
func (s *Store) fetch(ctx context.Context, api *client.Client, source, as string, who demand) error {
	full, err := parse(source)
	if err != nil {
		return err
	}
	domain := reference.Domain(full)
	if who == used && s.silent(domain) {
		return silentError(as, domain, errKnownSilent)
	}
	mirrored, err := s.mirrored(full)
	if err != nil {
		return err
	}
	for n, other := range mirrored {
		err = s.pull(ctx, api, other, as, who)
		if err == nil {
			return s.name(ctx, api, other, as, true)
		}
		if ctx.Err() != nil {
			return err
		}
		s.say(as, "mirror %s: %v", s.cfg.Mirrors[domain][n], err)
	}
	if err := s.pull(ctx, api, full, as, who); err != nil {
		return err
	}
	return s.name(ctx, api, full, as, false)
}

// mirrored is what the mirrors of a reference's registry call it.
func (s *Store) mirrored(full reference.Named) ([]reference.Named, error) {
	var list []reference.Named
	domain := reference.Domain(full)
	for _, mirror := range s.cfg.Mirrors[domain] {
		other, err := parse(mirror + strings.TrimPrefix(full.String(), domain))
		if err != nil {
			return nil, err
		}
		list = append(list, other)
	}
	return list, nil
}

// find inspects an image. One that is named by its digest may have come from a
// mirror, and is the same there.
func (s *Store) find(ctx context.Context, api *client.Client, ref string) (image.InspectResponse, error) {
	found, err := api.ImageInspect(ctx, ref)
	err = dockerclient.Wrap(err, "inspect image %s", ref)
	full, parseErr := parse(ref)
	if _, digested := full.(reference.Digested); parseErr != nil || !digested || !errors.Is(err, sandbox.NotFound) {
		return found, err
	}
	mirrored, _ := s.mirrored(full) // one that cannot be named has nothing
	for _, other := range mirrored {
		if found, otherErr := api.ImageInspect(ctx, other.String()); otherErr == nil {
			return found, nil
		}
	}
	return found, err
}

// name gives a pulled image the name that it was pulled for, and takes a
// mirror's away.
func (s *Store) name(ctx context.Context, api *client.Client, pulled reference.Named, as string, mirror bool) error {
	want, err := parse(as)
	if err != nil {
		return err
	}
	if _, digested := want.(reference.Digested); digested || pulled.String() == want.String() {
		return nil
	}
	if err := api.ImageTag(ctx, pulled.String(), as); err != nil {
		return dockerclient.Wrap(err, "name the image %s", as)
	}
	if _, tagged := pulled.(reference.Tagged); tagged && mirror {
		_, err = api.ImageRemove(ctx, pulled.String(), image.RemoveOptions{})
	}
	return dockerclient.Wrap(err, "take the name %s away", pulled)
}

// pull asks the engine to pull a reference, a few times where it breaks off.
func (s *Store) pull(ctx context.Context, api *client.Client, full reference.Named, as string, who demand) error {
	domain := reference.Domain(full)
	if who == used && s.silent(domain) {
		return silentError(as, domain, errKnownSilent)
	}
	auth, err := s.credentials(domain)
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		err = s.pullOnce(ctx, api, full.String(), as, auth, who)
		if err == nil || try == pullTries || !worthAnotherTry(err) || ctx.Err() != nil {
			break
		}
		s.say(as, "broke off (%v), trying again", err)
		select {
		case <-ctx.Done():
		case <-time.After(pullPause):
		}
	}
	switch {
	case ctx.Err() != nil:
		s.done(as, "")
		return waitError(ctx, "pull "+as)
	case err == nil:
		s.done(as, "pulled")
		s.markAnswering(domain)
		return nil
	}
	s.done(as, "")
	if errors.Is(err, errSilent) || unreachable().MatchString(err.Error()) {
		s.markSilent(domain)
		return silentError(as, domain, err)
	}
	return pullError(as, err)
}

// pullOnce asks the engine to pull, and reports its progress until it is done.
// An engine says its first word when it has spoken with the registry: until
// then, patience is bounded.
func (s *Store) pullOnce(ctx context.Context, api *client.Client, ref, as, auth string, who demand) error {
	patience := s.patience
	if who == asked {
		patience = s.pullPatience
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(patience, func() { cancel(errSilent) })
	defer timer.Stop()
	err := s.readPull(ctx, api, ref, as, auth, func() { timer.Stop() })
	if err != nil && errors.Is(context.Cause(ctx), errSilent) {
		return fmt.Errorf("%w within %s", errSilent, patience)
	}
	return err
}

func (s *Store) readPull(ctx context.Context, api *client.Client, ref, as, auth string, answered func()) error {
	body, err := api.ImagePull(ctx, ref, image.PullOptions{RegistryAuth: auth})
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	sum := layers{}
	for dec := json.NewDecoder(body); ; {
		var m pullMessage
		if err := dec.Decode(&m); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("read the engine's answer: %w", err)
		}
		answered()
		if m.Error != "" {
			return errors.New(m.Error)
		}
		if current, total, changed := sum.add(m); changed {
			s.cfg.Progress(sandbox.Progress{Ref: as, Current: current, Total: total})
		}
	}
}

// unreachable is what the engine says of a registry that it did not reach.
var unreachable = lazyregexp.New(`(?i)no such host|connection refused|i/o timeout|timeout exceeded|network is unreachable|no route to host|temporary failure in name resolution|server misbehaving`)

// silentError is for a registry that does not answer. Of what the engine says
// the end alone tells anything.
func silentError(as, domain string, err error) error {
	if !errors.Is(err, errSilent) {
		text := err.Error()
		err = fmt.Errorf("%w: %s", errSilent, strings.TrimSpace(text[strings.LastIndex(text, ":")+1:]))
	}
	return sandbox.Errorf(sandbox.Unavailable, "pull %s: %s: %w", as, domain, err).
		WithHint("check the name, the network, the registry, and the engine's proxy and mirror settings")
}

func (s *Store) silentNote(domain string) string { return s.path("silent", lockName(domain)) }

// silent reports whether a registry was found not to answer, a short while ago.
func (s *Store) silent(domain string) bool {
	st, err := os.Stat(s.silentNote(domain))
	return err == nil && s.cfg.Now().Sub(st.ModTime()) < silence
}

// markSilent leaves a note for every process with this state folder. Where it
// cannot be left, the next one finds out by itself.
func (s *Store) markSilent(domain string) {
	if err := os.MkdirAll(s.path("silent"), 0o700); err == nil {
		_ = os.WriteFile(s.silentNote(domain), nil, 0o600)
	}
}

func (s *Store) markAnswering(domain string) { _ = os.Remove(s.silentNote(domain)) }

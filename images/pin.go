package images

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"

	"github.com/caisson-dev/caisson/internal/dockerclient"
	"github.com/caisson-dev/caisson/sandbox"
)

// Pins is the content of a lock file, by reference.
type Pins map[string]sandbox.ImagePin

// lockFile is the form of the file, images.lock.
type lockFile struct {
	Version int  `json:"version"`
	Images  Pins `json:"images"`
}

// ReadPins reads a lock file. One that is not there holds no pins. Its errors
// are [sandbox.Invalid] for a file that is not one.
func ReadPins(name string) (Pins, error) {
	data, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return Pins{}, nil
	}
	if err != nil {
		return nil, diskError(err, "read the lock file")
	}
	var f lockFile
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	err = dec.Decode(&f)
	if err == nil && f.Version != 1 {
		err = errors.New("its version is not 1")
	}
	for ref, p := range f.Images {
		if !strings.HasPrefix(p.ID, "sha256:") && err == nil {
			err = errors.New("the id of " + ref + " is not sha256:…")
		}
	}
	if err != nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "lock file %s: %w", name, err).
			WithHint("mend it, or remove it and pin the images again")
	}
	if f.Images == nil {
		f.Images = Pins{}
	}
	return f.Images, nil
}

// pinFor looks a reference up in the lock file.
func (s *Store) pinFor(ref string) (sandbox.ImagePin, bool, error) {
	if s.cfg.LockFile == "" {
		return sandbox.ImagePin{}, false, nil
	}
	pins, err := ReadPins(s.cfg.LockFile)
	pin, ok := pins[ref]
	return pin, ok, err
}

// write puts the pins into a file, whole or not at all.
func (p Pins) write(name string) error {
	data, err := json.MarshalIndent(lockFile{Version: 1, Images: p}, "", "  ")
	if err != nil {
		return sandbox.Errorf(sandbox.Internal, "write the lock file: %w", err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(name), ".images.lock-*")
	if err != nil {
		return diskError(err, "write the lock file")
	}
	defer func() { _ = os.Remove(tmp.Name()) }() // gone already where all went well
	_, err = tmp.Write(append(data, '\n'))
	err = errors.Join(err, tmp.Chmod(0o644), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), name)
	}
	if err != nil {
		return diskError(err, "write the lock file")
	}
	return nil
}

// Pin writes what refs are now into the lock file, beside what it holds
// already, and returns all that it holds then. The images must be present. Its
// errors are [sandbox.Invalid] where the Store has no lock file,
// [sandbox.NotFound], and the engine's.
func (s *Store) Pin(ctx context.Context, refs ...string) ([]sandbox.ImagePin, error) {
	if s.cfg.LockFile == "" {
		return nil, sandbox.Errorf(sandbox.Invalid, "no lock file is configured").WithHint("name one, such as images.lock")
	}
	unlock, err := lock(ctx, s.path("locks", "pins.lock"))
	if err != nil {
		return nil, err
	}
	defer unlock()
	pins, err := ReadPins(s.cfg.LockFile)
	if err != nil {
		return nil, err
	}
	for _, ref := range refs {
		pin, err := s.pinOf(ctx, ref)
		if err == nil && pin.made {
			pin.Packages, err = s.packagesOf(ctx, pin.ID)
		}
		if err != nil {
			return nil, err
		}
		pins[ref] = pin.ImagePin
	}
	return pins.list(), pins.write(s.cfg.LockFile)
}

// list has the pins with their references, by these.
func (p Pins) list() []sandbox.ImagePin {
	list := make([]sandbox.ImagePin, 0, len(p))
	for _, ref := range slices.Sorted(maps.Keys(p)) {
		pin := p[ref]
		pin.Ref = ref
		list = append(list, pin)
	}
	return list
}

// pinNow is the pin that a reference would get now, but for its packages.
type pinNow struct {
	sandbox.ImagePin
	made bool // by caisson, here
}

func (s *Store) pinOf(ctx context.Context, ref string) (pinNow, error) {
	api, err := s.cfg.Engine.API(ctx)
	if err != nil {
		return pinNow{}, err
	}
	found, err := s.find(ctx, api, ref)
	if err != nil {
		return pinNow{}, err
	}
	pin := pinNow{ImagePin: sandbox.ImagePin{ID: found.ID}}
	if len(found.RepoDigests) > 0 {
		pin.Digest = slices.Min(found.RepoDigests)
	}
	pin.made = pin.Digest == "" && found.Config != nil && found.Config.Labels[LabelRecipe] != ""
	return pin, nil
}

func (s *Store) packagesOf(ctx context.Context, id string) ([]string, error) {
	api, err := s.cfg.Engine.API(ctx)
	if err != nil {
		return nil, err
	}
	return packages(ctx, api, id)
}

// compare says in what packages an image differs from a pin, where that is
// known.
func (s *Store) compare(ctx context.Context, pin sandbox.ImagePin, id string) (list []string, known bool, err error) {
	if len(pin.Packages) == 0 || id == "" {
		return nil, false, nil
	}
	now, err := s.packagesOf(ctx, id)
	return changes(pin.Packages, now), err == nil, err
}

// checkPin refuses an image that is not the one that its reference is pinned
// to: the tag has moved, or its packages have.
func (s *Store) checkPin(ctx context.Context, img sandbox.Image) error {
	pin, ok, err := s.pinFor(img.Ref)
	if err != nil || !ok || pin.ID == img.ID {
		return err
	}
	list, known, err := s.compare(ctx, pin, img.ID)
	if err != nil {
		return err
	}
	moved := sandbox.Errorf(sandbox.Conflict, "image %s is %s, and %s pins %s%s",
		img.Ref, short(img.ID), filepath.Base(s.cfg.LockFile), short(pin.ID), whatDiffers(list, known))
	if pin.Digest != "" {
		return moved.WithHint("docker rmi %s, and the pinned one is pulled again; or accept what is there now: caisson images pin %s", img.Ref, img.Ref)
	}
	return moved.WithHint("bring the pinned image back with docker load, or accept what is there now: caisson images pin %s", img.Ref)
}

// short is enough of a digest to tell two apart.
func short(id string) string { return id[:min(len(id), len("sha256:")+12)] }

// Verify compares every pinned image with what the engine has, and with what
// the sandboxes of languages run, in the order of the references. That one
// differs is data, not an error.
func (s *Store) Verify(ctx context.Context) ([]sandbox.ImageCheck, error) {
	pins, err := ReadPins(s.cfg.LockFile)
	if err != nil {
		return nil, err
	}
	checks := []sandbox.ImageCheck{}
	for ref, pin := range pins {
		check := sandbox.ImageCheck{Ref: ref, State: sandbox.ImageMatches, Pinned: pin.ID}
		now, err := s.pinOf(ctx, ref)
		switch {
		case errors.Is(err, sandbox.NotFound):
			check.State = sandbox.ImageMissing
		case err != nil:
			return nil, err
		case now.ID != pin.ID:
			check.State = sandbox.ImageDiffers
			if check.Changes, _, err = s.compare(ctx, pin, now.ID); err != nil {
				return nil, err
			}
		}
		check.Found = now.ID
		checks = append(checks, check)
	}
	running, err := s.verifyRunning(ctx, pins)
	checks = append(checks, running...)
	slices.SortFunc(checks, func(a, b sandbox.ImageCheck) int {
		return cmp.Or(strings.Compare(a.Ref, b.Ref), strings.Compare(a.Sandbox, b.Sandbox))
	})
	return checks, err
}

// labelSandboxLanguage is on every sandbox of a language's.
const labelSandboxLanguage = "dev.caisson.language"

// verifyRunning looks at the sandboxes whose language has a pinned image, and
// returns those that run another one.
func (s *Store) verifyRunning(ctx context.Context, pins Pins) ([]sandbox.ImageCheck, error) {
	if len(pins) == 0 {
		return nil, nil
	}
	api, err := s.cfg.Engine.API(ctx)
	if err != nil {
		return nil, err
	}
	found, err := api.ContainerList(ctx, container.ListOptions{Filters: filters.NewArgs(filters.Arg("label", labelSandboxLanguage))})
	if err != nil {
		return nil, dockerclient.Wrap(err, "list sandboxes")
	}
	var checks []sandbox.ImageCheck
	for _, c := range found {
		ref, wanted := s.pinsOf(c.Labels[labelSandboxLanguage], pins)
		if c.Labels[LabelLanguage] == "" || len(wanted) == 0 || slices.Contains(wanted, c.ImageID) || len(c.Names) == 0 {
			continue
		}
		// A sandbox of an image that its user named is not what is pinned, and
		// not meant to be.
		if made, err := made(ctx, api, c.ImageID); err != nil || !made {
			if err != nil {
				return nil, err
			}
			continue
		}
		checks = append(checks, sandbox.ImageCheck{Ref: ref, State: sandbox.ImageDiffers, Pinned: wanted[0], Found: c.ImageID, Sandbox: strings.TrimPrefix(c.Names[0], "/")})
	}
	return checks, nil
}

// pinsOf returns the pinned images that a language's sandboxes may be made of:
// its own, and the one that stands in for it.
func (s *Store) pinsOf(language string, pins Pins) (ref string, ids []string) {
	l, err := s.cfg.Catalogue.Language(language)
	if err != nil {
		return "", nil
	}
	rec, _ := s.cfg.Catalogue.recipeFor(l.Image)
	for _, name := range []string{l.Image, rec.Offline} {
		if pin, ok := pins[name]; ok {
			ref, ids = cmp.Or(ref, name), append(ids, pin.ID)
		}
	}
	return ref, ids
}

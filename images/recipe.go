package images

import (
	"archive/tar"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/internal/lazyregexp"
	"github.com/caisson-dev/caisson/sandbox"
)

// base is what every assembled image stands on.
type base struct {
	Suite    string   `yaml:"suite" json:"suite"`
	Packages []string `yaml:"packages" json:"packages"`
}

// recipe is everything that decides what an assembled image holds.
type recipe struct {
	Language string   `json:"language"`
	Ref      string   `json:"ref"`
	Base     base     `json:"base"`
	Packages []string `json:"packages"`
	Format   int      `json:"format"`
	additions

	// How else the image may come about; not part of what is assembled.
	Pull       string `json:"-"`
	From       string `json:"-"`
	Dockerfile string `json:"-"`
	Assembled  bool   `json:"-"` // whether it can be
	Offline    string `json:"-"` // the image that stands in for this one
}

// additions are what an assembled image has beside its packages.
type additions struct {
	// Link is a link to the workspace, [sandbox.Image.Link].
	Link string `yaml:"link" json:"link,omitempty"`
	// Programs are scripts, by their places.
	Programs map[string]string `yaml:"programs" json:"programs,omitempty"`
}

// check says what is wrong with them, "" where nothing is.
func (a additions) check() string {
	for _, name := range slices.Sorted(maps.Keys(a.Programs)) {
		if !validPlace().MatchString(name) {
			return "programs: " + name + " is not a path from the top"
		}
	}
	if a.Link != "" && (!validPlace().MatchString(a.Link) || sandbox.Within(a.Link, sandbox.Writable(nil))) {
		return "link: " + a.Link + " is not a path from the top, or one that something is mounted over"
	}
	return ""
}

// validPlace is a path as it is written once it is clean.
var validPlace = lazyregexp.New(`^(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+$`)

// write makes a layer of them in a file.
func (a additions) write(name string) (layer, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return layer{}, err
	}
	defer func() { _ = f.Close() }()
	out := newHashing(f)
	w := tar.NewWriter(out)
	for _, at := range slices.Sorted(maps.Keys(a.Programs)) {
		text := a.Programs[at]
		err = errors.Join(err, w.WriteHeader(&tar.Header{Name: at[1:], Mode: 0o755, Size: int64(len(text)), ModTime: epoch}))
		_, writeErr := io.WriteString(w, text)
		err = errors.Join(err, writeErr)
	}
	if a.Link != "" {
		err = errors.Join(err, w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: a.Link[1:], Linkname: sandbox.WorkspaceDir, Mode: 0o777, ModTime: epoch}))
	}
	err = errors.Join(err, w.Close(), f.Close())
	return layer{file: name, digest: out.digest(), size: out.size}, err
}

// recipeFormat is raised when the way of assembling changes what an image
// holds, so that images of an older caisson are made anew.
const recipeFormat = 1

// recipeFor finds the recipe of an image. One of the catalogue's with the names of
// further packages behind it, as in caisson/python:3.11_python3-numpy, is assembled of
// all these.
func (c *Catalogue) recipeFor(ref string) (recipe, bool) {
	plain, more, _ := strings.Cut(ref, "_")
	if n, ok := c.images[plain]; ok && c.entries[n].Packages != nil && packageNames().MatchString(more) {
		rec := c.recipeOf(plain, n)
		rec.Ref, rec.Pull, rec.From, rec.Dockerfile, rec.Offline = ref, "", "", "", ""
		rec.Packages = slices.Concat(rec.Packages, strings.Split(more, "_"))
		return rec, true
	}
	n, ok := c.images[ref]
	if !ok {
		return recipe{}, false
	}
	return c.recipeOf(ref, n), true
}

// packageNames are names of Debian packages as they can stand in a tag, with _ between.
var packageNames = lazyregexp.New(`^[a-z0-9][a-z0-9.-]+(_[a-z0-9][a-z0-9.-]+)*$`)

func (c *Catalogue) recipeOf(ref, n string) recipe {
	e := c.entries[n]
	bottom := base{Suite: cmp.Or(e.Suite, c.base.Suite), Packages: c.base.Packages}
	language, _, _ := strings.Cut(n, "@") // a version's packages say which it is
	rec := recipe{
		Language: language, Ref: ref, Base: bottom, Packages: e.Packages, Format: recipeFormat, additions: e.additions,
		Pull: e.Pull, From: e.From, Dockerfile: e.Dockerfile, Assembled: e.Packages != nil,
	}
	if e.Offline != "" {
		rec.Offline = e.Versions[e.Offline].Image
	}
	return rec
}

// digest names the recipe by its content.
func (r recipe) digest() string { return contentDigest(r) }

// baseName names the part of the recipe that the languages share.
func (r recipe) baseName() string {
	return "base-" + contentDigest(recipe{Base: r.Base, Format: r.Format})[:16]
}

func contentDigest(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // plain data
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

package images

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
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

	// How else the image may come about; not part of what is assembled.
	Pull       string `json:"-"`
	From       string `json:"-"`
	Dockerfile string `json:"-"`
	Assembled  bool   `json:"-"` // whether it can be
	Offline    string `json:"-"` // the image that stands in for this one
}

// recipeFormat is raised when the way of assembling changes what an image
// holds, so that images of an older caisson are made anew.
const recipeFormat = 1

// recipeFor finds the recipe of an image.
func (c *Catalogue) recipeFor(ref string) (recipe, bool) {
	n, ok := c.images[ref]
	if !ok {
		return recipe{}, false
	}
	e := c.entries[n]
	bottom := base{Suite: cmp.Or(e.Suite, c.base.Suite), Packages: c.base.Packages}
	language, _, _ := strings.Cut(n, "@") // a version's packages say which it is
	rec := recipe{
		Language: language, Ref: ref, Base: bottom, Packages: e.Packages, Format: recipeFormat,
		Pull: e.Pull, From: e.From, Dockerfile: e.Dockerfile, Assembled: e.Packages != nil,
	}
	if e.Offline != "" {
		rec.Offline = e.Versions[e.Offline].Image
	}
	return rec, true
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

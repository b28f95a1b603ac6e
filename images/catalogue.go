package images

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // for the catalogue's data
	"encoding/hex"
	"encoding/json"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/caisson-dev/caisson/sandbox"
)

//go:embed catalogue.yaml
var builtin []byte

// Catalogue is the set of known languages. It does not change after it was
// made and is safe for concurrent use.
type Catalogue struct {
	base    base
	entries map[string]entry  // by name
	names   map[string]string // name or alias to name
	images  map[string]string // reference to name
}

// base is what every assembled image stands on.
type base struct {
	Suite    string   `yaml:"suite" json:"suite"`
	Packages []string `yaml:"packages" json:"packages"`
}

// entry is one language of the catalogue's file.
type entry struct {
	Aliases  []string          `yaml:"aliases"`
	Suffixes []string          `yaml:"suffixes"`
	Image    string            `yaml:"image"`
	Packages []string          `yaml:"packages"`
	RunCode  []string          `yaml:"run_code"`
	RunFile  []string          `yaml:"run_file"`
	Env      map[string]string `yaml:"env"`
}

type file struct {
	Version   int              `yaml:"version"`
	Base      base             `yaml:"base"`
	Languages map[string]entry `yaml:"languages"`
}

// Builtin returns the catalogue that caisson comes with.
func Builtin() *Catalogue {
	c, err := Parse(builtin)
	if err != nil {
		panic("images: the embedded catalogue: " + err.Error()) // a test reads it
	}
	return c
}

// Parse reads a catalogue from YAML. An unknown key is an error, as is a
// language that lacks an image or a command. Its errors are [sandbox.Invalid].
func Parse(data []byte) (*Catalogue, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	var f file
	if err := dec.Decode(&f); err != nil {
		text := strings.Join(strings.Fields(err.Error()), " ") // the errors of YAML have several lines
		return nil, sandbox.Errorf(sandbox.Invalid, "read catalogue: %s", text)
	}
	if f.Version != 1 {
		return nil, sandbox.Errorf(sandbox.Invalid, "catalogue has version %d, want 1", f.Version)
	}
	c := &Catalogue{base: f.Base, entries: f.Languages, names: map[string]string{}, images: map[string]string{}}
	for _, name := range slices.Sorted(maps.Keys(f.Languages)) {
		if err := c.add(name, f.Languages[name]); err != nil {
			return nil, err
		}
	}
	return c, nil
}

var (
	validName    = regexp.MustCompile(`^[a-z][a-z0-9+_-]*$`)
	validPackage = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]+(=[A-Za-z0-9.+:~-]+)?$`)
)

func (c *Catalogue) add(name string, e entry) error {
	bad := func(format string, args ...any) error {
		return sandbox.Errorf(sandbox.Invalid, "catalogue: language %q: "+format, append([]any{name}, args...)...)
	}
	if e.Image == "" || len(e.Suffixes) == 0 {
		return bad("needs an image and a suffix")
	}
	if other, taken := c.images[e.Image]; taken {
		return bad("image %s belongs to %q", e.Image, other)
	}
	c.images[e.Image] = name
	for _, argv := range [][]string{e.RunCode, e.RunFile} {
		if len(argv) == 0 || !strings.Contains(strings.Join(argv, " "), "{") {
			return bad(`needs run_code and run_file with "{file}" or "{code}"`)
		}
	}
	for _, s := range e.Suffixes {
		if !strings.HasPrefix(s, ".") || len(s) < 2 {
			return bad("suffix %q does not begin with a dot", s)
		}
	}
	for _, p := range slices.Concat(c.base.Packages, e.Packages) {
		if !validPackage.MatchString(p) {
			return bad("%q is not the name of a package", p)
		}
	}
	for _, n := range append([]string{name}, e.Aliases...) {
		if !validName.MatchString(n) {
			return bad("name %q is not lower case letters, digits, + - and _", n)
		}
		if other, taken := c.names[n]; taken {
			return bad("name %q belongs to %q", n, other)
		}
		c.names[n] = name
	}
	return nil
}

// Names lists the languages, sorted, without their aliases.
func (c *Catalogue) Names() []string { return slices.Sorted(maps.Keys(c.entries)) }

// Language returns the language of a name or an alias. Its error is
// [sandbox.Invalid] and lists the languages.
func (c *Catalogue) Language(name string) (sandbox.Language, error) {
	full, ok := c.names[name]
	if !ok {
		return sandbox.Language{}, sandbox.Errorf(sandbox.Invalid, "unknown language %q", name).
			WithHint("languages are %s; `-- COMMAND ARGS` runs anything else that the image has", strings.Join(c.Names(), ", "))
	}
	return c.language(full), nil
}

// ForFile returns the language that a file's suffix names. Its error is
// [sandbox.Invalid] and says to name one.
func (c *Catalogue) ForFile(name string) (sandbox.Language, error) {
	suffix := strings.ToLower(path.Ext(name))
	for _, n := range c.Names() {
		if slices.Contains(c.entries[n].Suffixes, suffix) {
			return c.language(n), nil
		}
	}
	return sandbox.Language{}, sandbox.Errorf(sandbox.Invalid, "no language is known for the suffix of %q", path.Base(name)).
		WithHint("name one with -l: %s", strings.Join(c.Names(), ", "))
}

// language builds the value afresh, so that a caller may keep and alter it.
func (c *Catalogue) language(name string) sandbox.Language {
	e := c.entries[name]
	env := make([]string, 0, len(e.Env))
	for _, k := range slices.Sorted(maps.Keys(e.Env)) {
		env = append(env, k+"="+e.Env[k])
	}
	return sandbox.Language{
		Name: name, Suffixes: slices.Clone(e.Suffixes), Image: e.Image,
		RunCode: slices.Clone(e.RunCode), RunFile: slices.Clone(e.RunFile), Env: env,
	}
}

// recipe is everything that decides what an assembled image holds.
type recipe struct {
	Language string   `json:"language"`
	Ref      string   `json:"ref"`
	Base     base     `json:"base"`
	Packages []string `json:"packages"`
	Format   int      `json:"format"`
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
	return recipe{Language: n, Ref: ref, Base: c.base, Packages: c.entries[n].Packages, Format: recipeFormat}, true
}

// digest names the recipe by its content.
func (r recipe) digest() string { return contentDigest(r) }

// baseDigest names the part of the recipe that the languages share.
func (r recipe) baseDigest() string {
	return contentDigest(recipe{Base: r.Base, Format: r.Format})
}

func contentDigest(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // plain data
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

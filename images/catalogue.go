package images

import (
	_ "embed" // for the catalogue's data
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/sandbox"
)

//go:embed catalogue.yaml
var builtin []byte

// Catalogue is the set of known languages. It does not change after it was
// made and is safe for concurrent use.
type Catalogue struct {
	base    base
	entries map[string]entry  // by name, versions as "python@3.13"
	names   map[string]string // name or alias to name
	images  map[string]string // reference to name
}

// Builtin returns the catalogue that caisson comes with.
func Builtin() *Catalogue {
	c, err := Parse(builtin)
	if err != nil {
		panic("images: the embedded catalogue: " + err.Error()) // a test reads it
	}
	return c
}

// Names lists the languages, sorted, without their aliases. A version beside
// the usual one stands as "python@3.13".
func (c *Catalogue) Names() []string { return slices.Sorted(maps.Keys(c.entries)) }

// Language returns the language of a name or an alias. Its error is
// [sandbox.Invalid] and lists the languages.
func (c *Catalogue) Language(name string) (sandbox.Language, error) {
	full, ok := c.names[name]
	if !ok {
		full, ok = c.names[strings.ToLower(name)]
	}
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
		if !strings.Contains(n, "@") && slices.Contains(c.entries[n].Suffixes, suffix) {
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
	var aliases []string
	for _, other := range slices.Sorted(maps.Keys(c.names)) {
		if c.names[other] == name && other != name {
			aliases = append(aliases, other)
		}
	}
	return sandbox.Language{
		Name: name, Aliases: aliases, Suffixes: slices.Clone(e.Suffixes), Image: e.Image,
		Compile: slices.Clone(e.Compile), CodeFile: e.CodeFile,
		RunCode: slices.Clone(e.RunCode), RunFile: slices.Clone(e.RunFile), RunTests: slices.Clone(e.RunTests), TestReport: e.TestReport,
		Env: env, Warm: slices.Clone(e.Warm),
	}
}

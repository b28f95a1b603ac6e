package images

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/caisson-dev/caisson/internal/lazyregexp"
	"github.com/caisson-dev/caisson/internal/onedoc"
	"github.com/caisson-dev/caisson/sandbox"
)

// entry is one language of the catalogue's file, or one version of it.
type entry struct {
	Version  string   `yaml:"version"`
	Aliases  []string `yaml:"aliases"`
	Suffixes []string `yaml:"suffixes"`
	Image    string   `yaml:"image"`
	// Where its image comes from, in this order.
	Pull       string   `yaml:"pull"`       // a registry's name for the whole image
	From       string   `yaml:"from"`       // the image that the Dockerfile stands on
	Dockerfile string   `yaml:"dockerfile"` // the folder that holds it
	Suite      string   `yaml:"suite"`      // of Debian; "" is the base's
	Packages   []string `yaml:"packages"`   // nil: not assembled
	additions  `yaml:",inline"`
	Offline    string            `yaml:"offline"` // the version that stands in where no registry answers
	Compile    []string          `yaml:"compile"` // nil: it runs as it is
	CodeFile   string            `yaml:"code_file"`
	RunCode    []string          `yaml:"run_code"`
	RunFile    []string          `yaml:"run_file"`
	RunTests   []string          `yaml:"run_tests"`   // nil: none
	TestReport string            `yaml:"test_report"` // "" beside run_tests is exit
	Warm       []string          `yaml:"warm"`        // nil: no warm interpreters
	Env        map[string]string `yaml:"env"`
	Versions   map[string]entry  `yaml:"versions"`
}

type file struct {
	Version   int              `yaml:"version"`
	Base      base             `yaml:"base"`
	Languages map[string]entry `yaml:"languages"`
}

// Parse reads a catalogue from YAML. An unknown key is an error, as is a
// language that lacks an image or a command. Its errors are [sandbox.Invalid].
func Parse(data []byte) (*Catalogue, error) {
	var f file
	if err := strict(data, &f); err != nil {
		return nil, err
	}
	if f.Version != 1 {
		return nil, sandbox.Errorf(sandbox.Invalid, "catalogue has version %d, want 1", f.Version)
	}
	return catalogueOf(f.Base, f.Languages)
}

// catalogueOf checks languages, and makes a catalogue of them.
func catalogueOf(b base, languages map[string]entry) (*Catalogue, error) {
	c := &Catalogue{base: b, entries: map[string]entry{}, names: map[string]string{}, images: map[string]string{}}
	for _, name := range slices.Sorted(maps.Keys(languages)) {
		if err := c.addAll(name, languages[name]); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Extend returns a catalogue that holds what c holds and what data adds to it.
// A language that c has already keeps the keys that data leaves out. data has
// the form that [Parse] reads; its version and base may be left out. A folder
// with a Dockerfile that data names is relative to dir. The errors are
// [sandbox.Invalid].
func (c *Catalogue) Extend(data []byte, dir string) (*Catalogue, error) {
	var f file
	if err := strict(data, &f); err != nil { // with the lines of the whole file
		return nil, err
	}
	var raw struct {
		Languages map[string]yaml.Node `yaml:"languages"`
	}
	if err := yaml.Unmarshal(data, &raw); err != nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "read catalogue: %w", err)
	}
	base := c.base
	if f.Base.Suite != "" {
		base = f.Base
	}
	languages := map[string]entry{}
	for name, e := range c.entries {
		if !strings.Contains(name, "@") {
			languages[name] = e
		}
	}
	for name, node := range raw.Languages {
		e, err := languages[name].overlay(node, dir)
		if err != nil {
			return nil, err
		}
		languages[name] = e
	}
	return catalogueOf(base, languages)
}

// strict decodes YAML and takes an unknown key for an error, in one line.
func strict(data []byte, into any) error {
	if err := onedoc.Decode(data, into); err != nil {
		text := strings.Join(strings.Fields(err.Error()), " ")
		return sandbox.Errorf(sandbox.Invalid, "read catalogue: %s", text)
	}
	return nil
}

// overlay returns e with the keys of a YAML node in place of its own.
func (e entry) overlay(node yaml.Node, dir string) (entry, error) {
	was, said := e, entry{}
	if err := node.Decode(&said); err != nil {
		return e, err
	}
	if said.RunTests != nil || said.TestReport != "" { // the one says what the other is about
		e.RunTests, e.TestReport = nil, ""
	}
	e.Env, e.Versions = maps.Clone(e.Env), maps.Clone(e.Versions) // which decoding adds to
	if err := node.Decode(&e); err != nil {
		return e, err
	}
	place(&e.Dockerfile, was.Dockerfile, dir)
	for name, v := range e.Versions {
		place(&v.Dockerfile, was.Versions[name].Dockerfile, dir)
		e.Versions[name] = v
	}
	return e, nil
}

// place makes a folder that an extension has named absolute. The embedded
// catalogue's are not: they are looked up in [Config].Dockerfiles.
func place(folder *string, was, dir string) {
	if *folder != "" && *folder != was && dir != "" && !filepath.IsAbs(*folder) {
		*folder = filepath.Join(dir, *folder)
	}
}

// addAll adds a language and its versions.
func (c *Catalogue) addAll(name string, e entry) error {
	if err := c.add(name, e); err != nil {
		return err
	}
	if e.Version != "" {
		c.names[name+"@"+e.Version] = name
	}
	for _, version := range slices.Sorted(maps.Keys(e.Versions)) {
		if err := c.add(name+"@"+version, e.version(version)); err != nil {
			return err
		}
	}
	return nil
}

// version is e with what one of its versions says otherwise.
func (e entry) version(version string) entry {
	v, o := e, e.Versions[version]
	v.Version, v.Aliases, v.Versions = version, nil, nil
	v.Image, v.Suite, v.Offline = o.Image, cmp.Or(o.Suite, e.Suite), ""
	v.Pull, v.From, v.Dockerfile, v.additions = o.Pull, o.From, o.Dockerfile, o.additions
	if o.From != "" {
		v.Dockerfile = cmp.Or(o.Dockerfile, e.Dockerfile)
	}
	if o.Packages != nil {
		v.Packages = o.Packages
	}
	if o.Compile != nil {
		v.Compile = o.Compile
	}
	if o.RunCode != nil {
		v.RunCode = o.RunCode
	}
	if o.RunFile != nil {
		v.RunFile = o.RunFile
	}
	if o.RunTests != nil || o.TestReport != "" {
		v.RunTests, v.TestReport = o.RunTests, o.TestReport
	}
	v.Env = map[string]string{}
	maps.Copy(v.Env, e.Env)
	maps.Copy(v.Env, o.Env)
	return v
}

// checkCompile says what is wrong with how it is compiled, "" where nothing is.
func (e entry) checkCompile() string {
	if strings.Contains(e.CodeFile, "/") {
		return "code_file is a name without a folder"
	}
	if len(e.Compile) == 0 {
		return ""
	}
	argv := strings.Join(e.Compile, " ")
	if !strings.Contains(argv, "{file}") || !strings.Contains(argv, "{out}") {
		return `compile lacks "{file}" or "{out}"`
	}
	for _, argv := range [][]string{e.RunCode, e.RunFile} {
		if !strings.Contains(strings.Join(argv, " "), "{out}") {
			return `is compiled, and its run_code and run_file need "{out}"`
		}
	}
	return ""
}

var (
	validName    = lazyregexp.New(`^[a-z][a-z0-9+_-]*(@[a-z0-9][a-z0-9.+_-]*)?$`)
	validModule  = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$`)
	validPackage = lazyregexp.New(`^[a-z0-9][a-z0-9+.-]+(=[A-Za-z0-9.+:~-]+)?$`)
)

func (c *Catalogue) add(name string, e entry) error {
	bad := func(format string, args ...any) error {
		return sandbox.Errorf(sandbox.Invalid, "catalogue: language %q: "+format, append([]any{name}, args...)...)
	}
	if e.Image == "" || len(e.Suffixes) == 0 {
		return bad("needs an image and a suffix")
	}
	if e.From != "" && e.Dockerfile == "" {
		return bad("has from, which needs a dockerfile")
	}
	if _, ok := e.Versions[e.Offline]; e.Offline != "" && !ok {
		return bad("offline names the version %q, which it does not have", e.Offline)
	}
	if e.Pull == "" && e.Dockerfile == "" && e.Packages == nil && e.Offline == "" {
		e.Pull = e.Image // it is somebody's, and comes from where they put it
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
	if why := e.checkCompile(); why != "" {
		return bad("%s", why)
	}
	if len(e.RunTests) > 0 {
		if !strings.Contains(strings.Join(e.RunTests, " "), "{file}") {
			return bad(`run_tests lacks "{file}"`)
		}
		e.TestReport = cmp.Or(e.TestReport, "exit")
	}
	switch e.TestReport {
	case "":
	case "pytest", "unittest":
		if len(e.RunTests) > 0 {
			return bad("test_report %s takes no run_tests", e.TestReport)
		}
	case "tap", "junit", "exit":
		if len(e.RunTests) == 0 {
			return bad("test_report %s needs run_tests", e.TestReport)
		}
	default:
		return bad("test_report %q is none of pytest, unittest, tap, junit, exit", e.TestReport)
	}
	for _, m := range e.Warm {
		if !validModule().MatchString(m) {
			return bad("warm: %q is not the name of a module", m)
		}
	}
	if why := e.check(); why != "" {
		return bad("%s", why)
	}
	for _, s := range e.Suffixes {
		if !strings.HasPrefix(s, ".") || len(s) < 2 {
			return bad("suffix %q does not begin with a dot", s)
		}
	}
	for _, p := range slices.Concat(c.base.Packages, e.Packages) {
		if !validPackage().MatchString(p) {
			return bad("%q is not the name of a package", p)
		}
	}
	for _, n := range append([]string{name}, e.Aliases...) {
		if !validName().MatchString(n) {
			return bad("name %q is not lower case letters, digits, + - and _", n)
		}
		if other, taken := c.names[n]; taken {
			return bad("name %q belongs to %q", n, other)
		}
		c.names[n] = name
	}
	c.entries[name] = e
	return nil
}

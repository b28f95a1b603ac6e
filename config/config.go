// Package config reads caisson.yaml: values for flags and settings, languages,
// and what images are pulled and made with.
//
//	version: 1
//	defaults:            # a flag's name, or a setting's
//	  memory: 1g
//	  run:               # of one command alone
//	    timeout: 2m
//	images:
//	  lock_file: images.lock
//	  mirrors: {docker.io: [mirror.example/hub]}
//	languages:           # as in the catalogue
//	  ruby: {…}
//	folders:             # of this host, that a session may have as its workspace
//	  data: /srv/data
//	hosts:               # lists by name, for --allow and --deny
//	  ours: [git.example.org, 10.0.0.5:443]
//	unknown_language: allow  # what nothing can judge: ask, allow or deny
//	monitor:             # samples of sandboxes, and what is worth an alert
//	  every: 2s
//	  rules:
//	    memory: {for: 10s, action: stop-exec}
//	quotas:              # of the owners that a server has
//	  default: {sandboxes: 10, memory: 8g}
//	pool:                # sandboxes that a server keeps ready
//	  python: 2
//	tools:               # of this host, that programs may call
//	  - {name: search, command: [./search]}
//
// It is strict: a key that nobody knows is an error that names its line. It
// holds no defaults and reads no environment: what it says counts where neither
// a flag nor a variable does.
package config

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/caisson-dev/caisson/internal/onedoc"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/tools"
)

// File is what a caisson.yaml says. The zero value says nothing. It is safe for
// concurrent use.
type File struct {
	// Name is the file's absolute path, "" where there is none.
	Name string
	// Catalogue is the whole file where it has languages or a base, as
	// images.Catalogue takes it, else nil.
	Catalogue []byte
	// Images says how images are made.
	Images Images
	// Folders are folders of the host that a session may have as its workspace, by
	// the name that it is asked for with. They are absolute.
	Folders map[string]string
	// Hosts are lists of hosts by name, which a network may allow or deny.
	Hosts map[string][]string
	// UnknownLanguage is the verdict on texts of languages that cannot be judged,
	// "" where the file is silent.
	UnknownLanguage sandbox.Verdict
	// Monitor says how sandboxes are watched.
	Monitor Monitor
	// Quotas bound what owners have and use.
	Quotas sandbox.Quotas
	// Pool are the sandboxes that are kept ready.
	Pool []sandbox.PoolWant
	// Tools are those of this host that programs may call.
	Tools []tools.Entry

	values []value
}

// Images is the section of that name.
type Images struct {
	// LockFile is absolute, or "".
	LockFile string `yaml:"lock_file"`
	// DebianMirror is what images are assembled from.
	DebianMirror string `yaml:"debian_mirror"`
	// Mirrors are asked before the registry that they stand under.
	Mirrors map[string][]string `yaml:"mirrors"`
	// NoPull keeps images from being pulled by being used.
	NoPull bool `yaml:"no_pull"`
}

// Monitor is the section of that name.
type Monitor struct {
	Every time.Duration       // between two samples; 0 where the file is silent
	Rules []sandbox.AlertRule // in the order of the file
}

// value is one setting, of one command or of all.
type value struct {
	command, name, text string
	line                int
}

// form is the file, but for the catalogue's keys, which their reader checks.
type form struct {
	Version   int                  `yaml:"version"`
	Defaults  yaml.Node            `yaml:"defaults"`
	Images    Images               `yaml:"images"`
	Folders   map[string]string    `yaml:"folders"`
	Hosts     map[string]yaml.Node `yaml:"hosts"`
	Base      yaml.Node            `yaml:"base"`
	Languages yaml.Node            `yaml:"languages"`
	Unknown   yaml.Node            `yaml:"unknown_language"`
	Monitor   struct {
		Every yaml.Node `yaml:"every"`
		Rules yaml.Node `yaml:"rules"`
	} `yaml:"monitor"`
	Tools  []tools.Entry `yaml:"tools"`
	Quotas struct {
		Default yaml.Node            `yaml:"default"`
		Total   yaml.Node            `yaml:"total"`
		Wait    yaml.Node            `yaml:"wait"`
		Owners  map[string]yaml.Node `yaml:"owners"`
	} `yaml:"quotas"`
	Pool yaml.Node `yaml:"pool"`
}

// Load reads a file. Its errors are [sandbox.Invalid], and [sandbox.NotFound]
// where it is not there.
func Load(name string) (*File, error) {
	name, err := filepath.Abs(name)
	if err != nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "configuration %s: %w", name, err)
	}
	data, err := os.ReadFile(name)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, sandbox.Errorf(sandbox.NotFound, "configuration: %w", err).WithHint("make it, or leave --config and CAISSON_CONFIG out")
	case err != nil:
		return nil, sandbox.Errorf(sandbox.Invalid, "configuration: %w", err)
	}
	return Parse(name, data)
}

// Parse reads the content of a file of that name, which paths in it are
// relative to. Its errors are [sandbox.Invalid].
func Parse(name string, data []byte) (*File, error) {
	f := &File{Name: name}
	var in form
	if err := onedoc.Decode(data, &in); err != nil {
		return nil, f.bad(0, "%s", strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "yaml: ")), " "))
	}
	if in.Version != 1 {
		return nil, f.bad(0, "version is %d, want 1", in.Version)
	}
	f.Images = in.Images
	if l := f.Images.LockFile; l != "" && !filepath.IsAbs(l) {
		f.Images.LockFile = filepath.Join(filepath.Dir(name), l)
	}
	if err := f.hosts(in.Hosts); err != nil {
		return nil, err
	}
	f.Folders, f.Tools = in.Folders, in.Tools
	for folder, path := range f.Folders {
		if strings.Contains(folder, "/") || path == "" {
			return nil, f.bad(0, "folders: %q: write a name without a slash, and the folder's path", folder)
		}
		if !filepath.IsAbs(path) {
			f.Folders[folder] = filepath.Join(filepath.Dir(name), path)
		}
	}
	if u := in.Unknown; u.Kind != 0 {
		f.UnknownLanguage = sandbox.Verdict(u.Value)
		if !slices.Contains([]sandbox.Verdict{sandbox.Ask, sandbox.Allow, sandbox.Deny}, f.UnknownLanguage) {
			return nil, f.bad(u.Line, "unknown_language is %q, and can be ask, allow or deny", u.Value)
		}
	}
	if err := f.monitor(&in.Monitor.Every, &in.Monitor.Rules); err != nil {
		return nil, err
	}
	if err := f.totals(in.Quotas.Total, in.Quotas.Wait); err != nil {
		return nil, err
	}
	if err := f.quotas(in.Quotas.Default, in.Quotas.Owners); err != nil {
		return nil, err
	}
	if err := f.pool(&in.Pool); err != nil {
		return nil, err
	}
	if in.Base.Kind != 0 || in.Languages.Kind != 0 {
		var err error
		if f.Catalogue, err = f.catalogue(data); err != nil {
			return nil, err
		}
	}
	return f, f.read(&in.Defaults)
}

// catalogue blanks what is not the catalogue's, so that what is left keeps its
// lines.
func (f *File) catalogue(data []byte) ([]byte, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		return nil, f.bad(0, "%v", err)
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	top := root.Content[0].Content
	if root.Content[0].Style&yaml.FlowStyle != 0 {
		return nil, f.bad(1, "write its sections on lines of their own")
	}
	for i := 0; i < len(top); i += 2 {
		if slices.Contains([]string{"base", "languages"}, top[i].Value) {
			continue
		}
		end := len(lines)
		if i+2 < len(top) {
			end = top[i+2].Line - 1
		}
		for l := top[i].Line - 1; l < end; l++ {
			lines[l] = []byte("\n")
		}
	}
	return bytes.Join(lines, nil), nil
}

// read takes in the defaults: a scalar is for every command, a mapping for one.
func (f *File) read(defaults *yaml.Node) error {
	if defaults.Kind == 0 {
		return nil
	}
	if defaults.Kind != yaml.MappingNode {
		return f.bad(defaults.Line, "defaults is not a list of names and values")
	}
	for i := 0; i < len(defaults.Content); i += 2 {
		key, v := defaults.Content[i], defaults.Content[i+1]
		if v.Kind != yaml.MappingNode {
			if err := f.add("", key, v); err != nil {
				return err
			}
			continue
		}
		for j := 0; j < len(v.Content); j += 2 {
			if err := f.add(key.Value, v.Content[j], v.Content[j+1]); err != nil {
				return err
			}
		}
	}
	return nil
}

// add takes in one value; a list is that of a flag that can be repeated.
func (f *File) add(command string, key, v *yaml.Node) error {
	values := []*yaml.Node{v}
	if v.Kind == yaml.SequenceNode {
		values = v.Content
	}
	if slices.ContainsFunc(f.values, func(o value) bool { return o.command == command && o.name == key.Value }) {
		return f.bad(key.Line, "%s stands twice", key.Value)
	}
	for _, one := range values {
		if one.Kind != yaml.ScalarNode {
			return f.bad(one.Line, "%s is neither a value nor a list of values", key.Value)
		}
		f.values = append(f.values, value{command, key.Value, one.Value, key.Line})
	}
	return nil
}

// Check asks known of every name in defaults: with the command that it stands
// under, such as "run" or "session create", or "" for all of them. Its errors
// are [sandbox.Invalid] and name the line.
func (f *File) Check(known func(command, name string) bool) error {
	for _, v := range f.values {
		if !known(v.command, v.name) {
			what := v.name
			if v.command != "" {
				what = v.command + ": " + v.name
			}
			return f.bad(v.line, "no flag and no setting is called %q", what)
		}
	}
	return nil
}

// Values returns what a flag or a setting is to be for a command: what stands
// under the command, else what stands for all. It is nil where the file is
// silent.
func (f *File) Values(command, name string) (values []string, line int) {
	for _, scope := range []string{command, ""} {
		for _, v := range f.values {
			if v.command == scope && v.name == name {
				values, line = append(values, v.text), v.line
			}
		}
		if values != nil || command == "" {
			break
		}
	}
	return values, line
}

// Setting is what the file says for a variable of caisson's: CAISSON_STATE_DIR is
// state-dir. It is "" where the file, which may be nil, is silent.
func (f *File) Setting(variable string) string {
	name, ours := strings.CutPrefix(variable, "CAISSON_")
	if !ours || f == nil {
		return ""
	}
	values, _ := f.Values("", strings.ToLower(strings.ReplaceAll(name, "_", "-")))
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// Bad is an error about a line of the file: Invalid.
func (f *File) Bad(line int, err error) error { return f.bad(line, "%w", err) }

func (f *File) bad(line int, format string, args ...any) error {
	err := sandbox.Errorf(sandbox.Invalid, format, args...)
	if line > 0 {
		return sandbox.Errorf(sandbox.Invalid, "%s line %d: %w", f.Name, line, err).WithHint("mend it; docs/configuration.md names its keys")
	}
	return sandbox.Errorf(sandbox.Invalid, "%s: %w", f.Name, err).WithHint("mend it; docs/configuration.md names its keys")
}

package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/config"
	"github.com/caisson-dev/caisson/images"
	"github.com/caisson-dev/caisson/sandbox"
)

const good = `version: 1
defaults:
  memory: 1g
  env: [A=1, B=2]
  state-dir: /var/lib/caisson
  session create:
    memory: 2g
images:
  lock_file: images.lock
  mirrors: {docker.io: [mirror.example/hub]}
languages:
  ruby:
    suffixes: [.rb]
    dockerfile: ruby
    image: caisson/ruby:3.1
    run_code: [ruby, "{file}"]
    run_file: [ruby, "{file}"]
folders:
  data: ../data
  src: /srv/src
hosts:
  ours: [git.a.test, 10.0.0.5:443]
`

func TestParse(t *testing.T) {
	t.Parallel()
	f, err := config.Parse("/etc/caisson/caisson.yaml", []byte(good))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		command, name string
		want          []string
	}{
		{"run", "memory", []string{"1g"}},
		{"session create", "memory", []string{"2g"}},
		{"run", "env", []string{"A=1", "B=2"}},
		{"", "state-dir", []string{"/var/lib/caisson"}},
		{"run", "timeout", nil},
	} {
		if got, _ := f.Values(tc.command, tc.name); !cmp.Equal(got, tc.want) {
			t.Errorf("Values(%q, %q) is %q, want %q", tc.command, tc.name, got, tc.want)
		}
	}
	if diff := cmp.Diff(map[string][]string{"ours": {"git.a.test", "10.0.0.5:443"}}, f.Hosts); diff != "" {
		t.Error(diff)
	}
	want := config.Images{LockFile: "/etc/caisson/images.lock", Mirrors: map[string][]string{"docker.io": {"mirror.example/hub"}}}
	if diff := cmp.Diff(want, f.Images); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"data": "/etc/data", "src": "/srv/src"}, f.Folders); diff != "" {
		t.Error(diff)
	}
	c, err := images.Builtin().Extend(f.Catalogue, "/etc/caisson")
	if err != nil {
		t.Fatal(err)
	}
	if l, err := c.ForFile("x.rb"); err != nil || l.Image != "caisson/ruby:3.1" {
		t.Errorf("the new language is %+v, %v", l, err)
	}
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, old, new, text string }{
		{"unknown section", "images:", "imgaes:", "line 8: field imgaes"},
		{"unknown key", "  lock_file:", "  lockfile:", "line 9: field lockfile"},
		{"a list's name", "  ours: [git.a.test, 10.0.0.5:443]", "  o.urs: [git.a.test]", `line 22: hosts: "o.urs"`},
		{"a host of a list", "  ours: [git.a.test, 10.0.0.5:443]", "  ours: ['*']", `hosts: ours: "*" names no host`},
		{"no list", "  ours: [git.a.test, 10.0.0.5:443]", "  ours: {a: b}", "hosts: ours: write a list"},
		{"a folder's name", "  data: ../data", "  da/ta: ../data", `folders: "da/ta"`},
		{"version", "version: 1", "version: 2", "version is 2"},
		{"unknown flag", "  memory: 1g", "  memroy: 1g", `line 3: no flag and no setting is called "memroy"`},
		{"unknown flag of a command", "    memory: 2g", "    memroy: 2g", `line 7: no flag and no setting is called "session create: memroy"`},
		{"twice", "  memory: 1g\n", "  memory: 1g\n  env: [C=3]\n", "line 5: "},
		{"no value", "memory: 1g", "memory: [[1g]]", "line 3: memory"},
		{"not YAML", good, "\t{", "caisson.yaml"},
		{"a further document", "version: 1", "version: 1\n---\nversion: 1", "line 2: a further document begins"},
		{"empty", good, "", "caisson.yaml"},
		{"a list", "  memory: 1g\n  env: [A=1, B=2]\n  state-dir: /var/lib/caisson\n  session create:\n    memory: 2g\n", "  - x\n", "defaults is not"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f, err := config.Parse("/x/caisson.yaml", []byte(strings.Replace(good, tc.old, tc.new, 1)))
			if err == nil {
				err = f.Check(func(_, name string) bool { return name != "memroy" })
			}
			if !errors.Is(err, sandbox.Invalid) || !strings.Contains(err.Error(), tc.text) || !strings.Contains(err.Error(), "/x/caisson.yaml") {
				t.Errorf("error %v does not say %q", err, tc.text)
			}
		})
	}
}

// TestCatalogueKeepsItsLines: a mistake in a language is reported by its line in
// the file.
func TestCatalogueKeepsItsLines(t *testing.T) {
	t.Parallel()
	f, err := config.Parse("/x/caisson.yaml", []byte(strings.Replace(good, "    suffixes", "    sufixes", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := images.Builtin().Extend(f.Catalogue, "/x"); err == nil || !strings.Contains(err.Error(), "line 13: field sufixes") {
		t.Errorf("error %v", err)
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "caisson.yaml")
	if _, err := config.Load(name); !errors.Is(err, sandbox.NotFound) {
		t.Errorf("a file that is not there: %v", err)
	}
	if err := os.WriteFile(name, []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	if f, err := config.Load(name); err != nil || f.Name != name {
		t.Errorf("%+v, %v", f, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte("{version: 1, languages: {}}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := config.Parse("/x", data); err != nil && !errors.Is(err, sandbox.Invalid) {
			t.Errorf("error %v is of kind %v", err, sandbox.KindOf(err))
		}
	})
}

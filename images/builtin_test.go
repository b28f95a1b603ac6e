package images

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/docker"
	"github.com/caisson-dev/caisson/internal/dockerclient/dockertest"
	"github.com/caisson-dev/caisson/sandbox"
)

// TestBuiltinIsWhole: every language has a base by digest with its tag beside
// it, a Dockerfile that begins with it, a way without a registry, and what runs
// code and files of it.
func TestBuiltinIsWhole(t *testing.T) {
	t.Parallel()
	c := Builtin()
	bases := map[string]string{"python": "python:3.11-slim@sha256:", "node": "node:20-alpine@sha256:", "shell": "ubuntu:22.04@sha256:"}
	for name, want := range bases {
		e := c.entries[name]
		tag, _, _ := strings.Cut(want, "@")
		if !strings.HasPrefix(e.From, want) || len(e.From) != len(want)+64 {
			t.Errorf("%s: base %q, want %s…", name, e.From, want)
		}
		text, err := fs.ReadFile(docker.Languages, e.Dockerfile+"/Dockerfile")
		if err != nil || !strings.Contains(string(text), "ARG BASE="+tag+"\n") {
			t.Errorf("%s: its Dockerfile: %v, %s", name, err, text)
		}
		for _, p := range c.base.Packages {
			if !strings.Contains(string(text), " "+p) {
				t.Errorf("%s: %s is in the assembled image, and not in the built one", name, p)
			}
		}
		rec, _ := c.recipeFor(e.Image)
		if other, _ := c.recipeFor(rec.Offline); !rec.Assembled && !other.Assembled {
			t.Errorf("%s cannot be had without a registry", name)
		}
		if e.Env["LANG"] != "C.UTF-8" || len(e.RunCode) == 0 || len(e.RunFile) == 0 || len(e.Suffixes) == 0 || e.TestReport == "" {
			t.Errorf("%s lacks something: %+v", name, e)
		}
	}
	if l, err := c.Language("python@3.11"); err != nil || l.Name != "python" {
		t.Errorf("python@3.11 is %+v, %v", l, err)
	}
}

// offline is an image with stand-ins for what installs packages, which note what
// they are asked for. The pytest of pip's is Debian's.
const offline = "FROM %s\nRUN mkdir -p /usr/local/lib/python3.11/site-packages && cd /usr/local/bin && for p in pip apt-get apk; do " +
	"printf '#!/bin/sh\\necho \"$0 $*\" >>/installed\\n' >$p && chmod 755 $p; done\n"

// TestBuiltinDockerfiles builds them on bases that were assembled offline.
func TestBuiltinDockerfiles(t *testing.T) {
	t.Parallel()
	shellImage(t)
	run := map[string]string{"python": "print(6*7)", "node": "console.log(6*7)", "shell": "echo $((6*7))"}
	for name, base := range map[string]string{"shell": "caisson/shell:12", "node": "caisson/node:18", "python": "caisson/python:3.11"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bottom := newLanguage(name+"base", "    dockerfile: "+dockerfile(t, fmt.Sprintf(offline, base))+"\n")
			bases, _ := storeWith(t, "/bin/false", bottom)
			if _, err := bases.Ensure(t.Context(), bottom.ref); err != nil {
				t.Fatal(err)
			}
			f := &fixture{engine: dockertest.Engine(t), ref: "caisson-test/" + name + string(sandbox.NewID()) + ":1"}
			catalogue, err := Builtin().Extend([]byte("languages:\n  "+name+":\n    image: "+f.ref+"\n    from: "+bottom.ref+"\n"), "")
			if err != nil {
				t.Fatal(err)
			}
			s, err := New(Config{Engine: f.engine, Catalogue: catalogue, StateDir: filepath.Join(t.TempDir(), "s"), Dockerfiles: docker.Languages})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { f.remove(t) })
			img, err := s.Make(t.Context(), f.ref, sandbox.MakeImageOptions{Way: sandbox.ImageBuilt, Again: true}) // not what stands in for it
			if err != nil {
				t.Fatal(err)
			}
			l, err := catalogue.Language(name)
			if err != nil {
				t.Fatal(err)
			}
			// No setuid program is left, the workspace is there, and what the
			// assembled ones have was installed.
			const look = "test -d /workspace && test -z \"$(find / -xdev -perm /6000 -type f 2>/dev/null)\" && " +
				"grep -q 'git procps' /installed && echo fine"
			if out := f.run(t, img.ID, []string{"sh", "-c", look}); out != "fine\n" {
				t.Errorf("the image says %q", out)
			}
			argv := append([]string{"sh", "-c", `printf %s "$0" >/tmp/x; exec "$@"`, run[name]}, l.Argv(l.RunFile, "", "/tmp/x", nil)...)
			if out := f.run(t, img.ID, argv); out != "42\n" {
				t.Errorf("a program says %q", out)
			}
		})
	}
}

// TestMorePackages: names behind an image's are assembled with what it is made of, and
// nothing else is done to it.
func TestMorePackages(t *testing.T) {
	t.Parallel()
	c := Builtin()
	plain, _ := c.recipeFor("caisson/python:3.11")
	rec, ok := c.recipeFor("caisson/python:3.11_python3-numpy_libxml2.9")
	want := append(slices.Clone(plain.Packages), "python3-numpy", "libxml2.9")
	if !ok || !slices.Equal(rec.Packages, want) || !rec.Assembled || rec.Dockerfile+rec.Pull+rec.From+rec.Offline != "" || rec.digest() == plain.digest() {
		t.Errorf("%+v", rec)
	}
	for _, ref := range []string{
		"caisson/python:3.11_", "caisson/python:3.11_a", "caisson/python:3.11_./a.deb", "caisson/python:3.11_ab,cd", "caisson/python:3.11_ab__cd", "other_python3-numpy",
		"caisson/python:3.11_-ab",
	} {
		if rec, ok := c.recipeFor(ref); ok {
			t.Errorf("%s is %+v", ref, rec)
		}
	}
}

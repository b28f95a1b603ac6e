package images_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/images"
	"github.com/caisson-dev/caisson/sandbox"
)

func TestBuiltinLanguages(t *testing.T) {
	t.Parallel()
	c := images.Builtin()
	if diff := cmp.Diff([]string{"node", "python", "shell"}, c.Names()); diff != "" {
		t.Error(diff)
	}
	for alias, want := range map[string]string{"python": "python", "py": "python", "python3": "python", "js": "node", "bash": "shell", "sh": "shell"} {
		l, err := c.Language(alias)
		if err != nil || l.Name != want {
			t.Errorf("Language(%q) is %q, %v", alias, l.Name, err)
		}
	}
	py, _ := c.Language("python")
	if diff := cmp.Diff([]string{"python3", "{file}"}, py.RunCode); diff != "" {
		t.Error(diff)
	}
	for _, kv := range []string{"PYTHONPATH=/workspace", "PYTHONUTF8=1", "LANG=C.UTF-8"} {
		if !strings.Contains(strings.Join(py.Env, " "), kv) {
			t.Errorf("python's environment %v lacks %s", py.Env, kv)
		}
	}
	node, _ := c.Language("node")
	if py.Inline() || !node.Inline() {
		t.Errorf("inline: python %v, node %v", py.Inline(), node.Inline())
	}
}

func TestUnknownLanguage(t *testing.T) {
	t.Parallel()
	_, err := images.Builtin().Language("cobol")
	if !errors.Is(err, sandbox.Invalid) || !strings.Contains(sandbox.HintOf(err), "node, python, shell") {
		t.Errorf("error %v, hint %q", err, sandbox.HintOf(err))
	}
}

func TestForFile(t *testing.T) {
	t.Parallel()
	c := images.Builtin()
	for file, want := range map[string]string{"a.py": "python", "dir.x/B.PY": "python", "x.mjs": "node", "run.sh": "shell"} {
		if l, err := c.ForFile(file); err != nil || l.Name != want {
			t.Errorf("ForFile(%q) is %q, %v", file, l.Name, err)
		}
	}
	for _, file := range []string{"Makefile", "a.xyz", "", ".py/x"} {
		if _, err := c.ForFile(file); !errors.Is(err, sandbox.Invalid) || !strings.Contains(sandbox.HintOf(err), "-l") {
			t.Errorf("ForFile(%q): error %v, hint %q", file, err, sandbox.HintOf(err))
		}
	}
}

func TestLanguageIsACopy(t *testing.T) {
	t.Parallel()
	c := images.Builtin()
	l, _ := c.Language("python")
	l.RunCode[0], l.Env[0], l.Suffixes[0] = "rm", "X=1", ".exe"
	again, _ := c.Language("python")
	if again.RunCode[0] == "rm" || again.Env[0] == "X=1" || again.Suffixes[0] == ".exe" {
		t.Errorf("the catalogue was altered through its answer: %+v", again)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	const good = "version: 1\nbase: {suite: s}\nlanguages:\n  go:\n    suffixes: [.go]\n    image: x/go:1\n    run_code: [go, run, \"{file}\"]\n    run_file: [go, run, \"{file}\"]\n"
	if _, err := images.Parse([]byte(good)); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, old, new, text string }{
		{"unknown key", "    image:", "    imgae: y\n    image:", "line 6: field imgae"},
		{"version", "version: 1", "version: 2", "version 2"},
		{"no image", "image: x/go:1", "image: ''", "needs an image"},
		{"no suffix", "[.go]", "[]", "suffix"},
		{"suffix without a dot", "[.go]", "[go]", "dot"},
		{"no file in the command", `run_file: [go, run, "{file}"]`, "run_file: [go]", "run_file"},
		{"package with an option", "    image:", "    packages: [--purge]\n    image:", "not the name of a package"},
		{"package with a path", "    image:", "    packages: [./x.deb]\n    image:", "not the name of a package"},
		{"upper case", "  go:\n", "  Go:\n", "lower case"},
		{"alias twice", "    image:", "    aliases: [go]\n    image:", "belongs to"},
		{"not YAML", good, "\t{", "read catalogue"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := images.Parse([]byte(strings.Replace(good, tc.old, tc.new, 1)))
			if !errors.Is(err, sandbox.Invalid) || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("error %v does not say %q", err, tc.text)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("version: 1\nbase: {suite: s}\nlanguages: {}\n"))
	f.Add([]byte("version: 1\nlanguages:\n  a: {image: b, suffixes: [.c], run_code: [\"{file}\"], run_file: [\"{file}\"]}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := images.Parse(data)
		if err != nil {
			if !errors.Is(err, sandbox.Invalid) {
				t.Errorf("error %v is of kind %v", err, sandbox.KindOf(err))
			}
			return
		}
		for _, n := range c.Names() {
			if l, err := c.Language(n); err != nil || l.Name != n {
				t.Errorf("Language(%q) is %+v, %v", n, l, err)
			}
		}
	})
}

func ExampleCatalogue_ForFile() {
	l, err := images.Builtin().ForFile("report.py")
	fmt.Println(l.Name, l.RunFile, err)
	// Output: python [python3 {file}] <nil>
}

package images_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caisson-dev/caisson/images"
	"github.com/caisson-dev/caisson/sandbox"
)

func TestBuiltinLanguages(t *testing.T) {
	t.Parallel()
	c := images.Builtin()
	if diff := cmp.Diff([]string{"cpp", "go", "java", "lua", "node", "node@18", "perl", "php", "python", "python@e2b", "r", "ruby", "shell", "shell@12", "sql", "typescript"}, c.Names()); diff != "" {
		t.Error(diff)
	}
	for alias, want := range map[string]string{"python": "python", "py": "python", "python3": "python", "js": "node", "bash": "shell", "sh": "shell", "c++": "cpp", "golang": "go", "R": "r", "ts": "typescript"} {
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
	if !errors.Is(err, sandbox.Invalid) || !strings.Contains(sandbox.HintOf(err), "node, node@18, perl, php, python, python@e2b, r, ruby, shell") {
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
		{"warm module with an option", "    image:", "    warm: [-c]\n    image:", "not the name of a module"},
		{"package with a path", "    image:", "    packages: [./x.deb]\n    image:", "not the name of a package"},
		{"a program at no path", "    image:", "    programs: {../x: y}\n    image:", "not a path from the top"},
		{"a link at a mount", "    image:", "    link: /tmp/x\n    image:", "mounted over"},
		{"upper case", "  go:\n", "  Go:\n", "lower case"},
		{"alias twice", "    image:", "    aliases: [go]\n    image:", "belongs to"},
		{"tests without a file", "    image:", "    run_tests: [go, test]\n    image:", "run_tests lacks"},
		{"a report of nothing", "    image:", "    test_report: tap\n    image:", "needs run_tests"},
		{"a report of another's", "    image:", "    run_tests: [x, \"{file}\"]\n    test_report: pytest\n    image:", "takes no run_tests"},
		{"an unknown report", "    image:", "    run_tests: [x, \"{file}\"]\n    test_report: xml\n    image:", "is none of"},
		{"not YAML", good, "\t{", "read catalogue"},
		{"a further document", "version: 1", "version: 1\n---\nversion: 1", "line 2: a further document begins"},
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

// How tests are run and what they report belong together.
func TestRunTests(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"":                             "pytest []",
		`run_tests: [nose2, "{file}"]`: "exit [nose2 {file}]",
		`test_report: unittest`:        "unittest []",
		`{run_tests: [x, "{file}"], test_report: junit}`: "junit [x {file}]",
	} {
		if !strings.HasPrefix(said, "{") {
			said = "{" + said + "}"
		}
		c, err := images.Builtin().Extend([]byte("languages:\n  python: "+said+"\n"), "")
		if err != nil {
			t.Fatal(err)
		}
		if l, err := c.Language("py"); err != nil || l.TestReport+" "+fmt.Sprint(l.RunTests) != want || !l.Called("py") || !l.Called("Python3") || l.Called("node") {
			t.Errorf("%s: %+v, %v", said, l, err)
		}
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

func TestExtend(t *testing.T) {
	t.Parallel()
	c, err := images.Builtin().Extend([]byte(`
languages:
  tcl:
    suffixes: [.tcl]
    image: caisson/tcl:8.6
    packages: [tcl]
    run_code: [tclsh, "{file}"]
    run_file: [tclsh, "{file}"]
  python:
    env: {PYTHONUTF8: "0", MORE: "1"}
    versions:
      "3.13":
        image: caisson/python:3.13
        suite: trixie
        env: {ONLY: here}
`), "")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(append([]string{"python@3.13", "tcl"}, images.Builtin().Names()...), c.Names(), cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Error(diff)
	}
	if l, err := c.ForFile("x.tcl"); err != nil || l.Image != "caisson/tcl:8.6" {
		t.Errorf("a new language is %+v, %v", l, err)
	}
	py, err := c.Language("python")
	if err != nil {
		t.Fatal(err)
	}
	env := strings.Join(py.Env, " ")
	for _, kv := range []string{"PYTHONUTF8=0", "MORE=1", "PYTHONPATH=/workspace"} {
		if !strings.Contains(env, kv) {
			t.Errorf("environment %q lacks %s", env, kv)
		}
	}
	if py.Image != "caisson/python:3.11" || strings.Contains(env, "ONLY") {
		t.Errorf("what the extension left out was altered: %+v", py)
	}
	next, err := c.Language("python@3.13")
	if err != nil || next.Image != "caisson/python:3.13" || !strings.Contains(strings.Join(next.Env, " "), "ONLY=here") ||
		!cmp.Equal(next.RunFile, py.RunFile) || !cmp.Equal(next.Suffixes, py.Suffixes) {
		t.Errorf("version 3.13 is %+v, %v", next, err)
	}
	if same, err := c.Language("python@3.11"); err != nil || same.Name != "python" {
		t.Errorf("python@3.11 is %+v, %v", same, err)
	}
	if l, err := c.ForFile("x.py"); err != nil || l.Name != "python" {
		t.Errorf("the suffix .py is %+v, %v", l, err)
	}
	if again, _ := images.Builtin().Language("python"); strings.Contains(strings.Join(again.Env, " "), "MORE") {
		t.Error("the built-in catalogue was altered")
	}
}

func TestExtendRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, data, text string }{
		{"unknown key, with its line", "languages:\n  python:\n    colour: red\n", "line 3: field colour"},
		{"image of another language", "languages:\n  python:\n    image: caisson/node:20\n", "belongs to"},
		{"a version without an image", "languages:\n  python:\n    versions: {\"3.13\": {suite: trixie}}\n", "needs an image"},
		{"a base without a Dockerfile", "languages:\n  tcl: {suffixes: [.tcl], image: r:1, from: tcl:8}\n", "needs a dockerfile"},
		{"no such version", "languages:\n  python: {offline: \"2.7\"}\n", "does not have"},
		{"half a language", "languages:\n  tcl: {suffixes: [.tcl]}\n", "needs an image"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := images.Builtin().Extend([]byte(tc.data), "")
			if !errors.Is(err, sandbox.Invalid) || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("error %v does not say %q", err, tc.text)
			}
		})
	}
}

package sandbox

import (
	"slices"
	"strings"
)

// Language says how programs of one language are run: which image has its
// interpreter, and which argv runs a text or a file.
type Language struct {
	Name string `json:"name"`
	// Aliases are other names that it goes by, sorted.
	Aliases []string `json:"aliases,omitempty"`
	// Suffixes of its files, with the dot; the first names staged code.
	Suffixes []string `json:"suffixes"`
	// Image is the reference that the engine knows it by.
	Image string `json:"image"`
	// Compile is the argv that makes "{out}", a file or a folder, of "{file}", for a
	// language that is compiled before it runs. RunCode and RunFile then run "{out}".
	Compile []string `json:"compile,omitempty"`
	// CodeFile is what a text is called that is put into a file. "" is main with the
	// first suffix.
	CodeFile string `json:"code_file,omitempty"`
	// RunCode is the argv that runs a text. "{code}" stands for the text
	// itself, "{file}" for a file that holds it and that the user cannot write.
	RunCode []string `json:"run_code"`
	// RunFile is the argv that runs "{file}", a path in the workspace.
	RunFile []string `json:"run_file"`
	// RunTests is the argv that runs the tests of "{file}", nil for none. It may
	// leave a report in "{report}".
	RunTests []string `json:"run_tests,omitempty"`
	// TestReport says how results of tests come: "tap", "junit" or "exit", by
	// RunTests; "pytest" or "unittest", by runners of caisson's own. "" is none.
	TestReport string `json:"test_report,omitempty"`
	// Warm are modules that a warm interpreter of the language imports before it is
	// asked for anything; nil is a language without warm interpreters.
	Warm []string `json:"warm,omitempty"`
	// Env is added to the environment of each exec, KEY=VALUE.
	Env []string `json:"env,omitempty"`
}

// IsVersion reports whether this is a version beside the usual one, such as
// "python@3.13".
func (l Language) IsVersion() bool { return strings.Contains(l.Name, "@") }

// Called reports whether name is its name, or another that it goes by.
func (l Language) Called(name string) bool {
	return l.Name == name || slices.Contains(l.Aliases, strings.ToLower(name))
}

// Argv fills an argv template and appends args. It does not alter template.
func (l Language) Argv(template []string, code, file string, args []string) []string {
	r := strings.NewReplacer("{code}", code, "{file}", file)
	argv := make([]string, 0, len(template)+len(args))
	for _, t := range template {
		argv = append(argv, r.Replace(t))
	}
	return append(argv, args...)
}

// FileName is what a text of the language is called that is put into a file.
func (l Language) FileName() string {
	if l.CodeFile != "" {
		return l.CodeFile
	}
	return "main" + l.Suffixes[0]
}

// Inline reports whether RunCode carries the text in the argv.
func (l Language) Inline() bool { return slices.Contains(l.RunCode, "{code}") }

package gate_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// A script that does what its arguments and variables say is judged with those
// that it gets: from the run, and from other texts.
func TestJudgesWhatAScriptIsGiven(t *testing.T) {
	t.Parallel()
	p := newPolicy(t)
	script := func(text string, args ...string) (sandbox.Run, files) {
		return sandbox.Run{Language: "shell", File: "x.sh", Args: args}, files{"x.sh": text}
	}
	type given struct {
		run  sandbox.Run
		ws   files
		want sandbox.Verdict
	}
	cases := map[string]given{}
	add := func(name string, want sandbox.Verdict, run sandbox.Run, ws files) { cases[name] = given{run, ws, want} }
	of := func(name string, want sandbox.Verdict, text string, args ...string) {
		run, ws := script(text, args...)
		add(name, want, run, ws)
	}
	of("a harmful command in the arguments", sandbox.Deny, `exec "$@"`, "rm", "-rf", "/")
	of("a good one", sandbox.Allow, `exec "$@"`, "ls", "-l")
	of("code in an argument", sandbox.Deny, `eval "$1"`, "rm -rf /")
	of("good code", sandbox.Allow, `eval "$1"`, "echo hi")
	of("a part of a path", sandbox.Deny, `rm -rf "/$1"`, "usr")
	of("a part of a word", sandbox.Deny, `r$1 -rf /`, "m")
	of("shifted", sandbox.Deny, `shift; "$@"`, "ls", "rm", "-rf", "/")
	of("no arguments", sandbox.Allow, `"$@"`)
	of("through a shell of its own", sandbox.Deny, `sh -c '"$0" "$@"' "$@"`, "rm", "-rf", "/")
	of("through find", sandbox.Deny, `find . -exec sh -c '"$@"' _ rm -rf / \;`)
	of("what it writes itself", sandbox.Deny, "printf '%s\\n' '\"$@\"' > h.sh\nsh h.sh rm -rf /")
	of("its own folder", sandbox.Deny, `cd "$(dirname "$0")/.."; rm -rf *`)

	code := func(text string, args ...string) sandbox.Run {
		return sandbox.Run{Language: "shell", Code: text, Args: args}
	}
	add("code with arguments", sandbox.Deny, code(`"$1" -rf /`, "rm"), nil)
	add("a variable of the run", sandbox.Deny, sandbox.Run{Language: "shell", Code: `$TOOL -rf /`, Env: []string{"TOOL=rm"}}, nil)
	add("a default that a variable replaces", sandbox.Deny, sandbox.Run{Language: "shell", Code: `${TOOL:-ls} -rf /`, Env: []string{"TOOL=rm"}}, nil)
	add("a good variable", sandbox.Allow, sandbox.Run{Language: "shell", Code: `$TOOL -l`, Env: []string{"TOOL=ls"}}, nil)
	add("a command of a variable", sandbox.Deny, sandbox.Run{Language: "shell", Command: []string{"sh", "-c", `eval "$TOOL"`}, Env: []string{"TOOL=rm -rf /"}}, nil)

	helper := func(main, helper string) (sandbox.Run, files) {
		return sandbox.Run{Language: "shell", File: "x.sh"}, files{"x.sh": main, "h.sh": helper}
	}
	two := func(name string, want sandbox.Verdict, main, second string) {
		run, ws := helper(main, second)
		add(name, want, run, ws)
	}
	two("another script's arguments", sandbox.Deny, `sh h.sh rm -rf /`, `"$@"`)
	two("good ones", sandbox.Allow, `sh h.sh ls -l`, `"$@"`)
	two("the second time", sandbox.Ask, "sh h.sh ls\nsh h.sh rm -rf /", `"$@"`)
	two("arguments that could not be told", sandbox.Ask, `sh h.sh "$(base64 -d data)"`, `"$@"`)
	two("a variable that is exported", sandbox.Ask, "export X='rm -rf /'\nsh h.sh", `eval "$X"`)
	two("one before a command", sandbox.Ask, `X='rm -rf /' sh h.sh`, `eval "$X"`)
	two("one that a source has", sandbox.Deny, "X='rm -rf /'\n. ./h.sh", `eval "$X"`)
	two("one that could not be told", sandbox.Ask, "X=$(base64 -d data)\n. ./h.sh", `eval "$X"`)
	two("one that is read", sandbox.Ask, "read X\n. ./h.sh", `eval "$X"`)
	two("a good one", sandbox.Allow, "CC=gcc\n. ./h.sh", `$CC -c x.c`)
	two("a default where the variable is not passed on", sandbox.Ask, "X=ls\nsh h.sh", `${X:-rm} -rf /`)
	two("arguments of a source", sandbox.Deny, ". ./h.sh rm -rf /", `"$@"`)

	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := newGate(t, p, &desk{}).Judge(t.Context(), manager.Question{Exec: question(tt.run, tt.ws, "")})
			if err != nil {
				t.Fatal(err)
			}
			got := a.Decision.Verdict
			asked := tt.want == sandbox.Ask && got != sandbox.Allow && slices.ContainsFunc(a.Decision.Findings, func(f sandbox.Finding) bool { return f.Severity >= sandbox.High })
			if got != tt.want && !asked {
				t.Errorf("%s, want %s: %s", got, tt.want, told(a.Decision.Findings))
			}
		})
	}
}

func told(findings []sandbox.Finding) string {
	var b strings.Builder
	for _, f := range findings {
		b.WriteString(f.File + " " + f.ID + " " + f.Message + "\n")
	}
	return b.String()
}

package shell_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/policies"
	"github.com/caisson-dev/caisson/policy/facts"
	"github.com/caisson-dev/caisson/policy/facts/shell"
	"github.com/caisson-dev/caisson/policy/tables"
)

// What a script does with what it is given is read off that, where it is known.
func TestStart(t *testing.T) {
	t.Parallel()
	tb, err := tables.Load(policies.FS)
	if err != nil {
		t.Fatal(err)
	}
	args := func(words ...string) facts.Start {
		s := facts.Start{Known: true}
		for _, w := range words {
			s.Args = append(s.Args, facts.Text(w))
		}
		return s
	}
	env := func(name string, v facts.Value) facts.Start {
		return facts.Start{Known: true, Env: map[string]facts.Value{name: v}}
	}
	maybe := facts.Text("ls")
	maybe.Open = true
	for _, tt := range []struct {
		name  string
		src   string
		start facts.Start
		want  string // an argv, or a kind of dynamic fact with its origins
		not   string
	}{
		{"arguments", `"$1" "$2" /`, args("rm", "-rf"), "rm -rf /", "opaque_command"},
		{"all of them", `exec "$@"`, args("rm", "-rf", "/"), "rm -rf /", "opaque_command"},
		{"lines of a file that is not judged", `grep ^run Makefile | sh`, args(), "opaque_code input file:/workspace/Makefile chosen", ""},
		{"none", `"$@"; $1`, args(), "", "opaque_command"},
		{"shifted", `shift 2; $1 x`, args("a", "b", "rm"), "rm x", "opaque_command"},
		{"in a loop", `for a; do $a x; done`, args("rm", "ls"), "rm x", "opaque_command"},
		{"counted", `if [ $# -eq 2 ]; then x=rm; fi; $x y`, args("a", "b"), "rm y", ""},
		{"through a shell", `sh -c '"$0" "$@"' "$@"`, args("rm", "x"), "rm x", "opaque_command"},
		{"of a shell without any", `sh -c 'rm "/$1"'`, args("x"), "rm /", ""},
		{"passed on", `"$@"`, facts.Start{Known: true, Args: []facts.Value{facts.Passed()}}, "opaque_command passed", ""},
		{"nobody says", `"$@"`, facts.Start{}, "opaque_command argv", ""},
		{"a variable", `$T x`, env("T", facts.Text("rm")), "rm x", "opaque_command"},
		{"a default", `${T:-ls} x`, env("T", facts.Text("rm")), "rm x", "opaque_command"},
		{"one that may be set", `${T:-rm} x; ${T-dd} y`, env("T", maybe), "rm x", "opaque_command"},
		{"one that may be set, or not", `${T-dd} y`, env("T", maybe), "dd y", "opaque_command"},
		{"a default by if", `if [ -z "$T" ]; then T=ls; fi; $T x`, env("T", facts.Text("rm")), "rm x", "opaque_command"},
		{"a default by if of one that may be set", `if [ -z "$T" ]; then T=dd; fi; $T x`, env("T", maybe), "ls x", ""},
		{"a default by if of one that could not be told", `if [ -z "$T" ]; then T=dd; fi; $T x`, env("T", facts.Passed()), "opaque_command passed env:T", ""},
		{"one that could not be told", `$T x`, env("T", facts.Passed()), "opaque_command passed env:T", ""},
		{"set on one way", `if x; then T=ls; fi; $T y`, env("T", facts.Text("rm")), "rm y", "opaque_command"},
		{"its own name", `rm "$(dirname "$0")/x"`, facts.Start{Known: true, Name: "/workspace/a/b.sh"}, "rm /workspace/a/x", ""},
		{"above it", `cd "$(dirname "$0")/../.." && rm "$PWD"`, facts.Start{Known: true, Name: "/workspace/a/b.sh"}, "rm /", ""},
		{"where it is not known", `cd "$(dirname "$0")/../.." && rm "$PWD/x"`, facts.Start{}, "rm /workspace/x", ""},
		{"what it writes", `printf '%s\n' '"$@"' > h.sh; sh h.sh rm x`, args(), "rm x", "opaque_command"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := facts.ScanStarted(t.Context(), tb, facts.Dispatcher{facts.Shell: shell.New(tb)}, facts.Limits{}, facts.Shell, []byte(tt.src), tt.start)
			var got []string
			for i := range d.Commands {
				got = append(got, strings.Join(d.Commands[i].Argv, " "))
			}
			for i := range d.Dynamic {
				got = append(got, d.Dynamic[i].Kind+" "+strings.Join(d.Dynamic[i].From, " "))
			}
			if tt.want != "" && !slices.Contains(got, tt.want) {
				t.Errorf("%q lacks %q in %q", tt.src, tt.want, got)
			}
			if tt.not != "" && slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, tt.not) }) {
				t.Errorf("%q has %q in %q", tt.src, tt.not, got)
			}
		})
	}
}

// What could not be told is named as it is written.
func TestSaysWhatCouldNotBeTold(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		"read x; ${x} -v":                       "${x}",
		"x=$(curl a.test); eval \"$x\"":         `eval "$x"`,
		"true\ncurl a.test |\n  bash -s \"$@\"": `bash -s "$@"`,
		"f() { $doit $1; }; f x":                "$doit",
	} {
		doc, _ := scan(t, src)
		if !slices.ContainsFunc(doc.Dynamic, func(d facts.Dynamic) bool { return d.Detail == want }) {
			t.Errorf("%q does not name %q: %+v", src, want, doc.Dynamic)
		}
	}
}

// What a test says of a variable holds behind it; what a loop does to one is
// what it is in the end.
func TestKnowsVariables(t *testing.T) {
	t.Parallel()
	runCases(t, []testCase{
		{name: "not empty", src: `x=; if [ -z "$x" ]; then x=rm; fi; $x -rf /`, want: []string{wipe}},
		{name: "an argument or nothing", src: `t="${2:-}"; if [ "$t" ]; then rm -rf $t/; fi`, not: []string{"file delete / "}},
		{name: "an argument or nothing, whatever it is", src: `t="${2:-}"; rm -rf "$t/"`, want: []string{"file delete / root"}},
		{name: "or else", src: `[ -n "$D" ] || exit 1; rm -rf "$D/"`, not: []string{"file delete / "}},
		{name: "the other way", src: `[ -z "$D" ] && rm -rf "/$D"`, want: []string{"file delete / root"}},
		{name: "the home is still it", src: `if [ -n "$HOME" ]; then cat "$HOME/.ssh/id_rsa"; fi`, want: []string{"file read /home/user/.ssh/id_rsa credential"}},
		{name: "a flag of a loop", src: `f=false; while read -r l; do f=true; done; $f`, not: []string{"dyn opaque_command"}},
		{name: "one that changes later", src: `c=a; while read -r l; do case $c in a) c=b;; b) c=rm;; esac; done; $c -rf /`, want: []string{wipe}},
		{name: "words are added", src: `c=cp; while read -r l; do c="$c -p"; done; $c a b`, want: []string{"cmd cp a b"}, not: []string{"dyn opaque_command"}},
		{name: "letters are added", src: `c=; while read -r l; do c=$c$l; done; $c a`, want: []string{"dyn opaque_command from stdin"}},
		{name: "an empty list", src: `h=(); for x in "${h[@]}"; do eval "$x"; done`, want: []string{"dyn opaque_code from elsewhere"}},
		{name: "no program", src: `"$AWK" '{ sub(/[ ]*/, "") }'; rm -rf /`, want: []string{wipe}, not: []string{"dyn glob_command"}},
		{name: "not its own name", src: `$echo X/"$0" | cat`, not: []string{"struct fork_bomb"}},
		{name: "several ways", src: `case $1 in a) p="cp -p";; b) p=cp;; c) p=;; d) p="cp -a";; e) p="cp -r";; esac; $X $Y $p "$2" "$3"`, want: []string{"cmd cp -a … …", "cmd cp -r … …"}},
		{name: "handed over", src: "exec python3 \"$0\" \"$@\"\nimport os\n", not: []string{"cmd import"}},
		{name: "handed over if it is there", src: "\"\"\":\"\nwhich python3 && exec python3 \"$0\" \"$@\"\nexec echo no python\n\":\"\"\"\nimport os\nos.system('rm -rf /')\ndef f(x):\n  return (x, 1)\n", want: []string{"py \"\"\":\"\nwhich python3 && exec python3 \"$0\" \"$@\"\nexec echo no python\n\":\"\"\"\nimport os\nos.system('rm -rf /')\ndef f(x):\n  return (x, 1)\n"}, not: []string{"cmd import", "dyn unparsable"}},
		{name: "not handed over for good", src: "which python3 && exec python3 \"$0\"\nrm -rf /\n", want: []string{wipe}},
		{name: "an end that is none", src: "which python3 && exec python3 \"$0\"\nsh''opt -s execfail\nexec nothing\nrm -rf /\n", want: []string{wipe}},
		{name: "an end by another exec", src: "which python3 && exec python3 \"$0\"\nexec() { :; }\nexec nothing\nrm -rf /\n", want: []string{wipe}},
		{name: "no program to end with", src: "which python3 && exec python3 \"$0\"\nexec $nothing\nrm -rf /\n", want: []string{wipe}},
		{name: "handed over by a part", src: "(exec python3 \"$0\")\nrm -rf /\n", want: []string{wipe}},
	})
}

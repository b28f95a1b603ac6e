package shell_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/policy/facts"
)

// render writes each fact as one line: "cmd rm -rf /", "file delete /etc",
// "net connect host:port", "dyn opaque_command", "struct fork_bomb", "env
// write NAME=value", "pipe curl sh", "py code".
func render(doc *facts.Document, python []string) []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for _, c := range doc.Commands {
		words := slices.Clone(c.Argv)
		for _, i := range c.Opaque {
			if i < len(words) {
				words[i] += "…"
			}
		}
		add("cmd %s", strings.Join(words, " "))
		if c.Background {
			add("bg %s", c.Name)
		}
		if len(c.In) > 0 {
			add("in %s %s", strings.Join(c.In, "/"), c.Name)
		}
	}
	for _, f := range doc.Files {
		add("file %s %s %s", f.Op, f.Path, f.Class)
		if len(f.From) > 0 {
			add("file %s %s from %s", f.Op, f.Path, strings.Join(f.From, " "))
		}
	}
	for _, n := range doc.Net {
		add("net %s %s:%d", n.Op, n.Host, n.Port)
		if len(n.Carries) > 0 {
			add("net %s %s carries %s", n.Op, n.Host, strings.Join(n.Carries, " "))
		}
	}
	for _, e := range doc.Env {
		add("env %s %s=%s", e.Op, e.Name, e.Value)
	}
	for _, d := range doc.Dynamic {
		add("dyn %s", d.Kind)
		if len(d.From) > 0 {
			add("dyn %s from %s", d.Kind, strings.Join(d.From, " "))
		}
	}
	for _, s := range doc.Structs {
		add("struct %s", s.Kind)
		add("struct %s %s", s.Kind, s.Detail)
	}
	for _, p := range doc.Pipes {
		add("pipe %s", strings.Join(p.Names, " "))
	}
	for _, p := range python {
		add("py %s", p)
	}
	return out
}

type testCase struct {
	name string
	src  string
	want []string // facts that must be there
	not  []string // beginnings that no fact may have
}

func runCases(t *testing.T, cases []testCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			doc, python := scan(t, c.src)
			got := render(doc, python)
			for _, want := range c.want {
				if !slices.Contains(got, want) {
					t.Errorf("%q\nlacks %q in\n  %s", c.src, want, strings.Join(got, "\n  "))
				}
			}
			for _, not := range c.not {
				if slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, not) }) {
					t.Errorf("%q\nhas %q in\n  %s", c.src, not, strings.Join(got, "\n  "))
				}
			}
		})
	}
}

const wipe = "cmd rm -rf /"

func TestWords(t *testing.T) {
	t.Parallel()
	runCases(t, []testCase{
		{name: "plain", src: "rm -rf /", want: []string{wipe, "file delete / root"}},
		{name: "backslashes", src: `r\m -\rf \/`, want: []string{wipe}},
		{name: "empty quotes", src: `''r"m" -r''f "/"`, want: []string{wipe}},
		{name: "ansi hex", src: `$'\x72\155' -rf $'\u002f'`, want: []string{wipe}},
		{name: "locale quotes", src: `$"rm" -rf /`, want: []string{wipe}},
		{name: "joined lines", src: "r\\\nm -rf \\\n  /", want: []string{wipe}},
		{name: "ifs", src: `rm${IFS}-rf$IFS/`, want: []string{wipe}},
		{name: "own ifs", src: `IFS=,; c=rm,-rf,/; $c`, want: []string{wipe}},
		{name: "ifs of a letter", src: `IFS=_; c=rm_-rf_/; $c`, want: []string{wipe}},
		{name: "former directory", src: `cat $OLDPWD/../etc/shadow`, want: []string{"file read /etc/shadow credential"}},
		{name: "descriptor as a file", src: `exec 5< <(echo 'rm -rf /'); . /dev/fd/5`, want: []string{wipe}},
		{name: "own text", src: `tail -n +5 "$0" | sh; sed 1d "$0" | sh`, want: []string{"dyn opaque_code"}},
		{name: "unset in the middle", src: `r${nothing}m -r$@f /`, want: []string{wipe}},
		{name: "braces", src: `{rm,-rf,/}`, want: []string{wipe}},
		{name: "brace product", src: `rm -rf /{a,b}{1..3..2}`, want: []string{"cmd rm -rf /a1 /a3 /b1 /b3"}},
		{name: "brace letters", src: `echo {c..a} {01..03}`, want: []string{"cmd echo c b a 01 02 03"}},
		{name: "quoted braces stay", src: `echo "{a,b}" '{c,d}'`, want: []string{"cmd echo {a,b} {c,d}"}},
		{name: "tilde", src: `cat ~/.ssh/id_rsa "$HOME"/.ssh/config`, want: []string{"file read /home/user/.ssh/id_rsa credential", "file read /home/user/.ssh/config credential"}},
		{name: "glob command", src: `/b?n/c[a]t /etc/shadow`, want: []string{"cmd /bin/cat /etc/shadow", "dyn glob_command"}},
		{name: "test is no glob", src: `[ -f x ] && [ a = b ]`, not: []string{"dyn"}},
		{name: "arithmetic", src: `echo $((2*(3+4))) $((0x10)) $((8#17)) $((1<<4|1)) $((5>3?7:9))`, want: []string{"cmd echo 14 16 15 17 7"}},
		{name: "arithmetic assigns", src: `((x=3, x+=4)); let y=x*2; echo $x $y $((x++)) $x`, want: []string{"cmd echo 7 14 7 8"}},
		{name: "commands in an index", src: `echo $((a[$(rm -rf /)]))`, want: []string{wipe}},
		{name: "comment", src: "ls # rm -rf /\n#rm -rf /\n", not: []string{"cmd rm"}},
		{name: "echoed", src: `echo 'rm -rf /'; printf '%s\n' "rm -rf /"; grep "rm -rf /" x`, not: []string{"cmd rm", "dyn"}},
		{name: "heredoc to cat", src: "cat <<EOF\nrm -rf /\nEOF\n", not: []string{"cmd rm", "dyn"}},
	})
}

func TestParameters(t *testing.T) {
	t.Parallel()
	runCases(t, []testCase{
		{name: "substring", src: `x=arms; ${x:1:2} -rf ${PWD:0:1}`, want: []string{wipe}},
		{name: "negative substring", src: `x=xxrm; ${x: -2} -rf /`, want: []string{wipe}},
		{name: "replace", src: `x=rXmX; ${x//X/} -rf /`, want: []string{wipe}},
		{name: "replace first", src: `x=aa; echo ${x/a/b} ${x/%a/c} ${x/#a/d}`, want: []string{"cmd echo ba ac da"}},
		{name: "trim", src: `x=a/b/c.tar.gz; echo ${x##*/} ${x#*/} ${x%.*} ${x%%.*}`, want: []string{"cmd echo c.tar.gz b/c.tar.gz a/b/c.tar a/b/c"}},
		{name: "case", src: `x=Rm; ${x,,} -rf /; y=ls; echo ${y^} ${y^^}`, want: []string{wipe, "cmd echo Ls LS"}},
		{name: "default", src: `${x:-rm} -rf ${y-/}`, want: []string{wipe}, not: []string{"dyn"}},
		{name: "assign default", src: `: ${x:=rm}; $x -rf /`, want: []string{wipe}},
		{name: "alternative", src: `x=1; ${x:+rm} -rf /`, want: []string{wipe}},
		{name: "length", src: `x=abc; echo ${#x}`, want: []string{"cmd echo 3"}},
		{name: "indirect", src: `a=b; b=rm; ${!a} -rf /`, want: []string{wipe}},
		{name: "nameref", src: `declare -n r=t; t=rm; $r -rf /`, want: []string{wipe}},
		{name: "transform", src: `x='\x72m'; ${x@E} -rf /; y=RM; ${y@L} -rf /`, want: []string{wipe}},
		{name: "array", src: `a=(rm -rf); a+=(/); "${a[@]}"; ${a[0]} ${a[*]:1:1} /tmp`, want: []string{wipe, "cmd rm -rf /tmp"}},
		{name: "array elements", src: `a[2]=/; a[0]=rm; a[1]=-rf; ${a[@]}`, want: []string{wipe}},
		{name: "table", src: `declare -A t=([x]=rm [y]=/); t[z]=-rf; ${t[x]} ${t[z]} ${t[y]}`, want: []string{wipe}},
		{name: "append", src: `x=r; x+=m; $x -rf /`, want: []string{wipe}},
		{name: "positional", src: `set -- rm -rf /; "$@"; $1 $2 /tmp; shift; rm "$@"`, want: []string{wipe, "cmd rm -rf /tmp"}},
		{name: "last argument", src: `true rm; $_ -rf /`, want: []string{wipe}},
		{name: "printf v", src: `printf -v c '%s%c' r mx; $c -rf /`, want: []string{wipe}},
		{name: "read", src: `read a b <<< "rm -rf /"; $a $b`, want: []string{wipe}},
		{name: "read array", src: `IFS=: read -ra a <<< rm:-rf:/; "${a[@]}"`, want: []string{"cmd rm -rf /"}},
		{name: "mapfile", src: "mapfile -t a <<< $'rm\\n-rf\\n/'; \"${a[@]}\"", want: []string{wipe}},
		{name: "branches", src: `if x; then c=rm; else c=ls; fi; $c -rf /`, want: []string{wipe, "cmd ls -rf /"}},
		{name: "case branches", src: `case $1 in a) c=rm;; b) c=cat;; *) c=ls;; esac; $c -rf /`, want: []string{wipe, "cmd cat -rf /", "cmd ls -rf /"}, not: []string{"dyn"}},
		{name: "decided case", src: `case ab in a*) c=rm;; *) c=ls;; esac; $c -rf /`, want: []string{wipe}, not: []string{"cmd ls"}},
		{name: "too many alternatives", src: manyBranches(40) + `$c -rf /`, want: []string{"dyn opaque_command"}},
		{name: "opaque argument", src: `rm -rf "$1"`, want: []string{"cmd rm -rf …"}, not: []string{"dyn"}},
		{name: "opaque name", src: `x=$(date); $x -rf /`, want: []string{"dyn opaque_command"}},
		{name: "unset root", src: `rm -rf "$DIR/"`, want: []string{"file delete / unknown"}},
		{name: "path of a variable", src: `rm -rf "$DIR/build"`, not: []string{"file delete /build"}},
		{name: "prompt", src: `x='$(rm -rf /)'; echo "${x@P}"`, want: []string{wipe}},
	})
}

func manyBranches(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "if a; then c=c%d; fi\n", i)
	}
	return b.String()
}

func TestSubstitution(t *testing.T) {
	t.Parallel()
	runCases(t, []testCase{
		{name: "echo", src: "$(echo rm) -rf `echo /`", want: []string{wipe}},
		{name: "echo escapes", src: `$(echo -e '\x72\x6d') -rf /`, want: []string{wipe}},
		{name: "printf octal", src: `$(printf '\162\155') -rf /`, want: []string{wipe}},
		{name: "base64", src: `$(echo cm0gLXJmIC8= | base64 -d)`, want: []string{"dyn opaque_command"}},
		{name: "base64 here string", src: `bash -c "$(base64 --decode <<< cm0gLXJmIC8=)"`, want: []string{"dyn opaque_code"}},
		{name: "openssl", src: `echo cm0gLXJmIC8= | openssl base64 -d | sh`, want: []string{"dyn opaque_code"}},
		{name: "base32", src: `echo OJWSALLSMYQC6=== | base32 -d | sh`, want: []string{"dyn opaque_code"}},
		{name: "xxd", src: `xxd -r -p <<< 726d202d7266202f | sh`, want: []string{"dyn opaque_code"}},
		{name: "rev", src: `rev <<< '/ fr- mr' | sh`, want: []string{"dyn opaque_code"}},
		{name: "tr", src: `echo 'SN.jfU' | tr 'SNjfU' 'rm-f/' | sh`, want: []string{"dyn opaque_code"}},
		{name: "tr rot13", src: `sh -c "$(tr 'a-z' 'n-za-m' <<< 'ez -es /')"`, want: []string{"dyn opaque_code"}},
		{name: "tr classes", src: `$(echo RM | tr '[:upper:]' '[:lower:]') -rf /`, want: []string{"dyn opaque_command"}},
		{name: "tr delete", src: `$(echo r1m2 | tr -d 0-9) -rf /`, want: []string{"dyn opaque_command"}},
		{name: "cut", src: `$(echo x:rm:y | cut -d: -f2) -rf /; $(echo xrmy | cut -c2-3) -rf /tmp`, want: []string{"dyn opaque_command"}},
		{name: "sed", src: `$(echo XmX | sed 's/^X/r/; s/X$//') -rf /`, want: []string{"dyn opaque_command"}},
		{name: "sed groups", src: `$(echo m-r | sed -E 's/(.)-(.)/\2\1/') -rf /; $(echo abm | sed 'y/ab/ r/') -rf /tmp`, want: []string{"dyn opaque_command"}},
		{name: "awk", src: `$(echo a rm b | awk '{print $2}') -rf $(awk 'BEGIN{print "/"}')`, want: []string{"dyn opaque_command"}},
		{name: "head and tail", src: "x=$'a\\nrm\\nb'; $(echo \"$x\" | head -2 | tail -n1) -rf /", want: []string{"dyn opaque_command"}},
		{name: "cat heredoc", src: "$(cat <<'E'\nrm -rf /\nE\n)", want: []string{wipe}},
		{name: "file", src: `echo rm > /tmp/a; $(cat /tmp/a) -rf /; $(< /tmp/a) -rf /tmp`, want: []string{wipe, "cmd rm -rf /tmp"}},
		{name: "command v", src: `$(command -v rm) -rf /; $(which rm) -rf /tmp`, want: []string{wipe, "cmd rm -rf /tmp"}},
		{name: "python prints", src: `$(python3 -c 'print("rm -rf /")')`, want: []string{"dyn opaque_command"}},
		{name: "dirname", src: `rm -rf $(dirname /etc) $(basename /a/b.c .c)`, want: []string{"cmd rm -rf / b"}},
		{name: "functions print", src: `f() { echo "$1$2"; }; $(f r m) -rf /`, want: []string{wipe}},
		{name: "group prints", src: `$( { echo -n r; echo m; } ) -rf /; $(for c in r m; do printf $c; done) -rf /tmp`, want: []string{wipe, "cmd rm -rf /tmp"}},
		{name: "gunzip", src: `echo H4sIAAAAAAACAyvKVdAtSlPQBwAnvC5qCAAAAA== | base64 -d | gunzip | sh`, want: []string{"dyn opaque_code"}},
		{name: "unknown output", src: `x=$(some-tool); echo "$x"; ls "$x"`, not: []string{"dyn"}},
	})
}

package shell_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/policy/facts"
	"github.com/caisson-dev/caisson/policy/facts/shell"
)

// doubts are the facts that policy treats as doubt.
func doubts(doc *facts.Document) []string {
	var out []string
	for _, d := range doc.Dynamic {
		out = append(out, d.Kind)
	}
	return out
}

// patience is more than any text takes on any machine, unless what it takes
// grows with its square. bench/policy holds hostile texts to their time.
const patience = 20 * time.Second

func TestHostile(t *testing.T) {
	t.Parallel()
	calls := "f0() { rm -rf /; }\n"
	for i := 1; i < 20; i++ {
		calls += fmt.Sprintf("f%d() { f%d $1a; f%d $1b; }\n", i, i-1, i-1)
	}
	loops := strings.Repeat("for i in 1 2 3 4 5 6 7 8 9; do ", 12) + "x=$x$i; rm $x" + strings.Repeat("; done", 12)
	cases := []struct {
		name, src string
		doubt     bool // something must say that not all was seen
	}{
		{"parentheses", strings.Repeat("(", 1_000_000), true},
		{"substitutions", strings.Repeat("$(", 100_000), true},
		{"nested backquotes", strings.Repeat("`", 60_001), true},
		{"braces", "echo " + strings.Repeat("{a,b}", 40), true},
		{"nested braces", "echo " + strings.Repeat("{a,", 100) + strings.Repeat("}", 100), false},
		{"long sequence", "rm {1..99999999}", true},
		{"calls", calls + "f19", true},
		{"nested loops", loops, false},
		{"growing text", "x=aaaaaaaa\n" + strings.Repeat("x=$x$x\n", 400) + "echo $x", false},
		{"growing array", "a=(1 2)\n" + strings.Repeat("a+=(\"${a[@]}\")\n", 200) + "rm \"${a[@]}\"", true},
		{"alternatives", strings.Repeat("c && x=$x$RANDOM || x=b$x\n", 500) + "rm $x", false},
		{"patterns", "x=" + strings.Repeat("a", 60000) + "\n" + strings.Repeat("y=${x%%*a*b*}; z=${x//a*b/}\n", 300), false},
		{"arithmetic", "a=" + strings.Repeat("b+", 60) + "b; b=" + strings.Repeat("c+", 60) + "c; c=" + strings.Repeat("a+", 60) + "a; echo $((a))", false},
		{"long and", strings.Repeat("true && ", 20000) + "true", false},
		{"many evals", strings.Repeat("eval 'eval \"eval x=1\"'\n", 3000), false},
		{"eval of growing code", `x='x="$x;$x"; eval "$x"'; eval "$x"`, true},
		{"endless functions", "f() { g; }; g() { f; }; f", false},
		{"aliases of each other", "alias a=b b=a; a", false},
		{"NUL bytes", "r\x00m -rf /", true},
		{"marks", "x='\x01\x00'; \x01rm -rf /\x01", true},
		{"starts of itself", `if [ "$1" = w ]; then ` + strings.Repeat("ls; cat x; ", 8000) + "exit; fi\n" + strings.Repeat("sh $0 w &\n", 8000), false},
		{"unclosed", "echo 'abc", true},
		{"deep eval", "eval " + strings.Repeat("eval ", 500) + "rm", true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { // one by one: each is timed
			start := time.Now()
			doc, _ := scan(t, c.src)
			if took := time.Since(start); took > patience {
				t.Errorf("took %v", took)
			}
			if d := doubts(doc); c.doubt && len(d) == 0 {
				t.Errorf("nothing says that this is doubtful: %+v", doc.Meta)
			}
			if n := len(doc.Commands) + len(doc.Files) + len(doc.Dynamic); n > 60_000 {
				t.Errorf("%d facts", n)
			}
		})
	}
}

func TestCanceled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tables := testTables()
	d := facts.Dispatcher{facts.Shell: shell.New(tables)}
	src := strings.Repeat("for i in 1 2 3; do rm $i; done\n", 2000)
	doc := facts.Scan(ctx, tables, d, facts.Limits{}, facts.Shell, []byte(src))
	if len(doubts(doc)) == 0 {
		t.Error("a scan that was canceled looks complete")
	}
}

func FuzzExtract(f *testing.F) {
	for _, s := range []string{
		"", "rm -rf /", `x=rm; $x -rf "${y:-/}"`, `eval "$(echo cm0= | base64 -d)"`, "f() { f|f& }; f",
		"for i in a b; do x+=$i; done; $x", "cat <<E | sh\nrm $x\nE\n", `a=(1 2); a[5]=x; echo "${a[@]:1:2}" ${!a[@]}`,
		"case $x in a*) y=1;; *) y=2;; esac; sh -c \"$y\"", "while read -r l; do $l; done <<< 'a b'",
		`printf -v c '%s\x41%03d' a 7; $c`, "trap 'x' EXIT; alias a='b c'; a d", "((x=1<<3,y=x**2)); echo $((y?x:0))",
		"exec 3<>/dev/tcp/a/1; cat <&3 >&3", `sed 's/\(a\)/\1\n/g;2d' <<< aa | tr a-c A-C | cut -d, -f2-`, "/b?n/[c]at {a..c}{1,2}",
	} {
		f.Add(s)
	}
	tables := testTables()
	d := facts.Dispatcher{facts.Shell: shell.New(tables)}
	f.Fuzz(func(t *testing.T, src string) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		first := facts.Scan(ctx, tables, d, facts.Limits{}, facts.Shell, []byte(src))
		if ctx.Err() != nil {
			t.Fatalf("no end within 20 s")
		}
		for _, dyn := range first.Dynamic {
			if strings.Contains(dyn.Detail, "extractor panicked") {
				t.Fatalf("%s", dyn.Detail)
			}
		}
		for _, c := range first.Commands {
			for _, a := range c.Argv {
				if strings.ContainsAny(a, "\x00\x01") {
					t.Fatalf("a mark got out: %q", c.Argv)
				}
			}
		}
		second := facts.Scan(ctx, tables, d, facts.Limits{}, facts.Shell, []byte(src))
		if !reflect.DeepEqual(first, second) {
			t.Fatalf("two scans differ:\n%+v\n%+v", first, second)
		}
	})
}

// TestCorpus needs the evaluation corpora, which are not part of the project.
func TestCorpus(t *testing.T) {
	t.Parallel()
	path := os.Getenv("CORPUS")
	if path == "" {
		t.Skip("CORPUS is not set")
	}
	file, err := os.Open(path + "/evasions_dev.jsonl")
	if err != nil {
		t.Skip(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var row struct{ ID, Language, Code string }
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		if row.Language != "bash" {
			continue
		}
		doc, python := scan(t, row.Code)
		telling := len(doc.Files) + len(doc.Dynamic) + len(doc.Structs) + len(doc.Net) + len(python) + len(doc.Env)
		for _, c := range doc.Commands {
			if strings.HasPrefix(c.Name, "mkfs") || c.Name == "rm" {
				telling++
			}
		}
		if telling == 0 {
			t.Errorf("%s gives no fact to judge: %q", row.ID, row.Code)
		}
	}
}

// script200 is a script of 200 lines as people write them.
func script200() string {
	part := `#!/bin/bash
set -euo pipefail
readonly ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
log() { printf '[%s] %s\n' "$(date +%T)" "$*" >&2; }
die() { log "error: $1"; exit 1; }
usage() {
  cat <<EOF
usage: $0 [-n NAME] [-o DIR]
EOF
}
name=demo out=build
while getopts "n:o:h" opt; do
  case "$opt" in
    n) name=$OPTARG ;;
    o) out=$OPTARG ;;
    *) usage; exit 2 ;;
  esac
done
mkdir -p "$ROOT/$out"
for f in "$ROOT"/src/*.py; do
  base=$(basename "$f" .py)
  if [[ -f "$out/$base.done" ]]; then
    log "skip $base"
    continue
  fi
  python3 -m compileall -q "$f" || die "compile $base"
  cp "$f" "$out/$base.py"
  touch "$out/$base.done"
done
count=$(ls "$out" | wc -l)
[ "$count" -gt 0 ] || die "nothing built"
grep -rn "TODO" "$ROOT/src" | sort | head -20 > "$out/todo.txt"
total=0
while IFS=, read -r key value; do
  total=$((total + value))
  names+=("$key")
done < "$ROOT/data.csv"
echo "$name: $count files, $total, ${names[*]}"
tar czf "$out/$name.tar.gz" -C "$out" .
`
	return strings.Join(strings.SplitAfter(strings.Repeat(part, 6), "\n")[:200], "")
}

func BenchmarkExtract200Lines(b *testing.B) {
	tables := testTables()
	d := facts.Dispatcher{facts.Shell: shell.New(tables)}
	src := []byte(script200())
	b.ReportAllocs()
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		facts.Scan(context.Background(), tables, d, facts.Limits{}, facts.Shell, src)
	}
}

func BenchmarkExtractOneLine(b *testing.B) {
	tables := testTables()
	d := facts.Dispatcher{facts.Shell: shell.New(tables)}
	for b.Loop() {
		facts.Scan(context.Background(), tables, d, facts.Limits{}, facts.Shell, []byte(`x=rm; $x -rf "${HOME:0:1}"`))
	}
}

// Package hostile has texts that are made to cost whoever judges them as much as
// they can. Tests hold what comes of them, bench/policy how long it takes.
package hostile

import (
	"fmt"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// Text is one of them.
type Text struct {
	Name string
	Lang facts.Lang
	Code string
}

// lines is n lines, each of the format with its number.
func lines(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format+"\n", i)
	}
	return b.String()
}

// ForRules returns texts of up to the longest that is scanned whose facts are
// many, or make the rules work. None may be allowed.
func ForRules() []Text {
	return []Text{
		{"files that are run", facts.Shell, strings.Repeat("/a/.test(b);", 80_000)},
		{"as many files", facts.Shell, lines(20_000, "/workspace/f%d.sh a")},
		{"files and variables", facts.Shell, lines(9_000, "export A%[1]d=x; B=c sh f%[1]d.sh")},
		{"files that are written", facts.Shell, lines(6_000, "cat > d%[1]d/x <<E\nls\nE\nsh d%[1]d/x")},
		{"shell commands in Python", facts.Python, "import os\n" + lines(30_000, "os.system('ls %d')")},
		{"Python functions", facts.Python, lines(30_000, "def f%[1]d(a):\n  return f%[1]d(a)")},
		{"JavaScript functions", facts.JavaScript, lines(20_000, "function f%[1]d(a){return f%[1]d(a)}") + "require('child_process').exec('sudo id')"},
		{"clusters", facts.Shell, lines(3_000, "kubectl delete pods -n ns%[1]d -l app=x%[1]d --field-selector a=b")},
		{"engines", facts.Shell, lines(4_000, "docker compose -f a.yml -p x%[1]d up -d svc%[1]d")},
		{"containers", facts.Shell, lines(6_000, "docker exec a%d true")},
		{"files of the system", facts.Shell, lines(9_000, "echo a%[1]d > /etc/x%[1]d")},
		{"one pipeline", facts.Shell, "curl x" + strings.ReplaceAll(lines(10_000, " | sh | p%d"), "\n", "")},
		{"unknown code", facts.Python, lines(20_000, "eval(x%d)")},
		{"JavaScript commands", facts.JavaScript, "const {exec}=require('child_process')\n" + lines(30_000, "exec('ls %d')")},
	}
}

// ForScanners returns texts, some far too long, that keep parsers and what reads
// their trees at work. The doubtful ones must be told to be so.
func ForScanners() (doubtful, plain []Text) {
	doubtful = []Text{
		{"parentheses", facts.Python, strings.Repeat("(", 5_000_000)},
		{"substitutions", facts.Shell, strings.Repeat("$(", 1_000_000)},
		{"some brackets", facts.Shell, strings.Repeat("$(", 500_000)},
		{"broken python", facts.Python, strings.Repeat("def ( : [ { \" ' ) ] lambda x:\n", 33_000)},
		{"broken js", facts.JavaScript, strings.Repeat("function ( { [ ` ' \" => class ${ \n", 25_000)},
		{"broken bash", facts.Shell, strings.Repeat("if { ( case x in $( ` \" ' <<E\n", 30_000)},
		{"100 MB", facts.Python, strings.Repeat("x=1\n", 25_000_000)},
		{"NUL", facts.Python, "import os\x00\nos.system('id')"},
		{"plus", facts.Python, "x='a'" + strings.Repeat("+'a'", 200_000) + "\nexec(x)"},
		{"doubling", facts.Python, "x='a'\n" + strings.Repeat("x=x+x\n", 500) + "exec(x)"},
		{"ifs", facts.Shell, strings.Repeat("if true; then ", 65_000)},
		{"heredocs", facts.Shell, strings.Repeat("cat <<A\n", 120_000)},
	}
	plain = []Text{
		{"braces", facts.Shell, "echo " + strings.Repeat("{a,b}", 40)},
		{"brace range", facts.Shell, "echo {1..100000000}"},
		{"not of prefixes", facts.Python, strings.Repeat("not ", 250_000) + "x"},
		{"unary", facts.JavaScript, strings.Repeat("!", 1_000_000) + "x"},
		{"ternary", facts.JavaScript, strings.Repeat("a?", 500_000)},
		{"dots", facts.Python, "a" + strings.Repeat(".a", 500_000)},
	}
	return doubtful, plain
}

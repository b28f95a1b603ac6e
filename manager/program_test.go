package manager_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/bubblewrap"
	"github.com/caisson-dev/caisson/sandbox"
)

// returns runs a program that is to return a value.
func returns(t *testing.T, m *manager.Manager, language, code string) sandbox.Result {
	t.Helper()
	res, err := m.Run(t.Context(), sandbox.Run{
		Language: language, Code: code, Program: true, Args: []string{"one"},
		ExecLimits: sandbox.ExecLimits{Timeout: sandbox.Duration(5 * time.Minute)}, Limits: sandbox.Limits{Memory: 1 << 30, CPUs: 2},
	}, sandbox.Streams{})
	if err != nil {
		t.Fatal(err)
	}
	if res.Program == nil {
		t.Fatalf("%s\nreturned nothing: %s", code, res.Stderr)
	}
	return res
}

// TestProgram holds what programs return, or why they do not, against what they say.
func TestProgram(t *testing.T) {
	t.Parallel()
	m := toolManager(t, manager.Unjudged, searching(t))
	for _, tt := range []struct{ language, code, value, output, kind, says string }{
		{"python", "x = 1\nx + 1", "2", "", "", ""},
		{"python", "print('out')\nreturn {'a': [1, None, 'é']}", `{"a":[1,null,"é"]}`, "out\n", "", ""},
		{"python", "await asyncio.gather(*[web_search(q) for q in 'ab'])", `[["a","0"],["b","0"]]`, "", "", ""},
		{"python", "web_search('plain')", `["plain","0"]`, "", "", ""},
		{"python", "x: int = 5\nclass A:\n  y: int = 6\n  def f(self): return x\ndef g(): return A().f(), A.__qualname__, __name__\ng()", `[5,"A","__main__"]`, "", "", ""},
		{"python", "from __future__ import annotations\nfrom os.path import *\nfor n in range(3):\n  if n == 1: return join('a', str(n))", `"a/1"`, "", "", ""},
		{"python", "if __name__ == '__main__':\n  import sys\n  sys.stderr.write('e')\nsys.argv[1:]", `["one"]`, "", "", ""},
		{"python", "import pickle\nclass P: pass\ntype(pickle.loads(pickle.dumps(P()))).__name__", `"P"`, "", "", ""},
		{"python", "import datetime\n{'s': {1}, 'd': datetime.date(2020, 1, 2), 'b': b'abc'}", `{"b":"YWJj","d":"2020-01-02","s":[1]}`, "", "", ""},
		{"python", "print(1)", "null", "1\n", "", ""},
		{"python", "# nothing", "null", "", "", ""},
		{"python", "import os\nif os.fork() == 0:\n  7\nelse:\n  os.wait()\n'parent'", `"parent"`, "", "", ""},
		{"python", "import sys\nsys.exit(0)", "null", "", "", ""},
		{"python", "import sys\nsys.exit(3)", "", "", "exited", "exit code 3"},
		{"python", "def f():\n  raise KeyError('gone')\n\nf()", "", "", "KeyError", "main.py\", line 4, in <module>\n    f()\n  File"},
		{"python", "x = 1\ny = (2,\n", "", "", "SyntaxError", "line 2"},
		{"python", "yield 1", "", "", "SyntaxError", "'yield' outside function"},
		{"python", "web_search(1)", "", "", "Invalid", "arguments do not fit"},
		{"python", "class Odd: pass\n[Odd()]", "", "", "value", "Odd is not JSON"},
		{"python", "async def main(): pass\nmain()", "", "", "value", "coroutine is not JSON: await it"},
		{"python", "float('nan')", "", "", "value", "not JSON"},
		{"python", "x = []\nfor _ in range(100000): x = [x]\nx", "", "", "value", "not JSON"},
		{"python", "'x' * (9 << 20)", "", "", "value", "at most 8"},
		{"python", "'x' * (8 << 20 - 2)", "", "", "", ""},
		{"python", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "", "", "signal", "ended by signal"},
		{"node", "const x = 1;\nx + 1", "2", "", "", ""},
		{"node", "await web_search('a')", `["a","0"]`, "", "", ""},
		{"node", "const all = await Promise.all(['a', 'b'].map((q) => web_search(q)));\nconsole.log(all.length);\nreturn {all}", `{"all":[["a","0"],["b","0"]]}`, "2\n", "", ""},
		{"node", "const r = [1,\n  2];\nr.map((n) => n * 2); // doubled", "[2,4]", "", "", ""},
		{"node", "let n = 1\nn += 1\n;({n})", `{"n":2}`, "", "", ""},
		{"node", "const f = function () { return g }\nfunction g() { return 1 }\nf()()", "1", "", "", ""},
		{"node", "const fs = require('fs');\nconst {join} = await import('path');\nrequire.main === module ? [join('a', 'b'), process.argv.slice(2)] : 0", `["a/b",["one"]]`, "", "", ""},
		{"node", "const a = 5\nconst b = a\n/2/1", "null", "", "", ""},
		{"node", "for (const n of [1, 2]) {\n  if (n === 2) return n;\n}", "2", "", "", ""},
		{"node", "console.log(1)", "null", "1\n", "", ""},
		{"node", "// nothing", "null", "", "", ""},
		{"node", "({s: new Set([1]), m: new Map([['k', 2]]), b: Buffer.from('abc'), u: undefined})", `{"b":"YWJj","m":{"k":2},"s":[1]}`, "", "", ""},
		{"node", "function f() {\n  throw new RangeError('far');\n}\nf();", "", "", "RangeError", "/workspace/[program]:4:"},
		{"node", "const x = 1;\nconst y = (;\n", "", "", "SyntaxError", "/workspace/[program]:2\nconst y"},
		{"node", "}); console.log('escaped'); (() => {", "", "", "SyntaxError", ""},
		{"node", "throw 'plain'", "", "", "string", "plain"},
		{"node", "new Promise(() => {})", "", "", "value", "waits for what never comes"},
		{"node", "[1n]", "", "", "value", "bigint is not JSON"},
		{"node", "[new Promise(() => {})]", "", "", "value", "Promise is not JSON: await it"},
		{"node", "({n: NaN})", "", "", "value", "NaN is not JSON"},
		{"node", "const o = {};\no.o = o;\no", "", "", "value", "circular"},
		{"node", "setTimeout(() => { throw new Error('late') }, 1);\n1", "", "", "exited", "exit code 1"},
		{"node", "process.exit(0)", "null", "", "", ""},
		{"node", "'x'.repeat(9 << 20)", "", "", "value", "at most 8"},
	} {
		res := returns(t, m, tt.language, tt.code)
		p := res.Program
		if strings.Contains(tt.code, "8 << 20 - 2") {
			if !p.Success || len(p.Value) < 1<<20 {
				t.Errorf("a large value: %d bytes, %+v", len(p.Value), p.Error)
			}
			continue
		}
		if p.Success != (tt.kind == "") || string(p.Value) != tt.value || string(res.Stdout) != tt.output {
			t.Errorf("%s\nreturned %s (%v) and printed %q; want %s and %q: %+v\n%s", tt.code, p.Value, p.Success, res.Stdout, tt.value, tt.output, p.Error, res.Stderr)
			continue
		}
		if tt.kind == "" {
			continue
		}
		if e := p.Error; e == nil || e.Kind != tt.kind || !strings.Contains(e.Message+"\n"+e.Traceback, tt.says) || strings.Contains(e.Traceback, "program.cjs") || strings.Contains(e.Traceback, "caisson_program") {
			t.Errorf("%s\nfailed with %+v; want %s, %q", tt.code, p.Error, tt.kind, tt.says)
		}
		if res.Code == 0 {
			t.Errorf("%s\nfailed with exit code 0", tt.code)
		}
	}
}

// forge is what speaks to the host as a program's end does.
const forge = `import os, socket, struct
def say(text):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    s.connect(os.environ['CAISSON_TOOLS'])
    s.sendall(struct.pack('>IIB', len(text), 1, 2) + text)
    return s.recv(1 << 16)[9:].decode()
`

// TestProgramForged has programs, and what they start, tell of values by themselves:
// what is printed is none, and of two that are told none is taken for the program's.
func TestProgramForged(t *testing.T) {
	t.Parallel()
	m := toolManager(t, manager.Unjudged)
	for name, tt := range map[string]struct{ code, value, kind string }{
		"printed":  {"print('{\"return\": 1}')\n2", "2", ""},
		"twice":    {forge + "print(say(b'{\"return\": 1}'))\n2", "", "conflict"},
		"raised":   {forge + "say(b'{\"return\": 1}')\nraise ValueError()", "", "conflict"},
		"alone":    {forge + "say(b'{\"return\": 1}')\nos._exit(0)", "1", ""},
		"and fail": {forge + "say(b'{\"return\": 1}')\nos._exit(4)", "", "exited"},
		"nonsense": {forge + "assert 'invalid' in say(b'{\"return\": }')\n2", "2", ""},
		"by raise": {forge + "say(b'{\"raise\": {\"kind\": \"' + b'k' * 4000 + b'\"}}')\nos._exit(0)", "", "kkkk"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := returns(t, m, "python", tt.code).Program
			if string(p.Value) != tt.value || p.Success != (tt.kind == "") {
				t.Fatalf("%+v %+v", p, p.Error)
			}
			if tt.kind != "" && (!strings.HasPrefix(p.Error.Kind, tt.kind) || len(p.Error.Kind) > 1000) {
				t.Errorf("%+v", p.Error)
			}
		})
	}
	// A run that is not to return anything does not.
	tool := toolManager(t, manager.Unjudged, answering("any", sayBack))
	if res := calls(t, tool, "python", forge+"print(say(b'{\"return\": 1}'))"); !strings.Contains(string(res.Stdout), "invalid") || res.Program != nil {
		t.Errorf("%s %+v", res.Stdout, res.Program)
	}
}

// TestProgramElsewhere has them in sessions and beside a runtime without containers, and
// refuses them where there is nothing to return by.
func TestProgramElsewhere(t *testing.T) {
	t.Parallel()
	t.Run(bubblewrap.Name, func(t *testing.T) {
		t.Parallel()
		kit := enginetest.New(t)
		enginetest.Bubblewrap(t)
		m := toolManagerOn(t, kit, runtimes.Only(bubblewrap.Name, kit.Jail(t)), manager.Unjudged, searching(t))
		if p := returns(t, m, "python", "await web_search('a')").Program; string(p.Value) != `["a","0"]` {
			t.Errorf("%+v %+v", p, p.Error)
		}
	})
	m := toolManager(t, manager.Unjudged)
	for says, run := range map[string]sandbox.Run{
		"return no value": {Language: "shell", Code: "true"},
		"and no code":     {Language: "python", Command: []string{"true"}},
	} {
		run.Program = true
		if _, err := m.Run(t.Context(), run, sandbox.Streams{}); err == nil || !strings.Contains(err.Error(), says) || sandbox.HintOf(err) == "" {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

// TestReport is what agents are told of a program, refused ones too.
func TestReport(t *testing.T) {
	t.Parallel()
	for want, res := range map[string]sandbox.Result{
		`{"success":true,"value":1,"output":"a�","calls":[{"tool":"f","arguments_bytes":0,"result_bytes":0,"began":"0001-01-01T00:00:00Z","duration_ms":0}]}`: {
			Program: &sandbox.ProgramResult{Success: true, Value: json.RawMessage("1")}, Stdout: []byte("a\xff"), Calls: []sandbox.ToolCall{{Tool: "f"}},
		},
		`{"success":false,"error":{"kind":"denied","message":"it ended by denied with exit code 126: refused: verdict deny"},"output":"","calls":[]}`: {
			Exit: sandbox.Exit{Reason: sandbox.ReasonDenied}.Coded(), Decision: sandbox.Decision{Verdict: sandbox.Deny},
		},
	} {
		got, err := json.Marshal(res.Report())
		if err != nil || string(got) != want {
			t.Errorf("%s, %v\nwant %s", got, err, want)
		}
	}
}

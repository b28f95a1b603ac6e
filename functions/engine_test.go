package functions_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/sandbox"
)

// want is what a call comes to: a value, or the type, the class and a part of the
// message of an error.
type want struct {
	event   string
	value   string
	kind    string
	class   string
	message string
	trace   string // a part of the stack trace
	log     string
	dies    bool // with its process: the next call is cold
}

// checkCalls calls one function again and again: the process stays, as long as no
// call costs it.
func checkCalls(t *testing.T, o sandbox.FunctionOptions, list []want) {
	fs, _, _ := onEngine(t, o.Language)
	put(t, fs, o)
	cold := true
	for _, w := range list {
		got := invoke(t, fs, o.Name, w.event)
		if got.Cold != cold {
			t.Errorf("%s: cold %t", w.event, got.Cold)
		}
		cold = w.dies
		if w.kind == "" {
			if got.Error != nil || string(got.Value) != w.value {
				t.Errorf("%s: %.200s, %+v; printed %q", w.event, got.Value, got.Error, got.Log)
			}
		} else if e := got.Error; e == nil || e.Type != w.kind || e.Class != w.class || !strings.Contains(e.Message, w.message) || !strings.Contains(strings.Join(e.StackTrace, ""), w.trace) || got.Value != nil {
			t.Errorf("%s: %.200s, %+v; printed %q", w.event, got.Value, e, got.Log)
		}
		if w.log != "*" && got.Log != w.log {
			t.Errorf("%s printed %q, not %q", w.event, got.Log, w.log)
		}
		if !got.ExecID.Valid() || got.Session == "" || len(got.RequestID) != 36 || got.Version != 1 {
			t.Errorf("%s: %+v", w.event, got)
		}
	}
}

// theirs is what both languages' handlers are put with.
func theirs(language, handler, code, helper string) sandbox.FunctionOptions {
	return sandbox.FunctionOptions{
		Name: "Does", Language: language, Handler: handler, Env: []string{"KEY=value"}, Timeout: sandbox.Duration(20e9),
		Limits: sandbox.Limits{CPUs: 2, Memory: 256 * sandbox.MiB},
		Files:  append(files("data/x.txt", "data"), append(files(code, map[string]string{"python": handlerPython, "node": handlerNode}[language]), files(helper, map[string]string{"python": "NAME = 'helper'", "node": "exports.NAME = 'helper'"}[language])...)...),
	}
}

func TestPython(t *testing.T) {
	t.Parallel()
	big := `"` + strings.Repeat("é", 1<<20) + `"`
	o := theirs("python", "main.handler", "main.py", "helper.py")
	o.Timeout = sandbox.Duration(15e9)
	checkCalls(t, o, []want{
		{event: `{"a": [1, "é", null, 1e3]}`, value: `{"a": [1, "é", null, 1000.0]}`},
		{event: `{"do": "async"}`, value: `"later"`},
		{event: `{"do": "async", "again": 1}`, value: `"later"`},
		{event: `{"do": "print"}`, value: `"{\"forged\": true}"`, log: "*"},
		{event: `{"do": "forge"}`, value: `"true"`, log: "*"},
		{event: `{"do": "big", "n": 1048576}`, value: big},
		{event: `{"do": "big", "n": 4000000}`, kind: "Function.ResponseSizeTooLarge", class: "Unhandled", message: "6291456 bytes"},
		{event: `{"do": "raise"}`, kind: "KeyError", class: "Handled", message: "'missing'", trace: `File "main.py", line `},
		{event: `{"do": "mute"}`, kind: "Mute", class: "Handled"},
		{event: `{"do": "no such"}`, kind: "KeyError", class: "Handled", message: "do_no such"},
		{event: `{"do": "set"}`, kind: "Runtime.MarshalError", class: "Unhandled", message: "Object of type set is not JSON serializable"},
		{event: `{"do": "nan"}`, kind: "Runtime.MarshalError", class: "Unhandled", message: "Out of range float values"},
		{event: `{"do": "write"}`, kind: "PermissionError", class: "Handled"},
		{event: `{"do": "stdin"}`, value: `""`},
		{event: `{"do": "fork"}`, value: `"the parent"`},
		{event: `{"do": "keep"}`, value: `"x"`},
		{event: `{"do": "calls"}`, value: `17`},
		{event: `{"do": "exit", "code": 4}`, kind: "Runtime.ExitError", class: "Unhandled", message: "exit status 4", dies: true},
		{event: `{"do": "exit"}`, kind: "Runtime.ExitError", class: "Unhandled", message: "without providing a reason", dies: true},
		{event: `{"do": "die"}`, kind: "Runtime.ExitError", class: "Unhandled", message: "exit status 3", dies: true},
		{event: `{"do": "kill"}`, kind: "Runtime.ExitError", class: "Unhandled", message: "signal: SIGSEGV", dies: true},
		{event: `{"do": "closed"}`, kind: "Runtime.ExitError", class: "Unhandled", dies: true},
		{event: `{"do": "memory"}`, kind: "Runtime.OutOfMemory", class: "Unhandled", message: "out of memory at 256m", dies: true},
		{event: `{"do": "hang"}`, kind: "Sandbox.Timedout", class: "Unhandled", message: "Task timed out after 15.00 seconds", log: "before\n", dies: true},
		{event: `{"do": "calls"}`, value: `1`},
		{event: `{"do": "keep"}`, value: `"xx"`},
	})
}

func TestNode(t *testing.T) {
	t.Parallel()
	o := theirs("node", "main.handler", "main.js", "helper.js")
	o.Timeout = sandbox.Duration(15e9)
	checkCalls(t, o, []want{
		{event: `{"a":[1,"é",null]}`, value: `{"a":[1,"é",null]}`},
		{event: `{"do": "callback"}`, value: `"later"`},
		{event: `{"do": "waits"}`, value: `"first"`, log: "and then\n"},
		{event: `{"do": "nowait"}`, value: `"first"`},
		{event: `{"do": "callback", "longer": true}`, value: `"later"`, log: "*"},
		{event: `{"do": "succeed"}`, value: `"done"`, log: "*"},
		{event: `{"do": "callbackError"}`, kind: "RangeError", class: "Handled", message: "no", log: "*"},
		{event: `{"do": "callbackText"}`, kind: "string", class: "Handled", message: "a text", log: "*"},
		{event: `{"do": "nothing"}`, value: `null`, log: "*"},
		{event: `{"do": "never"}`, value: `null`, log: "*"},
		{event: `{"do": "print"}`, value: `"{\"forged\": true}"`, log: "out\nerr\nraw\nchild\n"},
		{event: `{"do": "forge"}`, value: `"true"`, log: "*"},
		{event: `{"do": "big", "n": 1048576}`, value: `"` + strings.Repeat("é", 1<<20) + `"`, log: "*"},
		{event: `{"do": "big", "n": 4000000}`, kind: "Function.ResponseSizeTooLarge", class: "Unhandled", message: "6291456 bytes"},
		{event: `{"do": "raise"}`, kind: "TypeError", class: "Handled", message: "missing", trace: "main.js:"},
		{event: `{"do": "sync"}`, kind: "TypeError", class: "Handled", message: "at once"},
		{event: `{"do": "text"}`, kind: "string", class: "Handled", message: "a text"},
		{event: `{"do": "circle"}`, kind: "Runtime.MarshalError", class: "Unhandled", message: "circular"},
		{event: `{"do": "bigint"}`, kind: "Runtime.MarshalError", class: "Unhandled", message: "BigInt"},
		{event: `{"do": "undefined"}`, value: `null`},
		{event: `{"do": "stdin"}`, value: `""`},
		{event: `{"do": "calls"}`, value: `22`},
		{event: `{"do": "exit", "code": 4}`, kind: "Runtime.ExitError", class: "Unhandled", message: "exit status 4", dies: true},
		{event: `{"do": "later"}`, kind: "Error", class: "Unhandled", message: "uncaught", dies: true},
		{event: `{"do": "unhandled"}`, kind: "Runtime.UnhandledPromiseRejection", class: "Unhandled", message: "nobody", dies: true},
		{event: `{"do": "memory"}`, kind: "Runtime.OutOfMemory", class: "Unhandled", message: "out of memory at 256m", log: "*", dies: true},
		{event: `{"do": "hang"}`, kind: "Sandbox.Timedout", class: "Unhandled", message: "Task timed out after 15.00 seconds", log: "before\n", dies: true},
		{event: `{"do": "calls"}`, value: `1`},
	})
}

// TestContext: both languages' handlers find what the vendor's find, and what was put
// with them.
func TestContext(t *testing.T) {
	t.Parallel()
	for language, o := range map[string]sandbox.FunctionOptions{
		"python": theirs("python", "main.handler", "main.py", "helper.py"), "node": theirs("node", "main.handler", "main.js", "helper.js"),
	} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			fs, _, _ := onEngine(t, language)
			put(t, fs, o)
			done, err := fs.InvokeFunction(t.Context(), sandbox.Invocation{
				Function: o.Name, Event: json.RawMessage(`{"do":"context"}`), ClientContext: json.RawMessage(`{"custom":{"a":"b"}}`),
			}, sandbox.Local{})
			if err != nil || done.Error != nil {
				t.Fatal(err, done.Error, done.Log)
			}
			var got map[string]any
			if err := json.Unmarshal(done.Value, &got); err != nil {
				t.Fatal(err)
			}
			want := map[string]any{
				"name": "Does", "version": "1", "memory": "256", "arn": "arn:aws:lambda:local:000000000000:function:Does", "id": done.RequestID, "down": true, "left": true,
				"client": map[string]any{"a": "b"}, "env": []any{"value", "Does"}, "helper": "helper", "data": "data", "path": true,
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
			if done.PeakMemory < sandbox.MiB || done.Duration < sandbox.Duration(50e6) {
				t.Errorf("%+v", done)
			}
		})
	}
}

// TestPrinted: what is printed goes with its own call, whoever prints it and however
// much it is.
func TestPrinted(t *testing.T) {
	t.Parallel()
	fs, _, _ := onEngine(t, "python")
	put(t, fs, theirs("python", "main.handler", "main.py", "helper.py"))
	for range 2 {
		got := invoke(t, fs, "Does", `{"do":"print"}`)
		for _, line := range []string{"out\n", "err\n", "raw\n", "child\n", "[WARNING]\t", "\t" + got.RequestID + "\tlogged\n"} {
			if strings.Count(got.Log, line) != 1 {
				t.Errorf("%q is not once in %q", line, got.Log)
			}
		}
		flood := invoke(t, fs, "Does", `{"do":"flood"}`)
		if len(flood.Log) != 64<<10 || !strings.HasSuffix(flood.Log, "xend") || flood.LogLost != 1<<20+3-64<<10 {
			t.Errorf("%d bytes, %d lost", len(flood.Log), flood.LogLost)
		}
	}
}

// TestLoading: what keeps a handler from being called is told in the vendor's form,
// each time.
func TestLoading(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		handler string
		files   []sandbox.File
		want    want
	}{
		"python syntax":  {"main.f", files("main.py", "def f(:\n"), want{kind: "Runtime.UserCodeSyntaxError", message: "Syntax error in module 'main'"}},
		"python import":  {"main.f", files("main.py", "import no_such"), want{kind: "Runtime.ImportModuleError", message: "Unable to import module 'main': No module named 'no_such'", trace: "main.py"}},
		"python module":  {"other.f", files("main.py", ""), want{kind: "Runtime.ImportModuleError", message: "No module named 'other'"}},
		"python handler": {"main.g", files("main.py", "f = 1"), want{kind: "Runtime.HandlerNotFound", message: "Handler 'g' missing on module 'main'"}},
		"python raises":  {"main.f", files("main.py", "1/0"), want{kind: "ZeroDivisionError", message: "division by zero", trace: "main.py"}},
		"python exits":   {"main.f", files("main.py", "import sys; sys.exit(7)"), want{kind: "Runtime.ExitError", message: "exit status 7"}},
		"python package": {"pkg.sub.f", files("pkg/__init__.py", "", "pkg/sub.py", "from . import other\ndef f(e, c): return other.x", "pkg/other.py", "x = 1"), want{value: "1"}},
		"python folder":  {"pkg/sub.f", files("pkg/sub.py", "def f(e, c): return 2"), want{value: "2"}},
		"node syntax":    {"main.f", files("main.js", "exports.f = (("), want{kind: "Runtime.UserCodeSyntaxError", message: "SyntaxError: "}},
		"node import":    {"main.f", files("main.js", "require('no-such')"), want{kind: "Runtime.ImportModuleError", message: "Cannot find module 'no-such'"}},
		"node module":    {"other.f", files("main.js", ""), want{kind: "Runtime.ImportModuleError", message: "Cannot find module 'other'"}},
		"node handler":   {"main.g", files("main.js", "exports.f = 1"), want{kind: "Runtime.HandlerNotFound", message: "main.g is undefined or not exported"}},
		"node raises":    {"main.f", files("main.js", "throw new RangeError('early')"), want{kind: "RangeError", message: "early", trace: "main.js"}},
		"node exits":     {"main.f", files("main.js", "process.exit(7)"), want{kind: "Runtime.ExitError", message: "exit status 7"}},
		"node nested":    {"main.nested.handler", files("main.js", "exports.nested = {handler: (event) => 'plain'}"), want{value: `"plain"`}},
		"node module js": {"src/main.f", files("src/main.mjs", "import { x } from './other.mjs'\nexport const f = async () => x\n", "src/other.mjs", "export const x = 1"), want{value: "1"}},
		"node type":      {"main.f", files("main.js", "import x from 'dep'\nexport const f = async () => x", "package.json", `{"type":"module"}`, "node_modules/dep/index.js", "export default 3", "node_modules/dep/package.json", `{"type":"module","exports":"./index.js"}`), want{value: "3"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			language, _, _ := strings.Cut(name, " ")
			fs, _, _ := onEngine(t, language)
			put(t, fs, sandbox.FunctionOptions{Name: "f", Language: language, Handler: tt.handler, Files: tt.files, Limits: sandbox.Limits{CPUs: 2}})
			for range 2 {
				got := invoke(t, fs, "f", "")
				switch e := got.Error; {
				case tt.want.kind == "":
					if e != nil || string(got.Value) != tt.want.value {
						t.Errorf("%s %+v %s", got.Value, e, got.Log)
					}
				case e == nil || e.Type != tt.want.kind || e.Class != sandbox.FunctionUnhandled || !strings.Contains(e.Message, tt.want.message) || !strings.Contains(fmt.Sprint(e.StackTrace), tt.want.trace) || !got.Cold:
					t.Errorf("%s %+v %s", got.Value, e, got.Log)
				}
			}
		})
	}
}

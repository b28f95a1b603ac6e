package manager_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/bubblewrap"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/tools"
)

type searchIn struct {
	Query string `json:"query" jsonschema:"what to look for"`
	Limit int    `json:"limit,omitempty" jsonschema:"how many at most"`
}

// searching is a tool that tells what it was given.
func searching(t testing.TB) sandbox.Callable {
	c, err := tools.Func(sandbox.Tool{Name: "web_search", Description: "Searches the web."}, func(_ context.Context, in searchIn) ([]string, error) {
		return []string{in.Query, fmt.Sprint(in.Limit)}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// answering is a tool without schemas.
func answering(name string, call sandbox.ToolFunc) sandbox.Callable {
	return sandbox.Callable{Tool: sandbox.Tool{Name: name}, Call: call}
}

func sayBack(_ context.Context, arguments json.RawMessage) (json.RawMessage, error) {
	return arguments, nil
}

// toolManager makes a manager whose runs may call tools.
func toolManager(t *testing.T, gate manager.Gate, callables ...sandbox.Callable) *manager.Manager {
	t.Helper()
	kit := enginetest.New(t)
	return toolManagerOn(t, kit, kit.Runtimes(t), gate, callables...)
}

func toolManagerOn(t *testing.T, kit *enginetest.Kit, registry *runtimes.Registry, gate manager.Gate, callables ...sandbox.Callable) *manager.Manager {
	t.Helper()
	set, err := tools.New(callables...)
	if err != nil {
		t.Fatal(err)
	}
	m, err := manager.New(manager.Config{
		Runtimes: registry, Images: kit.Images, Gate: gate, Holder: kit.Holder, Patience: enginetest.Patience, Tools: set,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// calls runs a program and returns its result.
func calls(t *testing.T, m *manager.Manager, language, code string) sandbox.Result {
	t.Helper()
	res, err := m.Run(t.Context(), sandbox.Run{
		Language: language, Code: code, ExecLimits: sandbox.ExecLimits{Timeout: sandbox.Duration(5 * time.Minute)},
		Limits: sandbox.Limits{Memory: 1 << 30, CPUs: 2},
	}, sandbox.Streams{})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// TestTools calls a tool from programs of each sort, on each runtime that has a way
// to tools, and holds what they see against what was declared.
func TestTools(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"docker", bubblewrap.Name} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kit := enginetest.New(t)
			registry := kit.Runtimes(t)
			if name == bubblewrap.Name {
				enginetest.Bubblewrap(t)
				registry = runtimes.Only(bubblewrap.Name, kit.Jail(t))
			}
			m := toolManagerOn(t, kit, registry, manager.Unjudged, searching(t), answering("say-it", sayBack))
			for _, tt := range []struct{ language, code, want string }{
				{"python", "from tools import web_search\nprint(web_search('a', limit=2))", "['a', '2']\n"},
				{"python", "print(web_search(query='plain'))", "['plain', '0']\n"},
				{"python", "print(say_it(x=[1, {'y': None}], z='\\u00e9'))", "{'x': [1, {'y': None}], 'z': 'é'}\n"},
				{"python", "async def main():\n  print(await asyncio.gather(*[web_search(str(n)) for n in range(3)]))\nasyncio.run(main())", "[['0', '0'], ['1', '0'], ['2', '0']]\n"},
				{"python", "import inspect, tools\nprint(inspect.signature(tools.web_search), inspect.signature(web_search))\nprint(tools.web_search.__doc__)",
					"(query: str, limit: int = None) -> Optional[list[str]] (query: str, limit: int = None) -> Optional[list[str]]\nSearches the web.\n\nArgs:\n    query: what to look for\n    limit: how many at most\n"},
				{"python", "import tools\ntry: web_search(7)\nexcept tools.ToolError as e: print(type(e).__name__, e.kind, e.tool)", "Invalid invalid web_search\n"},
				{"python", "try: web_search()\nexcept TypeError as e: print(e)", "web_search() missing 1 required positional argument: 'query'\n"},
				{"node", "const {web_search, ToolError} = require('tools');\n(async () => { console.log(await web_search({query: 'a', limit: 2}), await web_search('b'));\n" +
					"try { await web_search(7) } catch (e) { console.log(e instanceof ToolError, e.kind, e.tool) } })()", "[ 'a', '2' ] [ 'b', '0' ]\ntrue invalid web_search\n"},
				{"node", "Promise.all([...Array(2000).keys()].map((n) => say_it({n}))).then((all) => console.log(all.every((x, n) => x.n === n), all.length))", "true 2000\n"},
				{"node", "say_it({x: Buffer.from('abc'), y: 'é'.repeat(100000)}).then((r) => console.log(r.x, r.y.length))", "YWJj 100000\n"},
				{"shell", "tool web_search --query 'b c' --limit 3; echo '{\"query\": \"d\"}' | tool web_search; tool say-it --n=1 --on", "[\"b c\",\"3\"]\n[\"d\",\"0\"]\n{\"n\":1,\"on\":true}\n"},
				{"shell", "tool web_search --limit x; echo $?; tool web_search 2>/dev/null; echo $?; tool nothing --a 1 2>&1; tool web_search --help", "2\n1\n" +
					"tool: not_found: there is no tool \"nothing\"\n  call one of say-it, web_search\ntool web_search\nSearches the web.\n  --limit (integer)  how many at most\n  --query (string, required)  what to look for\n"},
			} {
				res := calls(t, m, tt.language, tt.code)
				if got := string(res.Stdout); got != tt.want {
					t.Errorf("%s\n%q\nwant %q: %s", tt.code, got, tt.want, res.Stderr)
				}
			}
		})
	}
}

// TestToolCallsAreTold lists the calls of an exec in its Result.
func TestToolCallsAreTold(t *testing.T) {
	t.Parallel()
	m := toolManager(t, manager.Unjudged, searching(t))
	res := calls(t, m, "shell", "tool web_search --query a; tool web_search; tool other; true")
	var told []string
	for _, c := range res.Calls {
		told = append(told, fmt.Sprintf("%s %s %s %d %d %t", c.Tool, c.Verdict, c.Kind, c.Sent, c.Received, len(c.Arguments) == 64))
	}
	if got, want := strings.Join(told, "; "), "web_search unjudged  13 9 true; web_search  invalid 2 0 false; other  not_found 2 0 false"; got != want {
		t.Errorf("told %s\nwant %s: %s", got, want, res.Stderr)
	}
	res = calls(t, m, "python", "for n in range(300): web_search(str(n))")
	if len(res.Calls) != sandbox.MaxToolCalls || res.CallsLeftOut != 300-sandbox.MaxToolCalls {
		t.Errorf("%d told, %d left out: %s", len(res.Calls), res.CallsLeftOut, res.Stderr)
	}
}

// TestToolBounds counts the calls of an owner over all that is theirs: execs, and tools
// that a caller brings with each of them.
func TestToolBounds(t *testing.T) {
	t.Parallel()
	rated, brought := answering("rated", sayBack), answering("brought", sayBack)
	rated.Rate = sandbox.ToolRate{Calls: 3, Per: sandbox.Duration(24 * time.Hour)}
	brought.OwnerBudget = sandbox.ToolRate{Calls: 3, Per: sandbox.Duration(24 * time.Hour)}
	m := toolManager(t, manager.Unjudged, rated)
	for _, tt := range []struct{ owner, want string }{
		{"ann", "0 0 0 0"}, {"ann", "0 0 1 1"}, {"bob", "0 0 0 0"}, {"ann", "1 1 1 1"},
	} {
		ctx := sandbox.WithCaller(t.Context(), sandbox.Caller{Owner: tt.owner})
		res, err := m.Run(ctx, sandbox.Run{Language: "shell", Code: "for t in rated brought rated brought; do tool $t >/dev/null; printf \"$? \"; done"},
			sandbox.Streams{Local: sandbox.Local{Tools: []sandbox.Callable{brought}}})
		if got := strings.TrimSpace(string(res.Stdout)); err != nil || got != tt.want {
			t.Errorf("%s: %q, want %q: %v %s", tt.owner, got, tt.want, err, res.Stderr)
		}
		for _, c := range res.Calls {
			if c.Error != "" && c.Kind != "exhausted" {
				t.Errorf("%+v", c)
			}
		}
	}
}

// TestToolBudgetOutlives has an owner's budget go on where the process that counted it is
// gone.
func TestToolBudgetOutlives(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	brought := answering("brought", sayBack)
	brought.OwnerBudget = sandbox.ToolRate{Calls: 3, Per: sandbox.Duration(24 * time.Hour)}
	for _, tt := range []struct{ owner, want string }{{"ann", "0 0"}, {"ann", "0 1"}, {"ann", "1 1"}, {"bob", "0 0"}} {
		ctx := sandbox.WithCaller(t.Context(), sandbox.Caller{Owner: tt.owner})
		res, err := p.manager(t).Run(ctx, sandbox.Run{Language: "shell", Code: "for n in 1 2; do tool brought >/dev/null; printf \"$? \"; done"},
			sandbox.Streams{Local: sandbox.Local{Tools: []sandbox.Callable{brought}}})
		if got := strings.TrimSpace(string(res.Stdout)); err != nil || got != tt.want {
			t.Errorf("%s: %q, want %q: %v %s", tt.owner, got, tt.want, err, res.Stderr)
		}
	}
}

// TestToolsWithstand has programs call in numbers, from children, with what is large,
// and say nonsense beside it.
func TestToolsWithstand(t *testing.T) {
	t.Parallel()
	m := toolManager(t, manager.Unjudged, answering("echo", sayBack))
	for name, tt := range map[string]struct{ code, want string }{
		"ten thousand": {`
async def many():
    got = await asyncio.gather(*[echo(n=n) for n in range(10000)])
    print(got == [{"n": n} for n in range(10000)])
asyncio.run(many())`, "True\n"},
		"64 MiB": {`
import base64, tools, time
async def both():
    large = asyncio.ensure_future(echo(x=bytes(64 << 20)))
    await asyncio.sleep(0)
    small = [await echo(n=n) for n in range(10)]
    print(len(small), base64.b64decode((await large)["x"]) == bytes(64 << 20))
asyncio.run(both())`, "10 True\n"},
		"children": {`
import os
for n in range(20):
    if os.fork() == 0:
        os._exit(0 if echo(n=n) == {"n": n} else 1)
print(sum(os.wait()[1] for _ in range(20)))`, "0\n"},
		"ten deep": {`
import os
def deeper(n):
    assert echo(n=n) == {"n": n}
    if n == 10: return 0
    if os.fork() == 0: os._exit(deeper(n + 1))
    return os.wait()[1] and 1
print(deeper(0))`, "0\n"},
		"answers itself": {`
import os, socket, struct
async def both():
    s = socket.socket(socket.AF_UNIX); s.connect(os.environ["CAISSON_TOOLS"])
    def say(call, what): s.sendall(struct.pack(">IIB", len(what), call, 2) + what)
    def hear():
        size, call, last = struct.unpack(">IIB", s.recv(9, socket.MSG_WAITALL))
        return call, s.recv(size, socket.MSG_WAITALL)
    mine = asyncio.gather(*[echo(n=n) for n in range(100)])
    await asyncio.sleep(0)
    got = []
    for call in range(100):
        say(call, b'{"result":{"n":-1}}')
        got.append(hear())
    print([m["n"] for m in await mine] == list(range(100)), [c for c, _ in got] == list(range(100)), all(b'"not_found"' in a for _, a in got))
asyncio.run(both())`, "True True True\n"},
		"threads": {`
import threading
got = []
def call(n): got.append(echo(n=n)["n"])
all = [threading.Thread(target=call, args=(n,)) for n in range(40)]
[a.start() for a in all]; [a.join() for a in all]
print(sorted(got) == list(range(40)))`, "True\n"},
		"garbage": {`
import os, socket
def say(what):
    s = socket.socket(socket.AF_UNIX); s.connect(os.environ["CAISSON_TOOLS"])
    s.sendall(what); s.shutdown(socket.SHUT_WR)
    got = s.recv(100)
    return got
print([say(w) for w in (b"GET / HTTP/1.0\r\n\r\n", b"\xff" * 100, os.urandom(1000)[:8] + b"\x09")], echo(a=1))`, "[b'', b'', b''] {'a': 1}\n"},
		"cancelled": {`
async def main():
    one = asyncio.ensure_future(echo(a=1)); one.cancel()
    try: await one
    except asyncio.CancelledError: print("cancelled", await echo(b=2))
asyncio.run(main())`, "cancelled {'b': 2}\n"},
		"nested": {`
import tools
x = []
for _ in range(900): x = [x]
print(echo(x=x)["x"] == x)`, "True\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res := calls(t, m, "python", tt.code)
			if got := string(res.Stdout); got != tt.want {
				t.Errorf("%q, want %q: %+v %s", got, tt.want, res.Exit, res.Stderr)
			}
		})
	}
}

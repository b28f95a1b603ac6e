package manager_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/sandbox"
)

// TestToolsAreTheExecsOwn refuses a process of another exec of the same user, whatever
// it knows, and gives up the calls of a process that outlives its exec.
func TestToolsAreTheExecsOwn(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "python")
	p.create(t, sandbox.SessionOptions{Name: "work", Language: "python"})
	stays, gone := make(chan struct{}), make(chan struct{})
	local := sandbox.Local{Tools: []sandbox.Callable{answering("echo", sayBack), answering("stay", func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		close(stays)
		<-ctx.Done()
		close(gone)
		return nil, ctx.Err()
	})}}
	// It tells where its socket is, leaves a process that calls, and waits.
	first := make(chan sandbox.Result, 1)
	go func() {
		res, err := p.ExecIn(t.Context(), "work", sandbox.Run{Code: `
import os, time
print(echo(n=1))
if os.fork() == 0:
    os.setsid()
    print("child", echo(n=2), flush=True)
    for n in (0, 1, 2): os.close(n)
    import tools
    try: stay()
    except tools.Unavailable as e: open("left.tmp", "w").write("cut off"); os.rename("left.tmp", "left")
    os._exit(0)
open("at.tmp", "w").write(os.environ["CAISSON_TOOLS"]); os.rename("at.tmp", "at")
while not (os.path.exists("tried") and os.path.exists("calls")): time.sleep(0.01)
`}, sandbox.Streams{Local: local})
		if err != nil {
			t.Error(err)
		}
		first <- res
	}()
	res, err := p.ExecIn(t.Context(), "work", sandbox.Run{Code: `
import os, socket, time
while not os.path.exists("at"): time.sleep(0.01)
s = socket.socket(socket.AF_UNIX)
try: s.connect(open("at").read()); print("connected", s.recv(1))
except OSError as e: print(type(e).__name__)
try: os.chmod(open("at").read(), 0o777)
except OSError as e: print(type(e).__name__)
open("tried", "w").close()
`}, sandbox.Streams{})
	if err != nil || string(res.Stdout) != "PermissionError\nPermissionError\n" {
		t.Errorf("another exec: %v, %s%s", err, res.Stdout, res.Stderr)
	}
	<-stays
	files, err := p.Files(t.Context(), "work")
	if err != nil {
		t.Fatal(err)
	}
	if err := files.Put(t.Context(), []sandbox.File{{Path: "calls"}}, sandbox.Local{}); err != nil {
		t.Fatal(err)
	}
	mine := <-first
	if got := string(mine.Stdout); got != "{'n': 1}\nchild {'n': 2}\n" {
		t.Errorf("it said %s%s", got, mine.Stderr)
	}
	<-gone
	res, err = p.ExecIn(t.Context(), "work", sandbox.Run{Code: `
import os, time
while not os.path.exists("left"): time.sleep(0.01)
print(open("left").read())`}, sandbox.Streams{})
	if err != nil || string(res.Stdout) != "cut off\n" {
		t.Errorf("what was left: %v, %s%s", err, res.Stdout, res.Stderr)
	}
	var told []string
	for event, err := range p.store.Events(t.Context(), sandbox.EventFilter{Kinds: []string{sandbox.EventToolCalled}}) {
		if err != nil {
			t.Fatal(err)
		}
		var c sandbox.ToolCall
		if err := json.Unmarshal(event.Data, &c); err != nil || event.Exec != mine.ExecID || event.Session != "work" {
			t.Errorf("%v: %+v", err, event)
		}
		told = append(told, c.Tool+c.Kind)
	}
	if got := strings.Join(told, " "); got != "echo echo stayunavailable" {
		t.Errorf("the audit tells %s", got)
	}
}

// TestShellsCalls lists the calls of a text that runs in a shell in its Result, has
// them judged and written down in its name, and no other text has them.
func TestShellsCalls(t *testing.T) {
	t.Parallel()
	began, leave := make(chan struct{}), make(chan struct{})
	p := newPlace(t, "python")
	p.create(t, sandbox.SessionOptions{Name: "work", Language: "python"})
	local := sandbox.Local{Tools: []sandbox.Callable{answering("echo", sayBack), answering("stay", func(context.Context, json.RawMessage) (json.RawMessage, error) {
		close(began)
		<-leave
		return json.RawMessage("1"), nil
	})}}
	for _, kind := range []sandbox.ShellKind{sandbox.ShellAny, sandbox.ShellPython} {
		if _, err := p.OpenShell(t.Context(), "work", string(kind)+"1", sandbox.ShellOptions{Kind: kind}, local); err != nil {
			t.Fatal(err)
		}
	}
	told := func(res sandbox.Result) string {
		var all []string
		for _, c := range res.Calls {
			all = append(all, c.Tool+c.Kind)
		}
		return strings.Join(all, " ")
	}
	ids := map[sandbox.ID]int{}
	for _, tt := range []struct{ shell, text, stdout, calls string }{
		{"shell1", "tool echo --a 1; tool nothing 2>/dev/null; x=2", "{\"a\":1}\n", "echo nothingnot_found"},
		{"shell1", "true", "", ""},
		{"shell1", "tool echo --a $x", "{\"a\":2}\n", "echo"},
		{"python1", "import tools\nprint(tools.echo(a=3))", "{'a': 3}\n", "echo"},
	} {
		res, err := p.RunShell(t.Context(), "work", tt.shell, sandbox.ShellRun{Text: tt.text}, sandbox.Streams{})
		if err != nil || string(res.Stdout) != tt.stdout || told(res) != tt.calls {
			t.Errorf("%q: %q %+v %v: %s", tt.text, res.Stdout, res.Calls, err, res.Stderr)
		}
		if len(res.Calls) > 0 {
			ids[res.ExecID] = len(res.Calls)
		}
	}
	for e, err := range p.store.Events(t.Context(), sandbox.EventFilter{Kinds: []string{sandbox.EventToolCalled}}) {
		if err != nil {
			t.Fatal(err)
		}
		ids[e.Exec]--
	}
	for id, left := range ids {
		if left != 0 {
			t.Errorf("%d calls more of %s are told than written down", left, id)
		}
	}
	// While a text waits for its call no other has the way.
	over := make(chan sandbox.Result, 1)
	go func() {
		res, err := p.RunShell(t.Context(), "work", "shell1", sandbox.ShellRun{Text: "tool stay; tool echo"}, sandbox.Streams{})
		if err != nil {
			t.Error(err)
		}
		over <- res
	}()
	<-began
	if _, err := p.RunShell(t.Context(), "work", "shell1", sandbox.ShellRun{Text: "true"}, sandbox.Streams{}); !errors.Is(err, sandbox.Conflict) {
		t.Errorf("beside another text: %v", err)
	}
	close(leave)
	if res := <-over; told(res) != "stay echo" {
		t.Errorf("%+v, %+v", res.Calls, res.Exit)
	}
}

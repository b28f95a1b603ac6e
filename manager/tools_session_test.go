package manager_test

import (
	"context"
	"encoding/json"
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
	gone := make(chan struct{})
	local := sandbox.Local{Tools: []sandbox.Callable{answering("echo", sayBack), answering("stay", func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
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
    open("calls", "w").close()
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

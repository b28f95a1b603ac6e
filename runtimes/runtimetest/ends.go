package runtimetest

import (
	"bytes"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/sandbox"
)

// Ends shows that a sandbox's execs end whole and apart: whatever a program does to
// be left alone goes with its exec, and what others started stays. It needs a shell,
// and so is beside the suite.
func Ends(t *testing.T, s Subject) {
	inst, plan := s.create(t, s.New(t))
	c := connect(t, inst, plan)
	// A child, an orphan, and one that left session and parent twice.
	a := start(t, c, "trap 'echo term' TERM; sleep 600 & (setsid sleep 600 &) ; (setsid sh -c '(setsid sleep 600 &) ; sleep 600' &) ; while :; do sleep 0.1; done")
	b := start(t, c, "sleep 600")
	await(t, "the orphans", func() bool { return processes(t, c, a) >= 5 && processes(t, c, b) >= 1 })
	if err := c.Signal(t.Context(), a, 15, false); err != nil {
		t.Fatal(err)
	}
	await(t, "the signal's echo", func() bool { return output(t, c, a).text == "term\n" })

	var out bytes.Buffer
	done, err := c.Run(t.Context(), client.Command{Argv: []string{"sh", "-c", "(setsid sleep 600 &) ; sleep 600 & echo done"}, Timeout: patience, Stdout: &out, Reap: true})
	if err != nil || done.Reason != sandbox.ReasonExited || out.String() != "done\n" {
		t.Errorf("one that leaves others behind: %v, %+v, %q", err, done.Exit, &out)
	}
	if processes(t, c, a) < 5 || processes(t, c, b) < 1 {
		t.Error("an exec's end took others with it")
	}
	if err := c.Kill(t.Context(), a, ""); err != nil {
		t.Errorf("kill: %v", err)
	}
	if n := processes(t, c, a); n != 0 || processes(t, c, b) < 1 {
		t.Errorf("after one was killed, %d of its processes live, and %d of the other's", n, processes(t, c, b))
	}
	if err := c.Signal(t.Context(), b, 9, true); err != nil {
		t.Fatal(err)
	}
	await(t, "the end by a signal", func() bool { return output(t, c, b).ended })
	if o := output(t, c, b); o.Reason != sandbox.ReasonSignal || o.Signal != "SIGKILL" && o.Code != 137 {
		t.Errorf("ended by a signal to all: %+v", o.Exit)
	}
}

func start(t *testing.T, c *client.Client, script string) sandbox.ID {
	t.Helper()
	id := sandbox.NewID()
	_, never, err := c.Start(t.Context(), client.Command{ID: id, Argv: []string{"sh", "-c", script}})
	if err != nil || never != nil {
		t.Fatalf("start %q: %v, %+v", script, err, never)
	}
	return id
}

// processes counts those of an exec.
func processes(t *testing.T, c *client.Client, id sandbox.ID) int {
	t.Helper()
	list, err := c.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if e.ID == id {
			return e.Processes
		}
	}
	return 0
}

// said is what an exec has put out so far.
type said struct {
	client.Outcome
	text  string
	ended bool
}

func output(t *testing.T, c *client.Client, id sandbox.ID) said {
	t.Helper()
	var out bytes.Buffer
	o, ended, err := c.Output(t.Context(), client.Command{ID: id, Stdout: &out, Look: true}, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	return said{o, out.String(), ended}
}

// await waits until something holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(20 * time.Millisecond) { //nolint:forbidigo // nothing tells when a stranger's process is there
		if time.Now().After(deadline) {
			t.Fatalf("%s did not come", what)
		}
	}
}

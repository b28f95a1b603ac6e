package runtimetest

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

func testWait(t *testing.T, s Subject) {
	inst, _ := s.create(t, s.New(t))
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := inst.Wait(short); err == nil {
		t.Error("a sandbox that runs has ended")
	}
	type answer struct {
		exit sandbox.Exit
		err  error
	}
	waited := make(chan answer, 1)
	go func() {
		exit, err := inst.Wait(context.WithoutCancel(t.Context()))
		waited <- answer{exit, err}
	}()
	if err := inst.Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-waited:
		if got.err != nil || got.exit.Reason != sandbox.ReasonInfra || got.exit.Cause == "" {
			t.Errorf("%v, %+v", got.err, got.exit)
		}
	case <-time.After(patience):
		t.Error("nobody was told of the end")
	}
}

func testPause(t *testing.T, s Subject) {
	inst, plan := s.create(t, s.New(t))
	p, ok := inst.(runtimes.Pauser)
	if !ok {
		t.Skip("this runtime does not pause")
	}
	c := connect(t, inst, plan)
	if err := p.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	if counted, ok := inst.(runtimes.Sampler); ok {
		if s, err := counted.Sample(t.Context()); err != nil || s.CPU <= 0 || s.Memory <= 0 || s.Processes <= 0 {
			t.Errorf("of what is paused, the engine counts %+v, %v", s, err)
		}
	}
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := c.Sample(short); err == nil {
		t.Error("a paused sandbox answers")
	}
	if err := p.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out, err := c.Run(t.Context(), client.Command{Argv: []string{"true"}, Timeout: patience}); err != nil || out.Code != 0 {
		t.Errorf("resumed: %v, %+v", err, out.Exit)
	}
	// What is paused can be destroyed as it is.
	if err := p.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := inst.Destroy(t.Context()); err != nil {
		t.Errorf("destroy what is paused: %v", err)
	}
}

// testCanceledCreate gives up at various moments of Create.
func testCanceledCreate(t *testing.T, s Subject) {
	rt := s.New(t)
	plan, err := rt.Plan(t.Context(), s.Spec(t))
	if err != nil {
		t.Fatal(err)
	}
	for wait := time.Duration(0); wait <= 320*time.Millisecond; wait += 40 * time.Millisecond {
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		inst, err := rt.Create(ctx, sandbox.NewID(), plan)
		cancel()
		if err != nil {
			continue
		}
		if err := inst.Destroy(t.Context()); err != nil {
			t.Error(err)
		}
	}
	empty(t, s, rt)
}

func testFaults(t *testing.T, s Subject) {
	for _, fault := range s.Faults {
		t.Run(fault.Name, func(t *testing.T) {
			rt := fault.New(t)
			plan, err := rt.Plan(t.Context(), s.Spec(t))
			if err != nil {
				t.Fatal(err)
			}
			inst, err := rt.Create(t.Context(), sandbox.NewID(), plan)
			if err == nil {
				_ = inst.Destroy(t.Context())
				t.Fatal("create passed over the fault")
			}
			if fault.Want != 0 && !errors.Is(err, fault.Want) {
				t.Errorf("%v: kind %s, not %s", err, sandbox.KindOf(err), fault.Want)
			}
			empty(t, s, s.New(t))
		})
	}
}

// Case is a command and what must come of it, byte for byte, on every runtime.
type Case struct {
	Argv           []string
	Stdin          string
	Timeout        time.Duration
	MaxOutput      sandbox.Bytes
	Stdout, Stderr string
	Code           int
	Reason         sandbox.ExitReason
}

// Corpus is what the suite runs. Any Unix has its programs.
func Corpus() []Case {
	long := string(bytes.Repeat([]byte{0}, 200_000))
	return []Case{
		{Argv: []string{"true"}, Reason: sandbox.ReasonExited},
		{Argv: []string{"false"}, Code: 1, Reason: sandbox.ReasonExited},
		{Argv: []string{"echo", "a  b", "", "c"}, Stdout: "a  b  c\n", Reason: sandbox.ReasonExited},
		{Argv: []string{"cat"}, Stdin: "in\x00\xff", Stdout: "in\x00\xff", Reason: sandbox.ReasonExited},
		{Argv: []string{"cat"}, Reason: sandbox.ReasonExited},
		{Argv: []string{"sh", "-c", "echo out; echo err >&2; exit 4"}, Stdout: "out\n", Stderr: "err\n", Code: 4, Reason: sandbox.ReasonExited},
		{Argv: []string{"sh", "-c", "printf end; kill -9 $$"}, Stdout: "end", Code: 137, Reason: sandbox.ReasonSignal},
		{Argv: []string{"head", "-c", "200000", "/dev/zero"}, Stdout: long, Reason: sandbox.ReasonExited},
		{Argv: []string{"head", "-c", "200000", "/dev/zero"}, MaxOutput: 1000, Stdout: long[:1000], Code: 137, Reason: sandbox.ReasonOutput},
		{Argv: []string{"sh", "-c", "echo partial; sleep 60"}, Timeout: 10 * time.Second, Stdout: "partial\n", Code: 137, Reason: sandbox.ReasonTimeout},
		{Argv: []string{"no-such-program"}, Code: 127, Reason: sandbox.ReasonExited},
		{Argv: []string{"pwd"}, Stdout: "/workspace\n", Reason: sandbox.ReasonExited},
	}
}

func testCorpus(t *testing.T, s Subject) {
	inst, plan := s.create(t, s.New(t))
	c := connect(t, inst, plan)
	for _, tt := range Corpus() {
		got, err := tt.run(t.Context(), c)
		if err != nil {
			t.Errorf("%q: %v", tt.Argv, err)
			continue
		}
		// A program stopped at its cap may have ended by itself just then.
		code := got.Code
		if tt.Reason == sandbox.ReasonOutput {
			code = tt.Code
		}
		if got.Reason != tt.Reason || code != tt.Code || got.stdout != tt.Stdout || got.stderr != tt.Stderr {
			t.Errorf("%q: %s, code %d (%s), stdout %.60q, stderr %.60q", tt.Argv, got.Reason, got.Code, got.Cause, got.stdout, got.stderr)
		}
		if got.Broken {
			t.Fatalf("%q broke the sandbox: %s", tt.Argv, got.Cause)
		}
	}
}

// came is what came of a case.
type came struct {
	client.Outcome
	stdout, stderr string
}

func (tt Case) run(ctx context.Context, c *client.Client) (came, error) {
	var stdout, stderr bytes.Buffer
	cmd := client.Command{Argv: tt.Argv, Timeout: tt.Timeout, MaxOutput: tt.MaxOutput, Stdout: &stdout, Stderr: &stderr, Reap: true}
	if cmd.Timeout == 0 {
		cmd.Timeout = patience
	}
	if tt.Stdin != "" {
		cmd.Stdin = bytes.NewReader([]byte(tt.Stdin))
	}
	out, err := c.Run(ctx, cmd)
	return came{out, stdout.String(), stderr.String()}, err
}

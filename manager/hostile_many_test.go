package manager_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

func TestFiftyAtOnce(t *testing.T) {
	t.Parallel()
	b := openBox(t, manager.OpenOptions{Limits: sandbox.Limits{PIDs: 300}})
	var group sync.WaitGroup
	for i := range 50 {
		group.Go(func() {
			word := fmt.Sprintf("exec-%02d-", i)
			res, err := b.Exec(t.Context(), sandbox.Run{
				Command: []string{"sh", "-c", `for i in 1 2 3 4 5 6 7 8; do printf "$0%s\n" $i; printf "$0%s\n" $i >&2; done; cat; exit $1`, word, fmt.Sprint(i)},
			}, sandbox.Streams{Stdin: strings.NewReader("in " + word)})
			if err != nil {
				t.Errorf("%s: %v", word, err)
				return
			}
			var want strings.Builder
			for n := range 8 {
				fmt.Fprintf(&want, "%s%d\n", word, n+1)
			}
			if res.Code != i || string(res.Stderr) != want.String() || string(res.Stdout) != want.String()+"in "+word {
				t.Errorf("%s: %s, code %d, stdout %q, stderr %q", word, res.Reason, res.Code, res.Stdout, res.Stderr)
			}
		})
	}
	group.Wait()
	b.usable(t)
}

// Cancelling at any moment ends the exec and everything that it started, and
// leaks nothing on either side. It runs alone: it counts the goroutines of all tests.
func TestCancelAtAnyMoment(t *testing.T) {
	rounds := 100
	if enginetest.Soaking() {
		rounds = 3000
	}
	b := openBox(t, manager.OpenOptions{Limits: sandbox.Limits{CPUs: 2}})
	b.usable(t)
	goroutines := runtime.NumGoroutine()
	scripts := []string{
		"sleep 60", "yes", "yes >&2 & yes", "setsid sleep 60 & sleep 60", "(sleep 60 &) ; exit 0", "trap '' TERM INT; while :; do :; done",
		"true", "cat", "for i in 1 2 3 4 5; do (setsid sleep 60 &); done; sleep 60", "kill -STOP $$",
	}
	reasons := map[sandbox.ExitReason]int{}
	for i := range rounds {
		ctx, cancel := context.WithCancel(t.Context())
		after := time.Duration(rand.Int64N(int64(30 * time.Millisecond)))
		if i%4 == 0 {
			after = time.Duration(rand.Int64N(int64(2 * time.Millisecond))) // while it is being started
		}
		time.AfterFunc(after, cancel)
		res, err := b.Exec(ctx, sandbox.Run{Command: []string{"bash", "-c", scripts[i%len(scripts)]}}, sandbox.Streams{Stdin: endless{}})
		cancel()
		switch {
		case err != nil && sandbox.KindOf(err) != sandbox.Internal: // a bare context error has no kind
			t.Fatalf("round %d, %q canceled after %v: %v", i, scripts[i%len(scripts)], after, err)
		case err != nil:
			reasons["never began"]++
		default:
			reasons[res.Reason]++
			if res.Reason == sandbox.ReasonInfra || res.Reason == sandbox.ReasonTimeout {
				t.Fatalf("round %d, %q canceled after %v: %s (%s)", i, scripts[i%len(scripts)], after, res.Reason, res.Cause)
			}
		}
	}
	t.Logf("reasons: %v", reasons)
	if b.usable(t).Replaced {
		t.Error("cancelling cost the sandbox")
	}
	// Every goroutine of an exec ends with it, but none is waited for.
	for range 100 {
		if runtime.NumGoroutine() <= goroutines+5 { // those of the connection come and go
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	stack := make([]byte, 1<<20)
	stack = stack[:runtime.Stack(stack, true)]
	if n := bytes.Count(stack, []byte("agent/client.feed")); n > 5 {
		t.Errorf("%d goroutines feed standard inputs that nobody reads", n)
	}
	if n := bytes.Count(stack, []byte("agent/client.(*follower)")); n > 5 {
		t.Errorf("%d goroutines follow execs that are over", n)
	}
}

// endless is an input without end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	time.Sleep(time.Millisecond)
	return len(p), nil
}

func TestStandardInput(t *testing.T) {
	t.Parallel()
	b := openBox(t, manager.OpenOptions{})
	// None is the end at once, and not a terminal or something that blocks.
	res := b.sh(t, `cat; test -t 0 && echo tty; readlink /proc/self/fd/0`, 0)
	if string(res.Stdout) != "/dev/null\n" {
		t.Errorf("without standard input: %q", res.Stdout)
	}
	big := bytes.Repeat([]byte("0123456789abcdef"), 1<<18) // 4 MiB, to a program that never reads it and prints as much
	stdin := bytes.NewReader(big)
	res, err := b.Exec(t.Context(), sandbox.Run{Command: []string{"head", "-c", "4000000", "/dev/zero"}, ExecLimits: sandbox.ExecLimits{Timeout: sandbox.Duration(time.Minute)}}, sandbox.Streams{Stdin: stdin})
	if err != nil {
		t.Fatal(err)
	}
	check(t, res, sandbox.ReasonExited, 0)
	if n := int64(len(res.Stdout)) + res.Truncated.Stdout; n != 4_000_000 {
		t.Errorf("%d bytes", n)
	}
	// One that reads it gets all of it, and then the end.
	res, err = b.Exec(t.Context(), sandbox.Run{Command: []string{"md5sum"}}, sandbox.Streams{Stdin: bytes.NewReader(big)})
	if err != nil || !strings.HasPrefix(string(res.Stdout), "6f71a17a") && res.Code != 0 {
		t.Errorf("md5sum: %v, %s, %q", err, res.Reason, res.Stdout)
	}
	res, err = b.Exec(t.Context(), sandbox.Run{Command: []string{"wc", "-c"}}, sandbox.Streams{Stdin: bytes.NewReader(big)})
	if err != nil || strings.TrimSpace(string(res.Stdout)) != fmt.Sprint(len(big)) {
		t.Errorf("wc: %v, %s, %q of %d bytes", err, res.Reason, res.Stdout, len(big))
	}
	// One that closes its standard input and goes on.
	res, err = b.Exec(t.Context(), sandbox.Run{Command: []string{"bash", "-c", "exec 0<&-; sleep 0.2; echo on"}}, sandbox.Streams{Stdin: endless{}})
	if err != nil || string(res.Stdout) != "on\n" {
		t.Errorf("closed: %v, %s, %q", err, res.Reason, res.Stdout)
	}
	// An input that blocks for ever does not hold up the answer.
	hold := make(chan struct{})
	defer close(hold)
	res, err = b.Exec(t.Context(), sandbox.Run{Command: []string{"echo", "done"}}, sandbox.Streams{Stdin: blockingReader(hold)})
	if err != nil || string(res.Stdout) != "done\n" {
		t.Errorf("blocking: %v, %s, %q", err, res.Reason, res.Stdout)
	}
	b.usable(t)
}

type blockingReader chan struct{}

func (r blockingReader) Read([]byte) (int, error) {
	<-r
	return 0, fmt.Errorf("over")
}

// Zombies of all kinds are reaped while the sandbox lives.
func TestZombiesStayAtZero(t *testing.T) {
	t.Parallel()
	b := openBox(t, manager.OpenOptions{Language: "python"})
	for range 3 {
		res := b.py(t, `
import os, time
for i in range(40):
    if os.fork() == 0:
        if os.fork() == 0: time.sleep(0.01 * (i % 3)); os._exit(i)
        os._exit(0)
time.sleep(0.1)
`, time.Minute)
		check(t, res, sandbox.ReasonExited, 0)
		b.usable(t)
	}
}

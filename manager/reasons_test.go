package manager_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

type mountPoint = container.MountPoint

// Every reason that a program can bring about itself, with its code, and what
// it had printed before.
func TestExitReasons(t *testing.T) {
	t.Parallel()
	b := openBox(t, manager.OpenOptions{Limits: sandbox.Limits{Memory: 64 * sandbox.MiB, PIDs: 20, Tmp: sandbox.MiB, MaxOutput: 100_000}})
	for name, tt := range map[string]struct {
		script string
		reason sandbox.ExitReason
		code   int
		signal string
	}{
		"success":         {"echo out; exit 0", sandbox.ReasonExited, 0, ""},
		"failure":         {"echo out; exit 42", sandbox.ReasonExited, 42, ""},
		"code 137":        {"echo out; exit 137", sandbox.ReasonExited, 137, ""},
		"code 124":        {"echo out; exit 124", sandbox.ReasonExited, 124, ""},
		"its own SIGKILL": {"echo out; kill -9 $$", sandbox.ReasonSignal, 137, "SIGKILL"},
		"SIGTERM":         {"echo out; kill -TERM $$", sandbox.ReasonSignal, 143, "SIGTERM"},
		"SIGSEGV":         {"echo out; kill -SEGV $$", sandbox.ReasonSignal, 139, "SIGSEGV"},
		"SIGABRT":         {"echo out; kill -ABRT $$", sandbox.ReasonSignal, 134, "SIGABRT"},
		"real-time":       {"echo out; kill -40 $$", sandbox.ReasonSignal, 168, "SIG40"},
		"timeout":         {"echo out; sleep 60", sandbox.ReasonTimeout, 137, "SIGKILL"},
		"timeout, TERM":   {"trap 'exit 0' TERM; echo out; while :; do sleep 0.1; done", sandbox.ReasonTimeout, 137, "SIGKILL"},
		"memory":          {"echo out; x=a; while :; do x=$x$x; done", sandbox.ReasonOOM, 137, "SIGKILL"},
		"processes":       {"echo out; for i in $(seq 60); do /bin/sleep 9 & done 2>/dev/null; exit 5", sandbox.ReasonPIDs, 5, ""},
		"disk":            {"echo out; head -c 2000000 /dev/zero > /tmp/f", sandbox.ReasonDisk, 1, ""},
		"output":          {"echo out; yes", sandbox.ReasonOutput, 137, "SIGKILL"},
	} {
		timeout := 20 * time.Second // enough for whatever ends by itself
		if tt.reason == sandbox.ReasonTimeout {
			timeout = 1200 * time.Millisecond
		}
		var res sandbox.Result
		if name == "processes" {
			res = b.crowd(t, tt.script)
		} else {
			res = b.sh(t, tt.script, timeout)
		}
		if name == "processes" && res.Reason == sandbox.ReasonTimeout {
			t.Logf("bash waited for room to fork: %q", res.Events) // it tries again for a while
			if !contains(res.Events, "pids") {
				t.Error("and nothing says so")
			}
			b.usable(t)
			continue
		}
		check(t, res, tt.reason, tt.code)
		if res.Signal != tt.signal || !bytes.HasPrefix(res.Stdout, []byte("out\n")) {
			t.Errorf("%s: signal %q, stdout %.20q", name, res.Signal, res.Stdout)
		}
		if t.Failed() {
			t.Fatalf("above: %s", name)
		}
		b.usable(t)
		b.sh(t, "rm -f /tmp/f", 0)
	}
}

func TestReasonCanceled(t *testing.T) {
	t.Parallel()
	b := openBox(t, manager.OpenOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	var start time.Time
	w := &signalWriter{first: func() { start = time.Now(); cancel() }}
	res, err := b.Exec(ctx, sandbox.Run{Command: []string{"bash", "-c", "echo partial; sleep 60"}}, sandbox.Streams{Stdout: w})
	if err != nil {
		t.Fatal(err)
	}
	check(t, res, sandbox.ReasonCanceled, 137)
	if string(res.Stdout) != "partial\n" || time.Since(start) > 10*time.Second {
		t.Errorf("stdout %q, %v after it was cancelled", res.Stdout, time.Since(start))
	}
	b.usable(t)
	// A writer that fails ends the program too: nobody would see what it says.
	res, err = b.Exec(t.Context(), sandbox.Run{Command: []string{"yes"}}, sandbox.Streams{Stdout: failingWriter{}})
	if err != nil {
		t.Fatal(err)
	}
	if res.Reason != sandbox.ReasonCanceled || !strings.Contains(res.Cause, "no more room") {
		t.Errorf("ended with %s (%s)", res.Reason, res.Cause)
	}
	b.usable(t)
}

type signalWriter struct{ first func() }

func (w *signalWriter) Write(p []byte) (int, error) { w.first(); return len(p), nil }

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("no more room") }

// What fails under the program is not the program's end.
func TestReasonInfra(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		cause string
		fail  func(*testing.T, *box)
	}{
		"container removed": {"removed", func(t *testing.T, b *box) {
			name := "caisson-" + string(b.ID())
			if err := b.kit.API.ContainerRemove(t.Context(), name, container.RemoveOptions{Force: true}); err != nil {
				t.Error(err)
			}
		}},
		"container killed": {"killed", func(t *testing.T, b *box) {
			if err := b.kit.API.ContainerKill(t.Context(), "caisson-"+string(b.ID()), "KILL"); err != nil {
				t.Error(err)
			}
		}},
		"agent killed": {"killed", func(t *testing.T, b *box) {
			if err := syscall.Kill(b.kit.AgentPID(t, b.ID()), syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := openBox(t, manager.OpenOptions{})
			first := b.ID()
			b.sh(t, "echo state > kept", 0)
			w := &signalWriter{}
			begun := make(chan struct{})
			w.first = func() { close(begun) }
			go func() {
				<-begun
				tt.fail(t, b)
			}()
			res, err := b.Exec(t.Context(), sandbox.Run{Command: []string{"bash", "-c", "echo partial; sleep 60"}}, sandbox.Streams{Stdout: w})
			if err != nil {
				t.Fatal(err)
			}
			check(t, res, sandbox.ReasonInfra, 137)
			if string(res.Stdout) != "partial\n" || !strings.Contains(res.Cause, tt.cause) {
				t.Errorf("stdout %q, cause %q", res.Stdout, res.Cause)
			}
			if again := b.usable(t); !again.Replaced || again.Sandbox == first {
				t.Errorf("the next exec ran in %s, replaced: %v", again.Sandbox, again.Replaced)
			}
			if res := b.sh(t, "cat kept", 0); res.Code == 0 || res.Replaced {
				t.Errorf("a new workspace has what the old one had: %q; replaced again: %v", res.Stdout, res.Replaced)
			}
		})
	}
}

// Between two execs, too, a sandbox may go away.
func TestReplacedAfterSilentLoss(t *testing.T) {
	t.Parallel()
	b := openBox(t, manager.OpenOptions{})
	if err := syscall.Kill(b.kit.AgentPID(t, b.ID()), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond)
	var res sandbox.Result
	var err error
	for range 3 {
		if res, err = b.Exec(t.Context(), sandbox.Run{Command: []string{"echo", "ok"}}, sandbox.Streams{}); err == nil {
			break
		}
		if sandbox.KindOf(err) != sandbox.Unavailable {
			t.Fatalf("a sandbox that is gone: %v", err)
		}
	}
	if err != nil || !res.Replaced || string(res.Stdout) != "ok\n" {
		t.Errorf("%v; replaced: %v, stdout %q", err, res.Replaced, res.Stdout)
	}
	b.quiet(t)
}

// The figures of an exec's use are about right, and name their method.
func TestUsage(t *testing.T) {
	t.Parallel()
	b := openBox(t, manager.OpenOptions{Language: "python", Limits: sandbox.Limits{CPUs: 1}})
	res := b.py(t, "import time\nx = bytearray(80 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1\nt = time.process_time()\nwhile time.process_time() - t < 0.3: pass\ntime.sleep(0.3)\n", 30*time.Second)
	check(t, res, sandbox.ReasonExited, 0)
	u := res.Usage
	if u.CPU < 300*time.Millisecond || u.CPU > 1500*time.Millisecond || u.Wall < 600*time.Millisecond || res.Duration != u.Wall {
		t.Errorf("cpu %v, wall %v, duration %v", u.CPU, u.Wall, res.Duration)
	}
	if u.PeakMemory < 80*sandbox.MiB || u.PeakMemory > 140*sandbox.MiB || u.PeakProcesses < 1 || u.PeakProcesses > 3 {
		t.Errorf("memory %s, %d processes", u.PeakMemory.Human(), u.PeakProcesses)
	}
	if u.Methods.CPU == "" || u.Methods.Memory == "" || u.Methods.Processes == "" {
		t.Errorf("methods %+v", u.Methods)
	}
	res = b.sh(t, "for i in 1 2 3 4 5 6; do sleep 0.5 & done; wait", 0)
	if n := res.Usage.PeakProcesses; n < 6 || n > 9 {
		t.Errorf("a peak of %d processes, by %s", n, res.Usage.Methods.Processes)
	}
	b.usable(t)
}

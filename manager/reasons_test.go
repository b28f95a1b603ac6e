package manager_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/runtimes/runtimetest"
	"github.com/caisson-dev/caisson/sandbox"
)

type mountPoint = container.MountPoint

// Every reason that a program can bring about itself, with its code, and what
// it had printed before.
func TestExitReasons(t *testing.T) {
	t.Parallel()
	b := openBox(t, manager.OpenOptions{Limits: sandbox.Limits{Memory: 64 * sandbox.MiB, PIDs: 20, Tmp: sandbox.MiB}})
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
		"timeout":         {"echo out; sleep 60", sandbox.ReasonTimeout, 124, "SIGKILL"},
		"timeout, TERM":   {"trap 'exit 0' TERM; echo out; while :; do sleep 0.1; done", sandbox.ReasonTimeout, 124, "SIGKILL"},
		"memory":          {"echo out; x=a; while :; do x=$x$x; done", sandbox.ReasonOOM, 137, "SIGKILL"},
		// dash gives up at once, where bash tries again for half a minute.
		"processes": {"echo out; exec dash -c 'for i in $(seq 60); do sleep 99 & done; exit 5'", sandbox.ReasonPIDs, 2, ""},
		"disk":      {"echo out; head -c 2000000 /dev/zero > /tmp/f", sandbox.ReasonDisk, 1, ""},
		"output":    {"echo out; yes", sandbox.ReasonOutput, 137, "SIGKILL"},
	} {
		timeout := time.Minute // enough for whatever ends by itself
		if tt.reason == sandbox.ReasonTimeout {
			timeout = 10 * time.Second // in which it prints, also on a busy machine
		}
		res := b.run(t, sandbox.Run{
			Command: []string{"bash", "-c", tt.script}, ExecLimits: sandbox.ExecLimits{Timeout: sandbox.Duration(timeout), MaxOutput: 100_000},
		})
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
	w := &signalWriter{first: cancel}
	res, err := b.Exec(ctx, sandbox.Run{Command: []string{"bash", "-c", "echo partial; sleep 60"}}, sandbox.Streams{Stdout: w})
	if err != nil {
		t.Fatal(err)
	}
	if string(res.Stdout) != "partial\n" {
		t.Errorf("stdout %q", res.Stdout)
	}
	b.ended(t, res, sandbox.ReasonCanceled)
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
			check(t, res, sandbox.ReasonInfra, 125)
			if string(res.Stdout) != "partial\n" || !strings.Contains(res.Cause, tt.cause) {
				t.Errorf("stdout %q, cause %q", res.Stdout, res.Cause)
			}
			if res.Duration <= 0 || res.Usage.Wall != res.Duration || res.Usage.Methods.Wall != client.HostClock {
				t.Errorf("it took %v; used: %+v", res.Duration, res.Usage)
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

// What an exec used whose agent is gone is what the engine was seen to count.
func TestUsageWithoutAgent(t *testing.T) {
	t.Parallel()
	var s *manager.Sandbox
	var looks, sinceBegin atomic.Int64
	m, rt := light(t, func(_ *manager.Config, rt *runtimetest.Memory) {
		rt.OnSample = func() sandbox.Sample {
			n := looks.Add(1)
			if sinceBegin.Add(1) == 2 { // the first is taken down by now
				rt.Break(s.ID())
			}
			return sandbox.Sample{CPU: sandbox.Duration(n) * sandbox.Duration(time.Second), Memory: sandbox.Bytes(n) * sandbox.MiB, Processes: int(n)}
		}
	})
	var err error
	if s, err = m.Open(t.Context(), manager.OpenOptions{Language: "shell"}); err != nil {
		t.Fatal(err)
	}
	sleep := sandbox.Run{Command: []string{"sh", "-c", "echo partial; sleep 60"}}
	res, err := s.Exec(t.Context(), sleep, sandbox.Streams{})
	u := res.Usage
	if err != nil || res.Reason != sandbox.ReasonInfra || u.CPU < time.Second || u.PeakMemory < sandbox.MiB || u.PeakProcesses < 1 || u.Wall < 500*time.Millisecond || res.Duration != u.Wall {
		t.Errorf("%v, %s, %v, %+v", err, res.Reason, res.Duration, u)
	}
	for name, method := range map[string]string{"wall": u.Methods.Wall, "cpu": u.Methods.CPU, "memory": u.Methods.Memory, "processes": u.Methods.Processes} {
		if method == "" {
			t.Errorf("%s has no method: %+v", name, u.Methods)
		}
	}
	// In a sandbox that ran something else, its CPU time is not the exec's.
	sinceBegin.Store(-1000)
	if res, err = s.Exec(t.Context(), echo, sandbox.Streams{}); err != nil || res.Code != 0 {
		t.Fatalf("%v, %+v", err, res)
	}
	sinceBegin.Store(0)
	res, err = s.Exec(t.Context(), sleep, sandbox.Streams{})
	if u := res.Usage; err != nil || res.Reason != sandbox.ReasonInfra || u.CPU > time.Second || u.PeakMemory < 3*sandbox.MiB {
		t.Errorf("%v, %s, %+v", err, res.Reason, u)
	}
	if rest, _ := rt.List(t.Context()); len(rest) > 1 {
		t.Errorf("left: %+v", rest)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// The time that an exec in a frozen sandbox took is the host's to tell.
func TestFrozenTimeout(t *testing.T) {
	t.Parallel()
	b := openBox(t, manager.OpenOptions{})
	w := &signalWriter{first: func() {
		if err := b.kit.API.ContainerPause(t.Context(), "caisson-"+string(b.ID())); err != nil {
			t.Error(err)
		}
	}}
	res, err := b.Exec(t.Context(), sandbox.Run{Command: []string{"sh", "-c", "echo partial; sleep 60"}, ExecLimits: sandbox.ExecLimits{Timeout: sandbox.Duration(10 * time.Second)}}, sandbox.Streams{Stdout: w})
	if err != nil || res.Reason != sandbox.ReasonTimeout || res.Duration < 500*time.Millisecond || res.Usage.Methods.Wall != client.HostClock {
		t.Errorf("%v, %s, took %v, %+v", err, res.Reason, res.Duration, res.Usage)
	}
}

// Between two execs, too, a sandbox may go away.
func TestReplacedAfterSilentLoss(t *testing.T) {
	t.Parallel()
	b := openBox(t, manager.OpenOptions{})
	if err := syscall.Kill(b.kit.AgentPID(t, b.ID()), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	var res sandbox.Result
	until(t, "it is replaced", func() bool {
		var err error
		res, err = b.Exec(t.Context(), sandbox.Run{Command: []string{"echo", "ok"}}, sandbox.Streams{})
		if err != nil && sandbox.KindOf(err) != sandbox.Unavailable {
			t.Fatalf("a sandbox that is gone: %v", err)
		}
		return err == nil && res.Reason != sandbox.ReasonInfra
	})
	if !res.Replaced || string(res.Stdout) != "ok\n" {
		t.Errorf("replaced: %v, stdout %q", res.Replaced, res.Stdout)
	}
	b.quiet(t)
}

// The figures of an exec's use are about right, and name their method.
func TestUsage(t *testing.T) {
	t.Parallel()
	b := openBox(t, manager.OpenOptions{Language: "python", Limits: sandbox.Limits{CPUs: 1}})
	res := b.py(t, "import time\nx = bytearray(80 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1\nt = time.process_time()\nwhile time.process_time() - t < 0.3: pass\ntime.sleep(0.3)\n", time.Minute)
	check(t, res, sandbox.ReasonExited, 0)
	u := res.Usage
	if u.CPU < 300*time.Millisecond || u.CPU > u.Wall+time.Second || u.Wall < 600*time.Millisecond || res.Duration != u.Wall {
		t.Errorf("cpu %v, wall %v, duration %v", u.CPU, u.Wall, res.Duration)
	}
	if u.PeakMemory < 80*sandbox.MiB || u.PeakMemory > 140*sandbox.MiB || u.PeakProcesses < 1 || u.PeakProcesses > 3 {
		t.Errorf("memory %s, %d processes", u.PeakMemory.Human(), u.PeakProcesses)
	}
	if u.Methods.CPU == "" || u.Methods.Memory == "" || u.Methods.Processes == "" {
		t.Errorf("methods %+v", u.Methods)
	}
	res = b.sh(t, "for i in 1 2 3 4 5 6; do sleep 600 & done; sleep 1; kill $(jobs -p); wait", 0)
	if n := res.Usage.PeakProcesses; n < 6 || n > 9 {
		t.Errorf("a peak of %d processes, by %s", n, res.Usage.Methods.Processes)
	}
	b.usable(t)
}

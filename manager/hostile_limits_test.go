package manager_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

func TestForkBomb(t *testing.T) {
	t.Parallel()
	b := openBox(t, manager.OpenOptions{})
	for name, script := range map[string]string{
		"classic":  `bomb() { bomb | bomb & }; bomb; sleep 60`,
		"sessions": `f() { setsid bash -c "$(declare -f f); f & f & f & sleep 60" & }; f; f; f; sleep 60`,
		"storm":    `while :; do sleep 60 & done`,
	} {
		res := b.cancelAt(t, bash(script), noRoom)
		if !contains(res.Events, "pids") {
			t.Errorf("%s: events %q do not name the process limit", name, res.Events)
		}
		b.ended(t, res, sandbox.ReasonCanceled)
	}
}

// A fork bomb in one exec must not take the agent down while it serves others.
func TestForkBombBesideOthers(t *testing.T) {
	t.Parallel()
	b := openBox(t, manager.OpenOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	full, bomb := make(chan struct{}), make(chan sandbox.Result, 1)
	go func() {
		w := &wordWriter{words: noRoom, then: func() { close(full) }}
		res, err := b.Exec(ctx, bash(`bomb() { bomb | bomb & }; bomb; sleep 600`), sandbox.Streams{Stderr: w})
		if err != nil {
			t.Errorf("bomb: %v", err)
		}
		bomb <- res
	}()
	<-full
	others := make(chan error, 60)
	for range cap(others) {
		go func() {
			_, err := b.Exec(t.Context(), sandbox.Run{Command: []string{"sh", "-c", "head -c 300000 /dev/zero; echo x >&2"}}, sandbox.Streams{})
			others <- err
		}()
	}
	refused := 0
	for range cap(others) {
		if err := <-others; err != nil {
			refused++
			if sandbox.KindOf(err) != sandbox.Exhausted {
				t.Errorf("beside a fork bomb an exec failed otherwise than for want of processes: %v", err)
			}
		}
	}
	cancel()
	res := <-bomb
	t.Logf("%d of %d execs found no room for a process", refused, cap(others))
	b.ended(t, res, sandbox.ReasonCanceled)
}

func TestMemoryBomb(t *testing.T) {
	t.Parallel()
	b := openBox(t, manager.OpenOptions{Language: "python", Limits: sandbox.Limits{Memory: 96 * sandbox.MiB}})
	res := b.py(t, "print('before', flush=True)\nx = bytearray(1 << 30)\n", time.Minute)
	check(t, res, sandbox.ReasonOOM, 137)
	if string(res.Stdout) != "before\n" || !contains(res.Events, "oom") {
		t.Errorf("stdout %q, events %q", res.Stdout, res.Events)
	}
	b.usable(t)

	// One whose many children each stay small, and that makes itself no likelier
	// a victim than the agent.
	res = b.py(t, `
import os, time
try:
    open("/proc/self/oom_score_adj", "w").write("0")
except OSError as e:
    print(e)
for i in range(60):
    if os.fork() == 0:
        x = bytearray(os.urandom(1 << 20)) * 4
        time.sleep(30)
time.sleep(30)
`, 4*time.Second)
	if res.Reason == sandbox.ReasonExited {
		t.Errorf("many small eaters of memory ended with %s, code %d", res.Reason, res.Code)
	}
	b.usable(t)

	// One that survives an OOM kill of its child: that is an event, not the end.
	res = b.py(t, "import os\npid = os.fork()\nif pid == 0:\n    x = bytearray(1 << 30)\n    os._exit(0)\nos.waitpid(pid, 0)\nprint('survived')\n", time.Minute)
	check(t, res, sandbox.ReasonExited, 0)
	if !contains(res.Events, "oom") || string(res.Stdout) != "survived\n" {
		t.Errorf("events %q, stdout %q", res.Events, res.Stdout)
	}
	b.usable(t)
}

func TestDiskFull(t *testing.T) {
	t.Parallel()
	small := 8 * sandbox.MiB
	b := openBox(t, manager.OpenOptions{Limits: sandbox.Limits{Workspace: small, Tmp: small, Shm: small}})
	for _, dir := range []string{"/workspace", "/tmp", "/var/tmp", "/home/sandbox", "/dev/shm"} {
		res := b.sh(t, "echo start; dd if=/dev/zero of="+dir+"/fill bs=64k", time.Minute)
		check(t, res, sandbox.ReasonDisk, 1)
		if string(res.Stdout) != "start\n" || !strings.Contains(string(res.Stderr), "No space left") {
			t.Errorf("%s: stdout %q, stderr %q", dir, res.Stdout, res.Stderr)
		}
		b.usable(t)
		check(t, b.sh(t, "rm "+dir+"/fill", 0), sandbox.ReasonExited, 0)
	}
	// Names instead of bytes.
	res := b.sh(t, `cd /tmp; i=0; while : > f$i; do i=$((i+1)); [ $i -gt 20000 ] && exit 0; done; exit 3`, time.Minute)
	if res.Reason == sandbox.ReasonInfra {
		t.Errorf("many files: %s (%s)", res.Reason, res.Cause)
	}
	check(t, b.sh(t, "rm -rf /tmp/f*; find /tmp -name 'f*' -delete", 0), sandbox.ReasonExited, 0)
	// The root file system is read-only: there is nothing to fill.
	for _, dir := range []string{"/", "/etc", "/usr/bin", "/run", "/run/caisson", "/run/caisson/exec", "/dev", "/proc", "/sys"} {
		if res := b.sh(t, "echo x > "+dir+"/fill", 0); res.Code == 0 {
			t.Errorf("a file could be made in %s", dir)
		}
	}
	b.usable(t)
}

// All file systems together hold as much as the memory limit: what fills them
// leaves no memory for anything. The sandbox is given up, and the result says so.
func TestDiskFullIsMemoryFull(t *testing.T) {
	t.Parallel()
	b := openBox(t, manager.OpenOptions{Limits: sandbox.Limits{Memory: 48 * sandbox.MiB}})
	res := b.sh(t, "for d in /workspace /tmp /home/sandbox /dev/shm; do dd if=/dev/zero of=$d/fill bs=64k; done; echo end", time.Minute)
	if !contains(res.Events, "oom") || !strings.Contains(res.Cause, "no room below the memory limit") || b.State() != sandbox.StateFailed {
		t.Errorf("more was written than there is memory: %s, code %d, events %q (%s), sandbox %s", res.Reason, res.Code, res.Events, res.Cause, b.State())
	}
	b.usable(t)
}

func contains(list []string, s string) bool {
	for _, e := range list {
		if e == s {
			return true
		}
	}
	return false
}

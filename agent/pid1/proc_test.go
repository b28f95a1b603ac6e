//go:build linux

package pid1

import (
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// headless, in the environment, makes this program end its main thread and live
// on in others.
const headless = "CAISSON_TEST_HEADLESS"

func init() {
	if os.Getenv(headless) == "" {
		return
	}
	runtime.LockOSThread() // package initialisation is on the main thread
	go func() {
		time.Sleep(time.Minute)
		os.Exit(0)
	}()
	_, _, _ = unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
}

// awaitZombie waits until a process's main thread is a zombie.
func awaitZombie(t *testing.T, pid int) procInfo {
	t.Helper()
	for begun := time.Now(); time.Since(begun) < 30*time.Second; time.Sleep(time.Millisecond) {
		if p, ok := readProc(pid); !ok {
			t.Fatal("it is gone")
		} else if p.state == 'Z' {
			return p
		}
	}
	t.Fatal("its main thread does not end")
	return procInfo{}
}

// TestDead tells a process whose main thread has ended from one that has.
func TestDead(t *testing.T) {
	t.Parallel()
	if p, ok := readProc(os.Getpid()); !ok || p.dead() || p.threads < 2 {
		t.Errorf("this process: %+v", p)
	}
	proc, err := os.StartProcess("/proc/self/exe", []string{"headless"}, &os.ProcAttr{Env: []string{headless + "=1"}})
	if err != nil {
		t.Fatal(err)
	}
	if p := awaitZombie(t, proc.Pid); p.dead() {
		t.Errorf("a process that lives in its threads: %+v", p)
	}
	if err := proc.Kill(); err != nil {
		t.Error(err)
	}
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		p, ok := readProc(proc.Pid)
		if !ok || p.dead() {
			break
		}
		if time.Since(begun) > 30*time.Second {
			t.Fatalf("a process that was killed: %+v", p)
		}
	}
	if _, err := proc.Wait(); err != nil {
		t.Error(err)
	}
}

package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/internal/enginetest"
)

// pty opens a pseudo-terminal.
func pty(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { _ = master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	return master, slave
}

// onTerminal runs caisson on a terminal of its own, types an answer where it is
// asked, and returns all that is shown, and the exit code.
func onTerminal(t *testing.T, base string, kit *enginetest.Kit, answer string, args ...string) (string, int) {
	t.Helper()
	master, slave := pty(t)
	cmd := exec.Command(enginetest.Command(t), args...)
	cmd.Env = append(os.Environ(), "CAISSON_AGENT="+kit.Agent, "CAISSON_SCAN="+enginetest.Scanner(t), "CAISSON_RUNTIME_DIR="+base+"/s", "CAISSON_STATE_DIR="+base+"/state")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = slave.Close()
	timer := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	var shown strings.Builder
	buf := make([]byte, 4096)
	for answered := false; ; {
		n, err := master.Read(buf)
		shown.Write(buf[:n])
		if err != nil {
			break // its last holder has closed the terminal
		}
		if !answered && strings.Contains(shown.String(), "[n]o: ") {
			answered = true
			if _, err := master.WriteString(answer + "\n"); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait() // its exit code says it
	return strings.ReplaceAll(shown.String(), "\r\n", "\n"), cmd.ProcessState.ExitCode()
}

// On a terminal a person is asked, sees what and why, and answers.
func TestAskedOnATerminal(t *testing.T) {
	t.Parallel()
	kit, base := place(t)
	run := []string{"run", "--env", "SEEN=1", "--", "env"}
	text, code := onTerminal(t, base, kit, "no", run...)
	for _, want := range []string{
		"policy asks (high)", "command   env", "variable  SEEN=1", "SBX-CRED-0004: Dumps the whole environment", "= Read the variables that are needed, by name.",
		"[o]nce, [a]lways", "denied by",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not show %q: %s", want, text)
		}
	}
	if code != 126 {
		t.Errorf("no: exit code %d", code)
	}
	for range 2 { // once is once: it asks again
		if text, code := onTerminal(t, base, kit, "o", run...); code != 0 || !strings.Contains(text, "[n]o: ") || !strings.Contains(text, "\nSEEN=1\n") {
			t.Errorf("once: %d, %s", code, text)
		}
	}
	if text, code := onTerminal(t, base, kit, "a", run...); code != 0 || !strings.Contains(text, "[n]o: ") {
		t.Errorf("always: %d, %s", code, text)
	}
	if text, code := onTerminal(t, base, kit, "n", run...); code != 0 || strings.Contains(text, "[n]o: ") {
		t.Errorf("after always: %d, %s", code, text)
	}
	other := []string{"run", "--env", "SEEN=2", "--", "env"}
	if text, code := onTerminal(t, base, kit, "n", other...); code != 126 || !strings.Contains(text, "[n]o: ") {
		t.Errorf("another byte: %d, %s", code, text)
	}
}

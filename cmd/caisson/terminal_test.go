package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
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
	return typing(t, base, kit, []string{"[n]o: ", answer + "\n"}, args...)
}

// typing does so with several things to type, each behind what it waits for.
func typing(t *testing.T, base string, kit *enginetest.Kit, cues []string, args ...string) (string, int) {
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
	for {
		n, err := master.Read(buf)
		shown.Write(buf[:n])
		if err != nil {
			break // its last holder has closed the terminal
		}
		if len(cues) > 0 && strings.Contains(shown.String(), cues[0]) {
			if _, err := master.WriteString(cues[1]); err != nil {
				t.Fatal(err)
			}
			cues = cues[2:]
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

// A program reads what is typed, and nothing of what answers a question. Ctrl-C
// at a question is a no that is written down.
func TestTypedOnATerminal(t *testing.T) {
	t.Parallel()
	kit, base := place(t)
	text, code := typing(t, base, kit, []string{"name?", "ann\n"}, "run", "--", "sh", "-c", `echo "name?"; read x; echo "got $x"`)
	if code != 0 || !strings.Contains(text, "\ngot ann\n") {
		t.Errorf("typed: %d, %s", code, text)
	}
	text, code = typing(t, base, kit, []string{"[n]o: ", "o\n", "name?", "bob\n"}, "run", "--env", "SEEN=1", "--", "sh", "-c", `env >/dev/null; echo "name""?"; read x; echo "got $x"`)
	if code != 0 || !strings.Contains(text, "\ngot bob\n") {
		t.Errorf("typed after an answer: %d, %s", code, text)
	}
	for _, stdin := range [][]string{nil, {"--stdin", "-"}} { // all at once, as it is pasted
		run := slices.Concat([]string{"run", "--env", "SEEN=1"}, stdin, []string{"--", "sh", "-c", `env >/dev/null; read x; echo "got $x"`})
		text, code = typing(t, base, kit, []string{"[n]o: ", "what?\no\nbob\n"}, run...)
		if code != 0 || !strings.HasSuffix(text, "got bob\n") {
			t.Errorf("typed with an answer, %q: %d, %s", stdin, code, text)
		}
	}
	text, code = typing(t, base, kit, []string{"[n]o: ", "\x03"}, "run", "--env", "SEEN=1", "--", "env")
	if code != 130 || !strings.Contains(text, "\ncaisson: no: it does not run\n") || strings.Contains(text, "elsewhere") {
		t.Errorf("Ctrl-C: %d, %s", code, text)
	}
	if text, code = typing(t, base, kit, nil, "approvals", "list", "--all"); code != 0 || strings.Count(text, " denied ") != 1 {
		t.Errorf("and is not written down: %d, %s", code, text)
	}
}

package outbox

import (
	"bytes"
	"context"
	"os/exec"
	"syscall"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// Command runs a shell's command line for what there is to deliver: its standard
// input gets the letters as lines. One that ends with another code than 0 has not
// taken them. It is killed, with all that it started, once its time is over.
func Command(line string) Receiver { return command(line) }

type command string

// killPatience is how long what a program left may hold its output open.
const killPatience = time.Second

// Deliver runs the program once.
func (c command) Deliver(ctx context.Context, letters []sandbox.Letter) error {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", string(c))
	cmd.Stdin = bytes.NewReader(lines(letters))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = killPatience
	if err := cmd.Run(); err != nil {
		return sandbox.Errorf(sandbox.Unavailable, "the program for letters: %w", err)
	}
	return nil
}

// Close has nothing to do.
func (command) Close() error { return nil }

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/sandbox"
)

// An exec in the background whose starts are seen needs a process that lives as long.
// Where no server is it, the command is carried out by a process that goes on behind
// it: the same program with the same arguments and streams, and a session of its own.

// envBehind tells that process the descriptor that it says its exit code on.
const envBehind = "CAISSON_BEHIND"

// outlive begins such a process where there has to be one, and waits until the command
// is carried out.
func (a *app) outlive(ctx context.Context) (outlived bool, code int, err error) {
	if a.remote != nil || a.behind != nil {
		return false, 0, nil
	}
	if rule, err := a.open().Starts(); err != nil || !rule.Sees() {
		return false, 0, err
	}
	self, err := os.Executable()
	if err != nil {
		return false, 0, sandbox.Errorf(sandbox.Internal, "find this program: %w", err)
	}
	done, says, err := os.Pipe()
	if err != nil {
		return false, 0, err
	}
	defer done.Close()
	cmd := exec.CommandContext(ctx, self)
	cmd.Args, cmd.Env, cmd.ExtraFiles = os.Args, append(os.Environ(), envBehind+"=3"), []*os.File{says}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	_ = says.Close() // it has its own
	if err != nil {
		return false, 0, err
	}
	if code, err := bufio.NewReader(done).ReadByte(); err == nil { // else it has ended
		return true, int(code), nil
	}
	if err := cmd.Wait(); err != nil {
		return true, 0, sandbox.Errorf(sandbox.Internal, "the process that was to judge it has ended: %w", err)
	}
	return true, 0, nil
}

// goesBehind makes this process the one that goes on, where it was begun so.
func (a *app) goesBehind() error {
	fd := os.Getenv(envBehind)
	if fd == "" {
		return nil
	}
	n, err := strconv.Atoi(fd)
	if err != nil {
		return fmt.Errorf("%s: %w", envBehind, err)
	}
	unix.CloseOnExec(n)
	a.behind = os.NewFile(uintptr(n), "behind")
	return os.Unsetenv(envBehind) // it is for no other
}

// outlast says what the command exits with, lets go of its streams, and waits until
// what it left running has ended.
func (a *app) outlast(ctx context.Context, code int) error {
	if a.behind == nil {
		return nil
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	for fd := range 3 {
		err = errors.Join(err, unix.Dup2(int(null.Fd()), fd))
	}
	_, said := a.behind.Write([]byte{byte(code)})
	if err := errors.Join(err, said, a.behind.Close()); err != nil {
		return err
	}
	a.open().Outlast(ctx)
	return nil
}

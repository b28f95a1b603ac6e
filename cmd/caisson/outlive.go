package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/sandbox"
)

// An exec in the background whose starts are seen needs a process that lives as long.
// Where no server is it, one goes on behind the command: the same program with the same
// arguments and streams, and a session of its own. It carries the command out; or, where
// that has left a terminal, judges on for it.

// envBehind tells that process the descriptor that it says its exit code on, and
// envJudges for which exec it judges on: a session and an id.
const (
	envBehind = "CAISSON_BEHIND"
	envJudges = "CAISSON_JUDGES"
)

// outlive has such a process carry out the command where there has to be one.
func (a *app) outlive(ctx context.Context) (outlived bool, code int, err error) {
	if needs, err := a.needsJudge(); err != nil || !needs {
		return false, 0, err
	}
	code, err = goBehind(ctx)
	return err == nil, code, err
}

// leave has such a process judge on what an exec starts that this one does not wait for.
func (a *app) leave(ctx context.Context, session string, id sandbox.ID) error {
	if needs, err := a.needsJudge(); err != nil || !needs {
		return err
	}
	code, err := goBehind(ctx, envJudges+"="+session+" "+string(id))
	if err == nil && code != 0 {
		err = sandbox.Errorf(sandbox.Internal, "nobody judges from now on what it starts")
	}
	return err
}

// needsJudge reports whether this process judges what execs in the background start.
func (a *app) needsJudge() (bool, error) {
	if a.remote != nil || a.behind != nil {
		return false, nil
	}
	rule, err := a.open().Starts()
	return rule.Sees(), err
}

// goBehind begins a process that goes on, with variables beside its own, and waits until
// that has said what it exits with.
func goBehind(ctx context.Context, env ...string) (code int, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, sandbox.Errorf(sandbox.Internal, "find this program: %w", err)
	}
	done, says, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer done.Close()
	cmd := exec.CommandContext(ctx, self)
	cmd.Args, cmd.Env, cmd.ExtraFiles = os.Args, append(append(os.Environ(), envBehind+"=3"), env...), []*os.File{says}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	_ = says.Close() // it has its own
	if err != nil {
		return 0, err
	}
	if code, err := bufio.NewReader(done).ReadByte(); err == nil { // else it has ended
		return int(code), nil
	}
	if err := cmd.Wait(); err != nil {
		return 0, sandbox.Errorf(sandbox.Internal, "the process that was to judge it has ended: %w", err)
	}
	return 0, nil
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
	if session, id, judges := strings.Cut(os.Getenv(envJudges), " "); judges {
		a.instead = func(ctx context.Context) error { return a.open().JudgeOn(ctx, session, sandbox.ID(id)) }
	}
	return errors.Join(os.Unsetenv(envBehind), os.Unsetenv(envJudges)) // they are for no other
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

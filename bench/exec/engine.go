//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"

	"github.com/caisson-dev/caisson/internal/dockerclient"
)

// command runs a program of the host, with its output thrown away by the
// kernel, and keeps what it says of a failure.
func (f *fixture) command(ctx context.Context, argv ...string) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	cmd.Env = f.Environ()
	cmd.Stdout = null
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%v: %w", argv, err)
	}
	return nil
}

// execAPI is an exec by the engine's API: create, start, read to the end,
// inspect.
func (f *fixture) execAPI(id string, argv ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		made, err := f.API.ContainerExecCreate(ctx, id, container.ExecOptions{Cmd: argv, AttachStdout: true, AttachStderr: true})
		if err != nil {
			return dockerclient.Wrap(err, "create an exec")
		}
		conn, err := f.API.ContainerExecAttach(ctx, made.ID, container.ExecAttachOptions{})
		if err != nil {
			return dockerclient.Wrap(err, "start an exec")
		}
		defer conn.Close()
		if _, err := stdcopy.StdCopy(io.Discard, io.Discard, conn.Reader); err != nil {
			return fmt.Errorf("read an exec: %w", err)
		}
		got, err := f.API.ContainerExecInspect(ctx, made.ID)
		if err != nil {
			return dockerclient.Wrap(err, "inspect an exec")
		}
		if got.Running || got.ExitCode != 0 {
			return fmt.Errorf("exec %v: running %v, code %d", argv, got.Running, got.ExitCode)
		}
		return nil
	}
}

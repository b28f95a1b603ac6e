//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/docker/docker/api/types/container"

	"github.com/caisson-dev/caisson/bench/measure"
	"github.com/caisson-dev/caisson/internal/dockerclient"
)

// native spawns programs on the host: where it may, from the files of an image,
// so that peer and sandbox run the very same program.
type native struct {
	root string // "" is the host's own
}

// nativeOf extracts a language's image, once.
func (f *fixture) nativeOf(ctx context.Context, s *measure.Suite, language string) (native, error) {
	if n, ok := f.natives[language]; ok {
		return n, nil
	}
	n, err := f.extract(ctx, s, language)
	if err == nil {
		f.natives[language] = n
	}
	return n, err
}

func (f *fixture) extract(ctx context.Context, s *measure.Suite, language string) (native, error) {
	if os.Geteuid() != 0 {
		s.Note("native %s is the host's own: only root may spawn from the image's files", language)
		return native{}, nil
	}
	ref, err := f.Image(ctx, language)
	if err != nil {
		return native{}, err
	}
	root := filepath.Join(f.Dir, "root-"+language)
	if err := os.Mkdir(root, 0o755); err != nil {
		return native{}, err
	}
	made, err := f.API.ContainerCreate(ctx, &container.Config{Image: ref, Cmd: []string{"true"}}, nil, nil, nil, "")
	if err != nil {
		return native{}, dockerclient.Wrap(err, "create a container of %s", ref)
	}
	defer func() {
		_ = f.API.ContainerRemove(context.WithoutCancel(ctx), made.ID, container.RemoveOptions{Force: true}) // it never ran
	}()
	files, err := f.API.ContainerExport(ctx, made.ID)
	if err != nil {
		return native{}, dockerclient.Wrap(err, "export %s", ref)
	}
	defer files.Close()
	tar := exec.CommandContext(ctx, "tar", "-x", "-C", root)
	tar.Stdin = files
	if out, err := tar.CombinedOutput(); err != nil {
		return native{}, fmt.Errorf("extract %s: %w: %s", ref, err, out)
	}
	return native{root: root}, nil
}

// command is a program by its name in /usr/bin, with a sandbox's environment.
func (n native) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "/usr/bin/"+name, args...)
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "HOME=/tmp"}
	if n.root != "" {
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: n.root}
	}
	return cmd
}

// run spawns a program without any stream, which is the least that can be.
func (n native) run(name string, args ...string) func(context.Context) error {
	return func(ctx context.Context) error { return n.command(ctx, name, args...).Run() }
}

// captured spawns a program and takes its output, as a sandbox does.
func (n native) captured(name string, args ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		var stdout, stderr bytes.Buffer
		cmd := n.command(ctx, name, args...)
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		return cmd.Run()
	}
}

// version is what a program says of itself.
func (n native) version(ctx context.Context, name string) string {
	out, err := n.command(ctx, name, "--version").CombinedOutput()
	if err != nil {
		return err.Error()
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return line
}

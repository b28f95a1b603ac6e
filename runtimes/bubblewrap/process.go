//go:build linux

package bubblewrap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/internal/syscalls"
	"github.com/caisson-dev/caisson/runtimes/local"
	"github.com/caisson-dev/caisson/sandbox"
)

// filterPath is where the agent finds the filter for what it starts in namespaces
// of its own.
const filterPath = local.PrivateDir + "/filter"

// aLongTimeAgo is a deadline that has passed.
var aLongTimeAgo = time.Unix(1, 0)

// start starts bwrap, and lets the agent go on once it is written down who that is.
func (m *making) start(ctx context.Context) (*local.Process, error) {
	if m.req.Nested {
		return m.run(ctx, staged{})
	}
	var p *local.Process
	var err error
	local.OnThread(func() { p, err = m.mountAndRun(ctx) })
	return p, err
}

// mountAndRun starts bwrap from a thread that has a mount namespace of its own,
// with what is staged, and that is in the sandbox's control group: what it starts has
// both, and they end with it.
func (m *making) mountAndRun(ctx context.Context) (*local.Process, error) {
	s, err := m.stageApart()
	if errors.Is(err, fs.ErrPermission) {
		return nil, local.NoNamespaces("bubblewrap", err.Error(), local.Host{})
	}
	if err != nil {
		return nil, err
	}
	return m.run(ctx, s)
}

// stageApart stages in a mount namespace of the thread's own.
func (m *making) stageApart() (staged, error) {
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
		return staged{}, fmt.Errorf("leave the host's mounts: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return staged{}, fmt.Errorf("leave the host's mounts: %w", err)
	}
	return m.stage()
}

// files are bwrap's ends of what is spoken with it.
type files struct {
	info  *os.File // what it tells of the agent
	block *os.File // it goes on once something is written here
}

func (m *making) run(ctx context.Context, s staged) (_ *local.Process, err error) {
	filter, err := filterFile()
	if err != nil {
		return nil, err
	}
	defer filter.Close()
	info, infoIn, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer info.Close()
	blockOut, block, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, infoIn.Close())
	}
	defer block.Close()
	args := append(m.args(s), "--info-fd", "3", "--block-fd", "4")
	command := []string{"--remount-ro", "/", "--chdir", "/", "--", local.AgentPath}
	if m.req.Nested {
		args = append(args, "--perms", "0400", "--ro-bind-data", "5", filterPath)
		command = append(command, local.AloneArgs(filterPath, m.req.Limits)...)
	} else {
		args = append(args, "--seccomp", "5")
	}
	cmd := exec.Command(m.bwrap, append(args, command...)...) //nolint:noctx // it outlives us
	cmd.ExtraFiles = []*os.File{infoIn, blockOut, filter}
	for _, c := range m.copies {
		cmd.ExtraFiles = append(cmd.ExtraFiles, c.file)
	}
	p, err := m.Start(cmd)
	if err = errors.Join(err, infoIn.Close(), blockOut.Close()); err != nil {
		return nil, err
	}
	if err := m.release(ctx, p, files{info, block}); err != nil {
		return nil, errors.Join(err, p.Kill())
	}
	return p, nil
}

// release writes down who is to become the agent, and lets it go on.
func (m *making) release(ctx context.Context, p *local.Process, f files) error {
	stop := context.AfterFunc(ctx, func() { _ = f.info.SetReadDeadline(aLongTimeAgo) })
	defer stop()
	var told struct {
		PID int `json:"child-pid"`
	}
	err := json.NewDecoder(f.info).Decode(&told)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil || told.PID <= 0:
		<-p.Ended() // it has closed the pipe
		return local.NoNamespaces("bwrap", p.Said(), local.Host{User: m.Place.Alone})
	}
	if m.req.Nested {
		err := m.ownNamespaces(told.PID, "user", "pid", "net", "ipc", "uts", "mnt")
		if errors.Is(err, fs.ErrNotExist) {
			<-p.Ended() // its first process has: bwrap says why
			return local.NoNamespaces("bwrap", p.Said(), local.Host{User: m.Place.Alone})
		}
		if err != nil {
			return err
		}
	}
	if err := m.Release(told.PID); err != nil {
		return err
	}
	if _, err := f.block.Write([]byte{1}); err != nil {
		return fmt.Errorf("start the agent: %w", err)
	}
	return nil
}

// filterFile is a file with the filter of system calls, at its beginning.
func filterFile() (*os.File, error) {
	program, err := syscalls.Filter()
	if err != nil {
		return nil, sandbox.Errorf(sandbox.Unsupported, "%w", err)
	}
	fd, err := unix.MemfdCreate("filter", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("hand over the filter of system calls: %w", err)
	}
	f := os.NewFile(uintptr(fd), "filter")
	if _, err = f.Write(program); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("hand over the filter of system calls: %w", err), f.Close())
	}
	return f, nil
}

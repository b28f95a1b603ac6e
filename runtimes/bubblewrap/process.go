//go:build linux

package bubblewrap

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/internal/syscalls"
	"github.com/caisson-dev/caisson/sandbox"
)

// process is a bwrap that was started, and waits before it starts the agent.
type process struct {
	cmd   *exec.Cmd
	info  *os.File // what it tells of the agent
	block *os.File // it goes on once something is written here
	ended chan struct{}

	mu   sync.Mutex
	text bytes.Buffer // the beginning of its standard error
}

// aLongTimeAgo is a deadline that has passed.
var aLongTimeAgo = time.Unix(1, 0)

// mostSaid bounds what is kept of what bwrap and the agent say.
const mostSaid = 4 << 10

// start starts bwrap from a thread that has a mount namespace of its own, with the
// sandbox's file systems in memory, and that is in the sandbox's control group:
// what it starts has both, and they end with it. The thread ends here.
func (m *making) start() (*process, error) {
	type result struct {
		p   *process
		err error
	}
	done := make(chan result, 1)
	go onThread(func() {
		p, err := m.startHere()
		done <- result{p, err}
	})
	r := <-done
	return r.p, r.err
}

// onThread calls do on a thread that ends with it. The main thread of a process
// never ends, so it is passed over.
func onThread(do func()) {
	runtime.LockOSThread() // for good: who is not unlocked takes the thread along
	if unix.Gettid() != unix.Getpid() {
		do()
		return
	}
	other := make(chan struct{})
	go func() {
		defer close(other)
		onThread(do)
	}()
	<-other
	runtime.UnlockOSThread()
}

func (m *making) startHere() (*process, error) {
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
		return nil, fmt.Errorf("leave the host's mounts: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("leave the host's mounts: %w", err)
	}
	var mounted []string
	for i, t := range m.req.Tmpfs {
		dir := filepath.Join(m.dir, "m"+strconv.Itoa(i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, err
		}
		flags := uintptr(unix.MS_NOSUID | unix.MS_NODEV)
		if t.NoExec {
			flags |= unix.MS_NOEXEC
		}
		options := fmt.Sprintf("size=%d,mode=%s,uid=%d,gid=%d", int64(t.Size), t.Mode, t.UID, t.UID)
		if err := unix.Mount("tmpfs", dir, "tmpfs", flags, options); err != nil {
			return nil, fmt.Errorf("make a file system in memory: %w", err)
		}
		mounted = append(mounted, dir)
	}
	return m.run(mounted)
}

// run starts bwrap.
func (m *making) run(mounted []string) (_ *process, err error) {
	filter, err := filterFile()
	if err != nil {
		return nil, err
	}
	defer filter.Close()
	info, infoIn, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer infoIn.Close()
	blockOut, block, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, info.Close())
	}
	defer blockOut.Close()
	said, saidIn, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, info.Close(), block.Close())
	}
	defer saidIn.Close()
	args := append(m.args(mounted), "--info-fd", "3", "--block-fd", "4", "--seccomp", "5", "--", agentPath)
	p := &process{cmd: exec.Command(m.bwrap, args...), info: info, block: block, ended: make(chan struct{})} //nolint:noctx // it outlives us
	p.cmd.Env, p.cmd.Dir, p.cmd.Stderr = []string{}, "/", saidIn
	p.cmd.ExtraFiles = []*os.File{infoIn, blockOut, filter}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	entered, err := m.enter(p.cmd)
	if err == nil {
		defer entered.Close()
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, errors.Join(sandbox.Errorf(sandbox.Unavailable, "start bwrap: %w", err), info.Close(), block.Close(), said.Close())
	}
	go p.follow(said)
	return p, nil
}

// enter has what is started be born in the control group. What it returns, which
// may be nil, is closed once that was started.
func (m *making) enter(cmd *exec.Cmd) (*os.File, error) {
	if !m.r.groups.work() {
		return nil, nil //nolint:nilnil // a nil file can be closed
	}
	if !m.r.groups.v2 {
		return nil, m.group().join()
	}
	dir, err := os.Open(m.group().dir(""))
	if err != nil {
		return nil, err
	}
	cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
	return dir, nil
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

// follow keeps the beginning of what is said, and drops the rest, until bwrap has
// ended.
func (p *process) follow(said *os.File) {
	defer said.Close()
	buf := make([]byte, 512)
	for {
		n, err := said.Read(buf)
		p.mu.Lock()
		p.text.Write(buf[:min(n, mostSaid-p.text.Len())])
		p.mu.Unlock()
		if err != nil {
			break
		}
	}
	_ = p.cmd.Wait() // how it ended, nobody is told by its code
	close(p.ended)
}

// said is what bwrap had to say.
func (p *process) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if text := strings.TrimSpace(p.text.String()); text != "" {
		return text
	}
	return "it ended without a word"
}

// agent returns the pid of the process that is to become the agent.
func (p *process) agent(ctx context.Context) (int, error) {
	defer p.info.Close()
	stop := context.AfterFunc(ctx, func() { _ = p.info.SetReadDeadline(aLongTimeAgo) })
	defer stop()
	var told struct {
		PID int `json:"child-pid"`
	}
	err := json.NewDecoder(p.info).Decode(&told)
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case err != nil || told.PID <= 0:
		<-p.ended // it has closed the pipe
		return 0, sandbox.Errorf(sandbox.Unavailable, "bwrap made no sandbox: %s", p.said()).WithHint("see: caisson doctor")
	}
	return told.PID, nil
}

// goOn lets the agent be started.
func (p *process) goOn() error {
	_, err := p.block.Write([]byte{1})
	if err = errors.Join(err, p.block.Close()); err != nil {
		return fmt.Errorf("start the agent: %w", err)
	}
	return nil
}

// kill ends bwrap before the agent was started.
func (p *process) kill() error {
	err := p.cmd.Process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	return errors.Join(err, p.block.Close())
}

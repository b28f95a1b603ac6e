//go:build linux

package local

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/sandbox"
)

// Process is the program that makes a sandbox, which was started.
type Process struct {
	cmd   *exec.Cmd
	ended chan struct{}

	mu   sync.Mutex
	text bytes.Buffer // the beginning of its standard error
}

// mostSaid bounds what is kept of what a program and the agent say.
const mostSaid = 4 << 10

// Start starts a program in the sandbox's control group, without an environment and
// in a session of its own. It outlives this process. Errors: Unavailable.
func (m *Making) Start(cmd *exec.Cmd) (*Process, error) {
	said, saidIn, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer saidIn.Close()
	cmd.Env, cmd.Dir, cmd.Stderr = []string{}, "/", saidIn
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true
	p := &Process{cmd: cmd, ended: make(chan struct{})}
	entered, err := m.enter(cmd)
	if err == nil {
		defer entered.Close()
		err = cmd.Start()
	}
	if err != nil {
		return nil, errors.Join(sandbox.Errorf(sandbox.Unavailable, "start %s: %w", cmd.Path, err), said.Close())
	}
	go p.follow(said)
	return p, nil
}

// enter has what is started be born in the control group. What it returns, which
// may be nil, is closed once that was started.
func (m *Making) enter(cmd *exec.Cmd) (*os.File, error) {
	if !m.Place.Groups.Work() {
		return nil, nil //nolint:nilnil // a nil file can be closed
	}
	if !m.Place.Groups.v2 {
		return nil, m.Group().Join()
	}
	dir, err := os.Open(m.Group().dir(""))
	if err != nil {
		return nil, err
	}
	cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
	return dir, nil
}

// follow keeps the beginning of what is said, and drops the rest, until the program
// has ended.
func (p *Process) follow(said *os.File) {
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

// Said is what it had to say.
func (p *Process) Said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if text := strings.TrimSpace(p.text.String()); text != "" {
		return text
	}
	return "it ended without a word"
}

// Ended is closed once it has ended, and all has been read that it said.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// PID is its number on this host.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Kill ends it, and what it has started, which may not know yet that it is to end with
// it: bwrap's first process would wait for bwrap for good.
func (p *Process) Kill() error {
	err := p.cmd.Process.Signal(unix.SIGSTOP) // it starts nobody any more
	if err == nil {
		pid := p.PID()
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid)) // it may have been killed
		for _, child := range strings.Fields(string(children)) {
			if n, err := strconv.Atoi(child); err == nil {
				_ = unix.Kill(n, unix.SIGKILL) // it may have ended
			}
		}
		err = p.cmd.Process.Kill()
	}
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// OnThread calls do on a thread that ends with it, so that what do changes of it
// is nobody else's. The main thread of a process never ends, so it is passed over.
func OnThread(do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		onThread(do)
	}()
	<-done
}

func onThread(do func()) {
	runtime.LockOSThread() // for good: who is not unlocked takes the thread along
	if unix.Gettid() != unix.Getpid() {
		do()
		return
	}
	OnThread(do)
	runtime.UnlockOSThread()
}

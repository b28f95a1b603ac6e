//go:build linux

package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// readyPatience bounds how long a started agent may take to listen, cleanPatience
// the removal of what a failed step left.
const (
	readyPatience = 30 * time.Second
	cleanPatience = 30 * time.Second
)

// Making is a sandbox that is being made. Place, Spec and Limits are required, and
// nothing of it is safe for concurrent use.
type Making struct {
	Place  Place
	Spec   sandbox.Spec
	Limits Limits
	// Request is the plan's, of a runtime whose sandboxes can be handed over.
	Request json.RawMessage

	Dir    string // the sandbox's own folder on the host
	Volume string // the workspace's folder of the host, "" for one in memory
	record Record
	ready  *net.UnixListener
}

// Make makes a sandbox: it prepares what lies on the host, calls start, which has
// to start the program and to write down who the agent is by [Making.Release], and
// waits until the agent listens; check then has the last word. Where a step fails
// nothing is left.
func (m *Making) Make(ctx context.Context, id sandbox.ID, start func() (*Process, error), check func() error) (_ runtimes.Instance, err error) {
	m.Dir = m.Place.Folder(id)
	m.record.Handle = runtimes.Handle{
		Version: runtimes.HandleVersion, Runtime: m.Place.Name, Kind: runtimes.KindSandbox, ID: id, Name: OwnVolume(id), Session: m.Spec.Session, Holder: m.Spec.Holder,
		Language: m.Spec.Language, Kept: m.Spec.Keep, Created: time.Now().UTC().Truncate(time.Second), Running: true,
	}
	if m.Place.Claims {
		m.record.Made = &Made{Image: m.Spec.Image.ID, Request: m.Request}
	}
	inst := m.Place.Instance(m.record.Handle)
	defer func() {
		if err != nil {
			clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanPatience)
			defer cancel()
			err = errors.Join(err, inst.Destroy(clean))
		}
	}()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := m.prepare(); err != nil {
		return nil, err
	}
	defer m.ready.Close()
	p, err := start()
	if err != nil {
		return nil, err
	}
	if err := m.awaitReady(ctx, p); err != nil {
		return nil, err
	}
	return inst, check()
}

// Group is the sandbox's control group.
func (m *Making) Group() Group { return Group{m.Place.Groups, m.record.Handle.ID} }

// IO is the folder of the agent's socket.
func (m *Making) IO() string { return filepath.Join(m.Dir, "io") }

// prepare makes what lies on the host: the folder with its record, the volume, the
// lists of names, the control group, and the socket that the agent rings.
func (m *Making) prepare() error {
	if err := os.MkdirAll(m.Place.Base, 0o700); err != nil {
		return sandbox.Errorf(sandbox.Denied, "make the folder for sockets: %w", err).WithHint("set CAISSON_RUNTIME_DIR to a short path of your own")
	}
	if err := os.Chmod(m.Place.Base, 0o700); err != nil {
		return fmt.Errorf("close the folder for sockets: %w", err)
	}
	if err := os.Mkdir(m.Dir, 0o700); err != nil {
		return fmt.Errorf("make a sandbox's folder: %w", err)
	}
	if err := writeRecord(m.Dir, m.record); err != nil {
		return err
	}
	for name, text := range Names(m.Spec.Identity) {
		if err := os.WriteFile(filepath.Join(m.Dir, name), []byte(text), 0o600); err != nil {
			return err
		}
		if err := os.Chmod(filepath.Join(m.Dir, name), 0o644); err != nil { // whatever the umask is
			return err
		}
	}
	if err := m.workspace(); err != nil {
		return err
	}
	if m.Place.Groups.Work() {
		if err := m.Group().Make(m.Limits); err != nil {
			return err
		}
	}
	return m.listen()
}

// workspace finds the workspace's folder of the host; the place of one in memory is
// made as the sandbox is.
func (m *Making) workspace() (err error) {
	switch w := m.Spec.Workspace; w.Kind {
	case sandbox.WorkspaceHost:
		m.Volume = w.Source
	case sandbox.WorkspaceVolume:
		name := w.Source
		if name == "" {
			name = OwnVolume(m.record.Handle.ID)
		}
		m.Volume, err = m.Place.makeVolume(name, m.record.Handle, m.Spec.Identity)
	default:
	}
	return err
}

func (m *Making) listen() (err error) {
	if err := os.Mkdir(m.IO(), 0o700); err != nil {
		return err
	}
	m.ready, err = net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(m.IO(), readyName), Net: "unix"})
	if err != nil {
		return fmt.Errorf("listen for the agent: %w", err)
	}
	return nil
}

// agentFiles is how many files the agent may have open, whatever a program may.
const agentFiles = 1024

// Release limits the process that is to become the agent, and writes down who that
// is. It may go on after it. Errors: Unavailable, where it has ended.
func (m *Making) Release(pid int) error {
	for which, most := range map[int]unix.Rlimit{
		unix.RLIMIT_NOFILE: {Cur: uint64(m.Limits.OpenFiles), Max: uint64(max(m.Limits.OpenFiles, agentFiles))},
		unix.RLIMIT_CORE:   {},
		unix.RLIMIT_FSIZE:  {Cur: uint64(m.Limits.FileSize), Max: uint64(m.Limits.FileSize)},
	} {
		if err := lower(pid, which, most); err != nil {
			return sandbox.Errorf(sandbox.Unavailable, "limit the sandbox, which may have ended: %w", err).WithHint("see: caisson doctor")
		}
	}
	start, err := startTime(pid)
	if err != nil {
		return sandbox.Errorf(sandbox.Unavailable, "find the sandbox: %w", err).WithHint("see: caisson doctor")
	}
	m.record.PID, m.record.Start = pid, start
	return writeRecord(m.Dir, m.record)
}

// lower sets a limit, and never above what this process has itself.
func lower(pid, which int, most unix.Rlimit) error {
	var own unix.Rlimit
	if err := unix.Getrlimit(which, &own); err != nil {
		return err
	}
	most.Cur, most.Max = min(most.Cur, own.Max), min(most.Max, own.Max)
	return unix.Prlimit(pid, which, &most, nil)
}

// PID is the agent's, as this host counts; 0 before it is known.
func (m *Making) PID() int { return m.record.PID }

// awaitReady waits for the agent's ring, or for the program's end.
func (m *Making) awaitReady(ctx context.Context, p *Process) error {
	ctx, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	rang := make(chan error, 1)
	go func() {
		c, err := m.ready.Accept()
		if err == nil {
			err = c.Close()
		}
		rang <- err
	}()
	select {
	case err := <-rang:
		if err != nil {
			return fmt.Errorf("wait for the agent: %w", err)
		}
		return nil
	case <-p.ended:
		return sandbox.Errorf(sandbox.Unavailable, "the agent did not start: %s", p.Said()).
			WithHint("is there a static caisson-agent for this machine? see: caisson doctor")
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.Canceled) {
			return ctx.Err()
		}
		return sandbox.Errorf(sandbox.TimedOut, "the agent did not answer within %s", readyPatience).WithHint("is this host overloaded?")
	}
}

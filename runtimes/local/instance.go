//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// Instance is one sandbox, or a folder or volume of one that is gone. It is safe
// for concurrent use.
type Instance struct {
	place Place

	mu     sync.Mutex
	handle runtimes.Handle // its id, name and kind stay as they are, and are read without the lock
}

// limited is an [Instance] with a control group.
type limited struct{ *Instance }

var (
	_ runtimes.Instance = (*Instance)(nil)
	_ runtimes.Pauser   = limited{}
	_ runtimes.Sampler  = limited{}
	_ runtimes.Claimer  = claimable{}
	_ runtimes.Claimer  = limitedClaimable{}
)

// Instance is the sandbox of a handle.
func (p Place) Instance(h runtimes.Handle) runtimes.Instance {
	i := &Instance{place: p, handle: h}
	switch {
	case p.Groups.Work() && p.Claims:
		return limitedClaimable{limited{i}}
	case p.Groups.Work():
		return limited{i}
	case p.Claims:
		return claimable{i}
	}
	return i
}

// Handle says how to find the sandbox again.
func (i *Instance) Handle() runtimes.Handle {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.handle
}

func (i *Instance) group() Group { return Group{i.place.Groups, i.handle.ID} }

// Dial connects to the agent's socket. Errors: Unavailable.
func (i *Instance) Dial(ctx context.Context) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, "unix", filepath.Join(i.place.Folder(i.handle.ID), "io", socketName))
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, sandbox.Errorf(sandbox.Unavailable, "connect to the agent of sandbox %s: %w", i.handle.ID.Short(), err)
	}
	return c, nil
}

// waitStep is how long a wait looks at a process before it looks at its context.
const waitStep = 100 // ms

// Wait returns once the agent has ended.
func (i *Instance) Wait(ctx context.Context) (sandbox.Exit, error) {
	exit := sandbox.Exit{Code: 137, Reason: sandbox.ReasonInfra, Cause: "the sandbox was removed"}
	rec, err := readRecord(i.place.Folder(i.handle.ID))
	if err != nil {
		return exit, nil //nolint:nilerr // without a record there is no sandbox
	}
	fd, err := unix.PidfdOpen(rec.PID, 0)
	if err == nil {
		defer unix.Close(fd)
	}
	for alive(rec.PID, rec.Start) {
		if ctx.Err() != nil {
			return exit, ctx.Err()
		}
		if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, waitStep); err != nil && !errors.Is(err, unix.EINTR) {
			return exit, fmt.Errorf("wait for the sandbox: %w", err)
		}
	}
	if _, err := os.Stat(i.place.Folder(i.handle.ID)); err == nil {
		exit.Cause = "the sandbox's agent has ended, or was killed"
	}
	return exit, nil
}

// alive reports whether the process is there that was started then.
func alive(pid int, start string) bool {
	if pid <= 0 {
		return false
	}
	now, err := startTime(pid)
	return err == nil && now == start
}

// startTime is when a process started, in clock ticks since boot: field 22 of its
// stat, counted behind the name, which may hold anything. A zombie has ended.
func startTime(pid int) (string, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", err
	}
	const startField = 22 - 3 // the first field behind the name is the third
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(fields) <= startField || fields[0] == "Z" || fields[0] == "X" {
		return "", fmt.Errorf("process %d has ended", pid)
	}
	return fields[startField], nil
}

// Destroy kills all that is in the sandbox and removes what was made for it, or
// the volume that the handle stands for.
func (i *Instance) Destroy(ctx context.Context) error {
	if i.handle.Kind == runtimes.KindVolume {
		return os.RemoveAll(i.place.volume(i.handle.Name))
	}
	if rec, err := readRecord(i.place.Folder(i.handle.ID)); err == nil && alive(rec.PID, rec.Start) {
		// The end of a namespace's first process is the end of all in it.
		if err := unix.Kill(rec.PID, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("end the sandbox: %w", err)
		}
		if i.place.Groups.Work() {
			_ = i.group().freeze(ctx, false) // what is frozen cannot die; where that fails, it is seen below
		}
		if _, err := i.Wait(ctx); err != nil {
			return err
		}
	}
	if err := i.group().remove(ctx); err != nil {
		return err
	}
	// The record goes last, so that what is left can be found.
	dir := i.place.Folder(i.handle.ID)
	list, _ := os.ReadDir(dir) // nothing is there where it is gone
	var errs []error
	for _, e := range list {
		if e.Name() != recordName {
			errs = append(errs, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(append(errs, os.RemoveAll(i.place.volume(OwnVolume(i.handle.ID))), os.RemoveAll(dir))...)
}

// Pause freezes every process of the sandbox.
func (i limited) Pause(ctx context.Context) error { return i.group().freeze(ctx, true) }

// Resume lets them go on.
func (i limited) Resume(ctx context.Context) error { return i.group().freeze(ctx, false) }

// Sample reads the counters of the sandbox's control group.
func (i limited) Sample(context.Context) (sandbox.Sample, error) { return i.group().sample() }

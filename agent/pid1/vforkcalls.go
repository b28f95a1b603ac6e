//go:build linux

package pid1

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The kernel hands the filter of starts all six registers of a system call, of which
// execve uses three. The others carry words that only the agent knows: by them the
// filter lets pass the one start that the agent itself makes for each exec, which was
// judged before. Nobody can be asked about that one: while it happens, the agent's
// memory is the child's too, and a stop of the agent's runtime would wait for it.
// Package syscall cannot set these registers, and so there is a fork of our own.

// vforkCalls makes a child that makes n system calls, and stops at the first that fails.
// It returns once the last, an execve, has made the child another program, or once the
// child has ended: then left tells how many calls were left, and the errno.
//
//go:noescape
func vforkCalls(ops *[7]uintptr, n int, left *[2]uintptr) (pid int, errno uintptr)

// born are the system calls that make a program of a child. What their arguments
// point to is pinned until free.
type born struct {
	calls []([7]uintptr)
	pins  runtime.Pinner
}

func (b *born) call(nr uintptr, args ...uintptr) {
	var c [7]uintptr
	c[0] = nr
	copy(c[1:], args)
	b.calls = append(b.calls, c)
}

func pinned[T any](b *born, v *T) uintptr {
	b.pins.Pin(v)
	return uintptr(unsafe.Pointer(v))
}

func (b *born) text(s string) (*byte, error) {
	p, err := syscall.BytePtrFromString(s)
	if err == nil {
		b.pins.Pin(p)
	}
	return p, err
}

// list is an array of texts with nil behind it.
func (b *born) list(texts []string) (uintptr, error) {
	all := make([]*byte, len(texts)+1)
	for i, s := range texts {
		p, err := b.text(s)
		if err != nil {
			return 0, err
		}
		all[i] = p
	}
	return pinned(b, &all[0]), nil
}

// kernelSigaction is the kernel's struct of that name: a handler, flags, a restorer
// and a mask. All zero is the default.
type kernelSigaction [4]uint64

const signals = 64

// user makes the child one that keeps no capability but those named.
func (b *born) user(uid uint32, keep []uintptr) {
	if keep == nil {
		b.call(unix.SYS_SETUID, uintptr(uid))
		return
	}
	var sets [2]unix.CapUserData
	for _, c := range keep {
		of, bit := &sets[c/32], uint32(1)<<(c%32)
		of.Effective, of.Permitted, of.Inheritable = of.Effective|bit, of.Permitted|bit, of.Inheritable|bit
	}
	b.call(unix.SYS_PRCTL, unix.PR_SET_KEEPCAPS, 1, 0, 0, 0)
	b.call(unix.SYS_SETUID, uintptr(uid))
	b.call(unix.SYS_CAPSET, pinned(b, &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}), pinned(b, &sets[0]))
	for _, c := range keep {
		b.call(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, c, 0, 0)
	}
}

// program is how a child becomes what an order asks for. mask is what signals it is to
// have blocked.
func (b *born) program(o order, s *spawner, mask *uint64) error {
	sys := o.attr.Sys
	if sys.Setsid {
		b.call(unix.SYS_SETSID)
	}
	if c := sys.Credential; c != nil {
		groups := append([]uint32{}, c.Groups...)
		groups = append(groups, 0) // so that there is one to point to
		b.call(unix.SYS_SETGROUPS, uintptr(len(c.Groups)), pinned(b, &groups[0]))
		b.call(unix.SYS_SETGID, uintptr(c.Gid))
		b.user(c.Uid, sys.AmbientCaps)
	}
	dir, err := b.text(o.attr.Dir)
	if err != nil {
		return err
	}
	b.call(unix.SYS_CHDIR, uintptr(unsafe.Pointer(dir)))
	for i, fd := range o.attr.Files {
		if int(fd) < len(o.attr.Files) { // it would be overwritten before it is read
			return unix.EBADF
		}
		b.call(unix.SYS_DUP3, fd, uintptr(i), 0)
	}
	if sys.Setctty {
		b.call(unix.SYS_IOCTL, 0, unix.TIOCSCTTY, 1)
	}
	if s.files != nil {
		b.call(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_NOFILE, pinned(b, s.files), 0)
	}
	if s.cage != nil && sys.AmbientCaps == nil {
		b.call(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(s.cage.ruleset), 0)
	}
	plain := pinned(b, new(kernelSigaction))
	for n := uintptr(1); n <= signals; n++ {
		if n != uintptr(unix.SIGKILL) && n != uintptr(unix.SIGSTOP) {
			b.call(unix.SYS_RT_SIGACTION, n, plain, 0, signals/8)
		}
	}
	b.call(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, pinned(b, mask), 0, signals/8)
	file, err := b.text(o.binary)
	if err != nil {
		return err
	}
	argv, err := b.list(o.argv)
	if err != nil {
		return err
	}
	env, err := b.list(o.attr.Env)
	if err != nil {
		return err
	}
	b.call(unix.SYS_EXECVE, uintptr(unsafe.Pointer(file)), argv, env, uintptr(s.key[0]), uintptr(s.key[1]), uintptr(s.key[2]))
	return nil
}

// forkJudged is [syscall.ForkExec] for a thread whose starts are seen: what it starts
// is not, and what that starts is.
func (s *spawner) forkJudged(binary string, argv []string, attr *syscall.ProcAttr) (int, error) {
	o := order{binary: binary, argv: argv, attr: attr}
	var b born
	defer b.pins.Unpin()
	all, before := ^uint64(0), uint64(0)
	left := new([2]uintptr)
	b.pins.Pin(left)
	b.pins.Pin(&before)
	if err := b.program(o, s, &before); err != nil {
		return 0, err
	}
	syscall.ForkLock.Lock() // no file is open that a child would keep by mistake
	defer syscall.ForkLock.Unlock()
	// A signal that came to the child before it is another program would run a
	// handler of ours in our memory.
	mask := func(how uintptr, set, old *uint64) {
		_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, how, uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(old)), signals/8, 0, 0)
	}
	mask(unix.SIG_SETMASK, &all, &before)
	pid, errno := vforkCalls(&b.calls[0], len(b.calls), left)
	mask(unix.SIG_SETMASK, &before, nil)
	if errno != 0 {
		return 0, syscall.Errno(errno)
	}
	if left[1] != 0 {
		var st unix.WaitStatus
		for {
			if _, err := unix.Wait4(pid, &st, 0, nil); err != unix.EINTR {
				break
			}
		}
		return 0, syscall.Errno(left[1])
	}
	return pid, nil
}

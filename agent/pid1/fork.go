//go:build linux

package pid1

import (
	"errors"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What package syscall forks by. It has no place for a call between fork and execution,
// which rules of Landlock need, so that the same is done here. Go holds these names
// stable for programs that do so; with one that does not, this does not build.
//
//go:linkname beforeFork syscall.runtime_BeforeFork
func beforeFork()

//go:linkname afterFork syscall.runtime_AfterFork
func afterFork()

//go:linkname afterForkInChild syscall.runtime_AfterForkInChild
func afterForkInChild()

// rawVfork is clone, by flags alone, as vfork needs it. It is in assembly.
//
//go:noescape
func rawVfork(flags uintptr) (pid uintptr, errno syscall.Errno)

// birth is a process that is being started. The child shares its parent's memory until
// it executes its program, and so allocates nothing.
type birth struct {
	cage      *cage
	binary    *byte
	argv, env **byte
	dir       *byte
	files     [3]uintptr // all above 2
	terminal  bool       // its standard input becomes its terminal
	uid       uintptr
	groups    []uint32
	failed    syscall.Errno // what the child met
}

// forkExec starts a process as [syscall.ForkExec] does, of what this package asks for,
// and puts it into the cage first.
func (c *cage) forkExec(binary string, argv []string, attr *syscall.ProcAttr) (int, error) {
	b := &birth{cage: c, terminal: attr.Sys.Setctty, uid: uintptr(attr.Sys.Credential.Uid), groups: attr.Sys.Credential.Groups}
	if err := b.texts(binary, argv, attr); err != nil {
		return 0, err
	}
	defer b.close()
	if err := b.streams(attr.Files); err != nil {
		return 0, err
	}
	syscall.ForkLock.Lock()
	pid, errno := b.vfork()
	afterFork()
	syscall.ForkLock.Unlock()
	if errno != 0 {
		return 0, errno
	}
	if b.failed != 0 {
		var err error = unix.EINTR
		for errors.Is(err, unix.EINTR) {
			_, err = unix.Wait4(int(pid), nil, 0, nil) // the reaper may be faster
		}
		return 0, b.failed
	}
	return int(pid), nil
}

func (b *birth) texts(binary string, argv []string, attr *syscall.ProcAttr) (err error) {
	if b.binary, err = syscall.BytePtrFromString(binary); err != nil {
		return err
	}
	if b.dir, err = syscall.BytePtrFromString(attr.Dir); err != nil {
		return err
	}
	args, err := syscall.SlicePtrFromStrings(argv)
	if err != nil {
		return err
	}
	env, err := syscall.SlicePtrFromStrings(attr.Env)
	b.argv, b.env = &args[0], &env[0]
	return err
}

// streams takes copies of the process's streams, so that none is in another's place.
func (b *birth) streams(files []uintptr) error {
	for i, fd := range files {
		n, err := unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			return err
		}
		b.files[i] = uintptr(n)
	}
	return nil
}

func (b *birth) close() {
	for _, fd := range b.files {
		if fd != 0 {
			_ = unix.Close(int(fd)) // the process has its own
		}
	}
}

// vfork makes the process. Its frame is the child's from then on: the parent leaves it
// at once, and does the rest elsewhere.
//
//go:noinline
//go:norace
//go:nocheckptr
func (b *birth) vfork() (pid uintptr, errno syscall.Errno) {
	var i, fd uintptr
	var groups unsafe.Pointer
	if len(b.groups) > 0 {
		groups = unsafe.Pointer(&b.groups[0])
	}
	beforeFork()
	if pid, errno = rawVfork(uintptr(unix.SIGCHLD) | unix.CLONE_VFORK | unix.CLONE_VM); errno != 0 || pid != 0 {
		return pid, errno
	}
	if _, _, errno = syscall.RawSyscall(unix.SYS_SETSID, 0, 0, 0); errno != 0 {
		goto failed
	}
	afterForkInChild()
	if _, _, errno = syscall.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(b.groups)), uintptr(groups), 0); errno != 0 {
		goto failed
	}
	if _, _, errno = syscall.RawSyscall(unix.SYS_SETGID, b.uid, 0, 0); errno != 0 {
		goto failed
	}
	if _, _, errno = syscall.RawSyscall(unix.SYS_SETUID, b.uid, 0, 0); errno != 0 {
		goto failed
	}
	if _, _, errno = syscall.RawSyscall(unix.SYS_CHDIR, uintptr(unsafe.Pointer(b.dir)), 0, 0); errno != 0 {
		goto failed
	}
	for i = 0; i < uintptr(len(b.files)); i++ {
		fd = b.files[i]
		if _, _, errno = syscall.RawSyscall(unix.SYS_DUP3, fd, i, 0); errno != 0 {
			goto failed
		}
	}
	if b.terminal {
		if _, _, errno = syscall.RawSyscall(unix.SYS_IOCTL, 0, unix.TIOCSCTTY, 1); errno != 0 {
			goto failed
		}
	}
	if _, _, errno = syscall.RawSyscall6(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_NOFILE, uintptr(unsafe.Pointer(&b.cage.files)), 0, 0, 0); errno != 0 {
		goto failed
	}
	if _, _, errno = syscall.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(b.cage.ruleset), 0, 0); errno != 0 {
		goto failed
	}
	_, _, errno = syscall.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(b.binary)), uintptr(unsafe.Pointer(b.argv)), uintptr(unsafe.Pointer(b.env)))
failed:
	b.failed = errno
	for {
		_, _, _ = syscall.RawSyscall(unix.SYS_EXIT, 253, 0, 0)
	}
}

package harden

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Versions of Landlock: the oldest that lets files be moved between folders, and
// the first that holds the length of files too.
const (
	oldest    = 2 // Linux 5.19
	truncates = 3 // Linux 6.2
)

// Rights to files. What reads and what runs is not held: the root is read-only, and
// a program may run what it has written.
const (
	toFile = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	toDir  = toFile | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_DIR |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER
	held = toDir | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
)

// kernels are folders in which every program writes files, and makes none: devices
// such as /dev/null and terminals, and what a process says of itself. What else lies
// there is closed by permissions, mounts, and by Landlock's word about processes.
var kernels = []string{"/dev", "/proc"}

// queues is where message queues of POSIX lie: to be opened by their names there is
// to have room for them.
const queues = "/dev/mqueue"

// version is that of the kernel's Landlock; 0 is none.
func version() int {
	v, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// Works reports why the calling process cannot be held here, or nil.
func Works() error {
	if _, err := Filter(); err != nil {
		return err
	}
	if v := version(); v < oldest {
		return fmt.Errorf("the kernel has no Landlock of Linux 5.19 or newer (version %d, of which %d is the least)", v, oldest)
	}
	return nil
}

// Ruleset is what [Restrict] holds a thread to: it writes in the first folders, in what
// there is in those of the second list, such as pipes, as permissions say, and in the
// kernel's own. A folder that is not there, or out of reach, is left out. The
// descriptor is the caller's, and closed when a program is executed.
func Ruleset(writable, open []string) (fd int, err error) {
	if err := Works(); err != nil {
		return -1, err
	}
	mask := uint64(held)
	if version() < truncates {
		mask &^= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	attr := unix.LandlockRulesetAttr{Access_fs: mask}
	r, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr.Access_fs), 0)
	if errno != 0 {
		return -1, fmt.Errorf("make rules of Landlock: %w", errno)
	}
	for _, dir := range slices.Concat(writable, []string{queues}) {
		err = errors.Join(err, allow(int(r), dir, toDir&mask))
	}
	for _, dir := range slices.Concat(open, kernels) {
		err = errors.Join(err, allow(int(r), dir, toFile&mask))
	}
	if err != nil {
		return -1, errors.Join(err, unix.Close(int(r)))
	}
	return int(r), nil
}

// allow adds a rule: these rights, below one path.
func allow(ruleset int, path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.EACCES):
		return nil
	case err != nil:
		return fmt.Errorf("open %s: %w", path, err)
	}
	defer func() { _ = unix.Close(fd) }() // it is a path alone
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("look at %s: %w", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= toFile // the kernel takes no others for it
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	if _, _, errno := unix.RawSyscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&attr)), 0, 0, 0); errno != 0 {
		return fmt.Errorf("allow to write in %s: %w", path, errno)
	}
	return nil
}

// Restrict holds the calling thread, and what it starts, to a ruleset, for good. It
// also keeps them from looking into processes that are not so held, or by another
// call, and from tracing those. The thread must not be able to gain privileges.
func Restrict(ruleset int) error {
	if _, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(ruleset), 0, 0); errno != 0 {
		return fmt.Errorf("hold to the rules of Landlock: %w", errno)
	}
	return nil
}

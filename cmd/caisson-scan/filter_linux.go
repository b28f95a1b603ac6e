package main

import "golang.org/x/sys/unix"

// allowed is what the Go runtime, malloc and reading and writing need.
var allowed = append([]uint32{
	unix.SYS_READ, unix.SYS_WRITE, unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_CLOSE, unix.SYS_FSTAT, unix.SYS_LSEEK,
	unix.SYS_MMAP, unix.SYS_MUNMAP, unix.SYS_MREMAP, unix.SYS_MPROTECT, unix.SYS_MADVISE, unix.SYS_MINCORE, unix.SYS_BRK,
	unix.SYS_FUTEX, unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY, unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP,
	unix.SYS_CLOCK_GETTIME, unix.SYS_GETTIMEOFDAY, unix.SYS_GETPID, unix.SYS_GETTID,
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK, unix.SYS_RESTART_SYSCALL,
	unix.SYS_SET_ROBUST_LIST, unix.SYS_SET_TID_ADDRESS, unix.SYS_RSEQ, unix.SYS_MEMBARRIER, unix.SYS_GETRANDOM,
	unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EVENTFD2, unix.SYS_PIPE2, unix.SYS_PPOLL,
	unix.SYS_TIMER_CREATE, unix.SYS_TIMER_SETTIME, unix.SYS_TIMER_DELETE, unix.SYS_SETITIMER,
	unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
}, archAllowed...)

// fatal are system calls that nothing here makes, unless it was taken over.
var fatal = []uint32{unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_PTRACE, unix.SYS_SOCKET, unix.SYS_CONNECT, unix.SYS_BPF}

// Offsets in struct seccomp_data.
const (
	offNr   = 0
	offArch = 4
	offArg0 = 16
	offArg1 = 24
)

func stmt(code uint16, k uint32) unix.SockFilter { return unix.SockFilter{Code: code, K: k} }

func jump(code uint16, k uint32, jt, jf uint8) unix.SockFilter {
	return unix.SockFilter{Code: code, Jt: jt, Jf: jf, K: k}
}

// program is the filter in BPF. clone is allowed for threads only; clone3
// hides its flags from filters, so that it "does not exist", and the C library
// falls back to clone. A descriptor's flags may be read (fcntl), which is how
// Go looks at its standard streams; not set, since an owner of a descriptor gets
// signals. The process, which is pid, may send signals to itself alone.
func program(pid uint32) []unix.SockFilter {
	const (
		load  = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		above = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
		set   = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
		ret   = unix.BPF_RET | unix.BPF_K
		allow = unix.SECCOMP_RET_ALLOW
		kill  = unix.SECCOMP_RET_KILL_PROCESS
		eperm = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
		none  = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	)
	p := []unix.SockFilter{
		stmt(load, offArch), jump(equal, auditArch, 1, 0), stmt(ret, kill),
		stmt(load, offNr), jump(above, 0x40000000, 0, 1), stmt(ret, kill), // x32
		jump(equal, unix.SYS_CLONE3, 0, 1), stmt(ret, none),
		jump(equal, unix.SYS_CLONE, 0, 4), stmt(load, offArg0), jump(set, unix.CLONE_THREAD, 0, 1), stmt(ret, allow), stmt(ret, eperm),
		jump(equal, unix.SYS_TGKILL, 0, 4), stmt(load, offArg0), jump(equal, pid, 0, 1), stmt(ret, allow), stmt(ret, kill),
		jump(equal, unix.SYS_FCNTL, 0, 5), stmt(load, offArg1), jump(equal, unix.F_GETFD, 1, 0), jump(equal, unix.F_GETFL, 0, 1), stmt(ret, allow), stmt(ret, eperm),
	}
	for _, nr := range allowed {
		p = append(p, jump(equal, nr, 0, 1), stmt(ret, allow))
	}
	for _, nr := range fatal {
		p = append(p, jump(equal, nr, 0, 1), stmt(ret, kill))
	}
	return append(p, stmt(ret, eperm))
}

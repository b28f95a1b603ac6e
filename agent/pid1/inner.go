//go:build linux

package pid1

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/wire"
	"github.com/caisson-dev/caisson/internal/harden"
)

// Inner is the first process of an exec's own PID namespace: where a sandbox has
// one user, who could signal the agent, each exec gets one, and the agent stays
// outside. It closes what is the agent's, gives up what it may, starts the exec's
// program, hands on signals, says how the program ended, and ends with the last
// process beside it. Nothing that runs there can end it or look into it.
//
// It hears and speaks over one socket, [innerSocket]: a byte is a signal, 128 more
// says that it is for everybody; what it says is [begun] and then [ended], as JSON.
type inner struct {
	Exec   string   // the exec's id, whose staged files are seen
	Binary string   // what is run
	Argv   []string // its own
	Env    []string
	Dir    string
	Filter string // the file of the filter of system calls, "" for none
	Memory int64  // bytes of data that one process may have, 0 is no limit
	PIDs   int64  // processes of the sandbox, the agent's threads among them; 0 is no limit
	// Writable are the folders that it may write in; none does not harden it.
	Writable []string
}

// innerSocket is the descriptor of the socket to the agent.
const innerSocket = 3

// begun is how the start went.
type begun struct {
	Errno unix.Errno `json:"errno,omitempty"` // of the program's start
	Error string     `json:"error,omitempty"` // of what came before it
	OwnUS int64      `json:"own_us"`          // processor time of the inner process itself
}

// ended is how the program ended.
type ended struct {
	Status uint32 `json:"status"`
	CPUUS  int64  `json:"cpu_us"`
	MaxRSS int64  `json:"max_rss"` // in units of 1024 bytes
}

// Inner runs the calling process as the first of an exec's namespace, and returns
// once nothing runs there any more. argv is what [inner.argv] made.
func Inner(argv []string) error {
	runtime.LockOSThread() // what it gives up, its children are born without
	to := os.NewFile(innerSocket, "agent")
	unix.CloseOnExec(innerSocket)
	say := json.NewEncoder(to)
	var in inner
	err := in.parse(argv)
	if err == nil {
		err = in.enclose()
	}
	if err != nil {
		return errors.Join(err, say.Encode(begun{Error: err.Error()}))
	}
	pid, err := in.start()
	var errno unix.Errno
	if err != nil && !errors.As(err, &errno) {
		errno = unix.EINVAL
	}
	if told := say.Encode(begun{Errno: errno, OwnUS: ownTime()}); told != nil || err != nil {
		return errors.Join(err, told)
	}
	go obeySignals(to, pid)
	return reapAll(pid, say)
}

// argv is the inner process's command line.
func (in *inner) argv() []string {
	head := []string{"caisson-agent", "inner", in.Exec, in.Binary, in.Dir, in.Filter,
		strconv.FormatInt(in.Memory, 10), strconv.FormatInt(in.PIDs, 10), strconv.Itoa(len(in.Writable)), strconv.Itoa(len(in.Env))}
	return slices.Concat(head, in.Writable, in.Env, in.Argv)
}

func (in *inner) parse(argv []string) error {
	const head = 10
	if len(argv) < head {
		return errors.New("too few arguments")
	}
	in.Exec, in.Binary, in.Dir, in.Filter = argv[2], argv[3], argv[4], argv[5]
	memory, err := strconv.ParseInt(argv[6], 10, 64)
	pids, err2 := strconv.ParseInt(argv[7], 10, 64)
	folders, err3 := strconv.Atoi(argv[8])
	vars, err4 := strconv.Atoi(argv[9])
	rest := argv[head:]
	if err = errors.Join(err, err2, err3, err4); err != nil || folders < 0 || vars < 0 || folders > len(rest) || vars >= len(rest)-folders {
		return fmt.Errorf("not an inner process's arguments: %w", err)
	}
	in.Memory, in.PIDs = memory, pids
	in.Writable, in.Env, in.Argv = rest[:folders], rest[folders:folders+vars], rest[folders+vars:]
	return nil
}

// enclose leaves what is the agent's and other execs' out of reach, and gives up
// every capability.
func (in *inner) enclose() error {
	if unix.Getpid() != 1 {
		return errors.New("it is not the first process of its namespace")
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("set undumpable: %w", err)
	}
	signal.Notify(make(chan os.Signal, 1)) // none of them does anything, and no child inherits that
	unix.Umask(0o022)
	var filter []byte
	if in.Filter != "" {
		var err error
		if filter, err = os.ReadFile(in.Filter); err != nil {
			return err
		}
	}
	if err := in.mounts(); err != nil {
		return err
	}
	if err := in.limit(); err != nil {
		return err
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	if in.Filter != "" {
		if err := harden.SetFilterOfAll(filter); err != nil {
			return err
		}
	}
	return in.harden()
}

// harden holds the program, and all that it starts, to what it may do.
func (in *inner) harden() error {
	if len(in.Writable) == 0 {
		return nil
	}
	ruleset, err := harden.Ruleset(in.Writable, pipes) // of folders as the program sees them
	if err != nil {
		return err
	}
	program, err := harden.Filter()
	if err != nil {
		return err
	}
	// The filter comes first: it sees to it that no privileges are gained, without
	// which there are no rules.
	return errors.Join(harden.SetFilterOfAll(program), harden.Restrict(ruleset), unix.Close(ruleset))
}

// mounts has the exec see its own processes, and of the agent's folder only what
// is staged for it, which it cannot write.
func (in *inner) mounts() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("leave the sandbox's mounts: %w", err)
	}
	dir := path.Join(wire.StageDir, in.Exec)
	staged, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("open the staged files: %w", err)
	}
	const flags = unix.MS_NOSUID | unix.MS_NODEV
	if err := unix.Mount("tmpfs", wire.RunDir, "tmpfs", flags, "size=64k,mode=0711"); err != nil {
		return fmt.Errorf("close the agent's folder: %w", err)
	}
	if staged >= 0 {
		if err := os.MkdirAll(dir, 0o711); err != nil {
			return err
		}
		if err := unix.Mount("/proc/self/fd/"+strconv.Itoa(staged), dir, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("show the staged files: %w", err)
		}
		if err := unix.Mount("", dir, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|flags, ""); err != nil {
			return fmt.Errorf("show the staged files: %w", err)
		}
		_ = unix.Close(staged) // it was a path alone
	}
	if err := unix.Mount("", wire.RunDir, "", unix.MS_REMOUNT|unix.MS_RDONLY|flags, ""); err != nil {
		return fmt.Errorf("close the agent's folder: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", flags|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	return nil
}

// spareData is what the inner process itself may still map.
const spareData = 64 << 20

// limit sets what each process inherits. It cannot be raised again.
func (in *inner) limit() error {
	lower := func(which int, most uint64) error {
		var now unix.Rlimit
		if err := unix.Getrlimit(which, &now); err != nil {
			return err
		}
		most = min(most, now.Max)
		return unix.Setrlimit(which, &unix.Rlimit{Cur: most, Max: most})
	}
	if in.PIDs > 0 {
		if err := lower(unix.RLIMIT_NPROC, uint64(in.PIDs)); err != nil {
			return fmt.Errorf("limit processes: %w", err)
		}
	}
	if in.Memory > 0 {
		if err := lower(unix.RLIMIT_DATA, uint64(max(in.Memory, ownData()+spareData))); err != nil {
			return fmt.Errorf("limit memory: %w", err)
		}
	}
	return nil
}

// ownData is how much data the process has mapped, in bytes.
func ownData() int64 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	return fieldOf(b, "VmData") << 10
}

// dropCapabilities gives all of them up, in every thread.
func dropCapabilities() error {
	header := struct {
		version uint32
		pid     int32
	}{version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	_, _, errno := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none)), 0)
	if errno != 0 {
		return fmt.Errorf("give up capabilities: %w", errno)
	}
	return nil
}

// start starts the program with the exec's streams, which are its alone from then on.
func (in *inner) start() (int, error) {
	_, notTerminal := unix.IoctlGetTermios(0, unix.TCGETS)
	pid, err := syscall.ForkExec(in.Binary, in.Argv, &syscall.ProcAttr{
		Dir: in.Dir, Env: in.Env, Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true, Setctty: notTerminal == nil},
	})
	if err != nil {
		return 0, err
	}
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	for fd := 0; fd < 3 && err == nil; fd++ {
		err = unix.Dup3(null, fd, 0)
	}
	return pid, err
}

// obeySignals hands on the agent's signals. A process that has ended needs none.
func obeySignals(from io.Reader, pid int) {
	buf := make([]byte, 1)
	for {
		if _, err := from.Read(buf); err != nil {
			return
		}
		if buf[0]&toAll != 0 {
			_ = unix.Kill(-1, unix.Signal(buf[0]&^toAll))
			continue
		}
		_ = unix.Kill(pid, unix.Signal(buf[0]))
	}
}

// toAll marks a signal that is for all processes of an exec.
const toAll = 128

// reapAll waits for every process until there is none, and says how the program
// ended once it has. A zombie is taken at once, and its number is free then: where
// that is the program's, [obeySignals] could meet another, which is the exec's too.
func reapAll(pid int, say *json.Encoder) error {
	for {
		var ws unix.WaitStatus
		var ru unix.Rusage
		got, err := unix.Wait4(-1, &ws, 0, &ru)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ECHILD):
			return nil
		case err != nil:
			return err
		case got == pid:
			if err := say.Encode(ended{Status: uint32(ws), CPUUS: cpuTime(&ru).Microseconds(), MaxRSS: ru.Maxrss}); err != nil {
				return err
			}
		}
	}
}

// ownTime is the processor time of the calling process, in microseconds.
func ownTime() int64 {
	var ru unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &ru) != nil {
		return 0
	}
	return cpuTime(&ru).Microseconds()
}

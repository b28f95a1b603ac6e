//go:build linux

package pid1

import (
	"bytes"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// mqueueDir shows the POSIX message queues of the sandbox.
const mqueueDir = "/dev/mqueue"

// ipcKinds are the System V objects: where the kernel lists them, and how one is
// removed.
var ipcKinds = []struct {
	list   string
	remove func(id uintptr) (r1, r2 uintptr, err unix.Errno)
}{
	{"/proc/sysvipc/shm", func(id uintptr) (uintptr, uintptr, unix.Errno) {
		return unix.RawSyscall(unix.SYS_SHMCTL, id, ipcRemove, 0)
	}},
	{"/proc/sysvipc/sem", func(id uintptr) (uintptr, uintptr, unix.Errno) {
		return unix.RawSyscall(unix.SYS_SEMCTL, id, 0, ipcRemove)
	}},
	{"/proc/sysvipc/msg", func(id uintptr) (uintptr, uintptr, unix.Errno) {
		return unix.RawSyscall(unix.SYS_MSGCTL, id, ipcRemove, 0)
	}},
}

const ipcRemove = 0 // the kernel's IPC_RMID

// ipcObject is a System V object by its id, and who made it.
type ipcObject struct{ id, maker int }

// sweepIPC removes shared memory, semaphores and message queues that execs have
// left, which belong to no process and hold memory. Where something runs beside
// ex, or is about to, they may be in use and stay. The lock keeps out an exec
// that begins meanwhile: it registers before it forks.
func (a *Agent) sweepIPC(ex *exec) {
	lists, queues, n := listIPC()
	if n == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, other := range a.execs {
		if other != ex && !other.ended {
			return
		}
	}
	if !a.childless() {
		return
	}
	for _, q := range queues {
		_ = os.Remove(path.Join(mqueueDir, q.Name())) // the folder is ours; one that stays is bounded by the kernel
	}
	for _, uid := range []int{a.claim.UID, a.claim.RunnerUID} {
		actingAs(uid, func() {
			for i, kind := range ipcKinds {
				for _, o := range lists[i] {
					if o.maker == uid {
						_, _, _ = kind.remove(uintptr(o.id)) // its maker may
					}
				}
			}
		})
	}
}

// listIPC is what there is of each kind, of queues, and in all.
func listIPC() (lists [3][]ipcObject, queues []os.DirEntry, n int) {
	for i, kind := range ipcKinds {
		b, err := os.ReadFile(kind.list)
		if err != nil {
			continue // a kernel without them
		}
		lists[i] = parseIPC(b)
		n += len(lists[i])
	}
	queues, _ = os.ReadDir(mqueueDir) // a kernel without them
	return lists, queues, n + len(queues)
}

// actingAs runs do with a user's effective uid, and without the agent's powers,
// on a thread that has it for that long. A process of that user can neither
// signal nor trace the thread, which keeps its real and saved uid.
func actingAs(uid int, do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		own := unix.Geteuid()
		set := func(id int) bool {
			_, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), uintptr(id), ^uintptr(0))
			return errno == 0
		}
		if !set(uid) {
			runtime.UnlockOSThread()
			return
		}
		do()
		if set(own) {
			runtime.UnlockOSThread() // otherwise the thread ends here
		}
	}()
	<-done
}

// parseIPC reads a list of the kernel's. Its first line names the columns, of
// which the second is the id.
func parseIPC(b []byte) []ipcObject {
	head, rest, _ := bytes.Cut(b, []byte{'\n'})
	maker := -1
	for i, name := range strings.Fields(string(head)) {
		if name == "cuid" {
			maker = i
		}
	}
	if maker < 0 {
		return nil
	}
	var out []ipcObject
	for line := range strings.Lines(string(rest)) {
		f := strings.Fields(line)
		if len(f) <= maker {
			continue
		}
		id, err := strconv.Atoi(f[1])
		uid, err2 := strconv.Atoi(f[maker])
		if err == nil && err2 == nil {
			out = append(out, ipcObject{id, uid})
		}
	}
	return out
}

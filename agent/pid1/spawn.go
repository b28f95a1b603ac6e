//go:build linux

package pid1

import (
	"errors"
	"fmt"
	"os"
	"path"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Scores that steer the kernel when memory is short: whatever an exec started
// goes before the agent. The agent raises its own for the moment of the fork,
// since a child inherits it, and takes it back, which needs no privilege down
// to what it was born with.
const childOOMScore = "500"

// childNice is how much whatever an exec started stands back behind the agent.
// It weighs within the sandbox's own share of the processor only: there the
// agent would otherwise wait its turn behind a hundred busy processes before it
// could end them. A child cannot take it back.
const childNice = 10

// spawner starts processes, one at a time, from a thread of its own: a child is
// born with its thread's nice value, which the agent could raise for a moment
// but not lower again.
type spawner struct {
	reaper   *reaper
	orders   chan order
	oomScore *os.File // nil where it cannot be written
	ownScore []byte
	cage     *cage        // that programs are put in, where their sandbox is hardened; set once, before anything runs
	key      *[3]uint64   // of the filter that has starts seen; nil without
	files    *unix.Rlimit // of open files, for what it starts then
}

func newSpawner(r *reaper) *spawner {
	s := &spawner{reaper: r, orders: make(chan order)}
	own, err := os.ReadFile("/proc/self/oom_score_adj")
	if err != nil {
		return s
	}
	f, err := os.OpenFile("/proc/self/oom_score_adj", os.O_WRONLY, 0)
	if err != nil {
		return s
	}
	s.oomScore, s.ownScore = f, own
	return s
}

// order asks the spawner's thread for a process, or to do something itself.
type order struct {
	do     func() error
	ex     *exec
	binary string
	argv   []string
	attr   *syscall.ProcAttr
	done   chan error
}

// run carries out orders for ever.
func (s *spawner) run() {
	runtime.LockOSThread()
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, childNice) // without it the agent is slower to answer, no more
	for o := range s.orders {
		if o.do != nil {
			o.done <- o.do()
			continue
		}
		o.done <- s.fork(o)
	}
}

// on calls do on the spawner's thread: what that is held to, all that it starts is.
func (s *spawner) on(do func() error) error {
	o := order{do: do, done: make(chan error, 1)}
	s.orders <- o
	return <-o.done
}

// start has a process started and registered; ex then has its pid.
func (s *spawner) start(ex *exec, binary string, argv []string, attr *syscall.ProcAttr) error {
	o := order{ex: ex, binary: binary, argv: argv, attr: attr, done: make(chan error, 1)}
	s.orders <- o
	return <-o.done
}

func (s *spawner) fork(o order) error {
	r := s.reaper
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.oomScore != nil {
		if _, err := s.oomScore.WriteAt([]byte(childOOMScore), 0); err == nil {
			defer func() { _, _ = s.oomScore.WriteAt(s.ownScore, 0) }() // cannot fail where raising did not
		}
	}
	start := syscall.ForkExec
	switch {
	case s.key != nil:
		start = s.forkJudged
	case s.cage != nil && o.attr.Sys.AmbientCaps == nil: // what has some is ours, and sees to its children
		start = s.cage.forkExec
	}
	pid, err := start(o.binary, o.argv, o.attr)
	if err == nil && o.ex.shell != nil && o.ex.nest == nil {
		err = hideOrEnd(pid)
	}
	if err != nil {
		return err
	}
	o.ex.pid = pid
	r.leaders[pid] = o.ex
	r.spawned.Add(1)
	r.empty = false
	r.changed.Broadcast()
	return nil
}

// hideOrEnd ends a process that cannot be hidden, so that it has never begun.
func hideOrEnd(pid int) error {
	err := hide(pid)
	if err != nil {
		err = errors.Join(fmt.Errorf("close a shell to what it starts: %w", err), unix.Kill(pid, unix.SIGKILL))
		for again := error(unix.EINTR); errors.Is(again, unix.EINTR); {
			_, again = unix.Wait4(pid, nil, 0, nil)
		}
	}
	return err
}

// procAttr says how ex is run: as its role's user, in a session and a group
// of its own, with nothing open but its three streams.
func (a *Agent) procAttr(ex *exec, files [3]uintptr, env []string) *syscall.ProcAttr {
	uid := uint32(a.uid(ex.req.Role))
	return &syscall.ProcAttr{
		Dir:   ex.dir,
		Env:   env,
		Files: files[:],
		Sys: &syscall.SysProcAttr{
			Setsid:     true,
			Setctty:    ex.req.Terminal != nil, // its standard input
			Credential: &syscall.Credential{Uid: uid, Gid: uid, Groups: []uint32{uint32(ex.group)}},
		},
	}
}

// notStarted is why a process never began, with the code that a shell gives.
type notStarted struct {
	code int
	text string
}

func (e *notStarted) Error() string { return e.text }

// lookup finds the program that argv0 names, in the PATH of env, as the exec's
// user sees it.
func (a *Agent) lookup(ex *exec, env []string) (string, error) {
	name := ex.req.Argv[0]
	if name == "" {
		return "", &notStarted{127, "the command's name is empty"}
	}
	var found string
	var reason error
	err := a.as(ex.req.Role, func() {
		if strings.Contains(name, "/") {
			if !path.IsAbs(name) {
				name = path.Join(ex.dir, name)
			}
			found, reason = name, runnable(name)
			return
		}
		found, reason = searchPath(name, ex.dir, getenv(env, "PATH"))
	})
	if err != nil {
		return "", err
	}
	switch {
	case reason == nil:
		return found, nil
	case errors.Is(reason, unix.ENOENT), errors.Is(reason, unix.ENOTDIR):
		return "", &notStarted{127, ex.req.Argv[0] + ": command not found"}
	}
	return "", &notStarted{126, fmt.Sprintf("%s: %v", ex.req.Argv[0], reason)}
}

// searchPath looks for name in the folders of list. Like execvp, it goes on
// over files that may not be run and remembers the first such.
func searchPath(name, dir, list string) (string, error) {
	var denied error
	for folder := range strings.SplitSeq(list, ":") {
		if !path.IsAbs(folder) {
			folder = path.Join(dir, folder)
		}
		file := path.Join(folder, name)
		switch err := runnable(file); {
		case err == nil:
			return file, nil
		case errors.Is(err, unix.EACCES) && denied == nil:
			denied = err
		}
	}
	if denied != nil {
		return "", denied
	}
	return "", unix.ENOENT
}

// runnable reports why the calling thread's user cannot run file, if so.
func runnable(file string) error {
	var st unix.Stat_t
	if err := unix.Stat(file, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return unix.EACCES
	}
	if st.Mode&0o111 == 0 {
		return unix.EACCES
	}
	return nil
}

// explain turns the error of a fork or exec into words. Where a resource is
// short it returns the error itself, which is caisson's to report.
func explain(ex *exec, binary string, err error) error {
	var st unix.Stat_t
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ENOMEM):
		return err
	case unix.Stat(ex.dir, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return &notStarted{126, fmt.Sprintf("working directory %s: no such directory", ex.dir)}
	case errors.Is(err, unix.ENOENT):
		return &notStarted{127, fmt.Sprintf("%s: its interpreter or loader is not in the image", binary)}
	case errors.Is(err, unix.E2BIG):
		return &notStarted{126, "the command line and the environment are too long; pass the data as a file"}
	}
	return &notStarted{126, fmt.Sprintf("%s: %v", binary, err)}
}

func getenv(env []string, key string) string {
	value := ""
	for _, kv := range env {
		if k, v, ok := strings.Cut(kv, "="); ok && k == key {
			value = v
		}
	}
	return value
}

// mergeEnv lays the later lists over the earlier: a key keeps its last value.
func mergeEnv(lists ...[]string) []string {
	index := map[string]int{}
	var out []string
	for _, list := range lists {
		for _, kv := range list {
			k, _, ok := strings.Cut(kv, "=")
			if !ok || k == "" {
				continue
			}
			if i, seen := index[k]; seen {
				out[i] = kv
				continue
			}
			index[k] = len(out)
			out = append(out, kv)
		}
	}
	return out
}

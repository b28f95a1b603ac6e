//go:build linux

package pid1

import (
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/wire"
	"github.com/caisson-dev/caisson/internal/pyboot"
	"github.com/caisson-dev/caisson/sdk/python"
)

//go:embed warm/server.py
var warmServer string

// warmUser is the server's own: no user of a sandbox has a number behind those of
// the execs' groups, so that nobody can signal, trace or limit it.
const warmUser = firstGroup + groupCount

// How long the server may take to have imported its modules, and a fork of it to
// answer. Where it takes longer, the program is started as any other.
const (
	warmPatience = 20 * time.Second
	forkPatience = 5 * time.Second
)

// mostCall bounds what a fork is told of its program.
const mostCall = 1 << 20

// warmth has at most one server of warm interpreters: a Python with a user of its own
// that may become others, and that forks for each exec:
//
//	agent ── group, user, streams ─► the fork that is ready ── its pid ─► agent
//	         registered as the exec's process; the fork has given up all it could do
//	agent ── argv, environment, folder ─► it, and it runs the program
//
// What runs in a fork changes nothing of its server. What it starts is seen where that
// was so when the server was started, and is its exec's by the group.
type warmth struct {
	a  *Agent
	mu sync.Mutex // held while a server is started, and while a fork is asked for
	is *warmUp
	up atomic.Bool // is is set
}

// warmUp is a server that runs.
type warmUp struct {
	key     string
	seen    bool  // what its forks start is told
	process *exec // that the reaper knows it by
	control *os.File
}

// take has ex forked from a warm interpreter, and reports whether it was: otherwise
// it is to be started as any other.
func (w *warmth) take(ex *exec, binary string, env []string, files [3]uintptr) bool {
	call, key, ok := warmCall(ex, binary, env)
	if !ok {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := ex.req.Starts != nil
	if w.is != nil && (w.is.key != key || seen && !w.is.seen || w.is.ended()) {
		w.stopLocked()
	}
	if w.is == nil && w.startLocked(ex.req, binary, env, key) != nil {
		return false
	}
	ex.started = time.Now() // a server's start is no part of it
	if err := w.forkLocked(ex, call, files); err != nil {
		w.stopLocked()
		return false
	}
	ex.warm = true
	return true
}

// warmCall is what a fork is told, and what its server has to be like. A program that
// another Python would run than the one that is started is not run by a fork.
func warmCall(ex *exec, binary string, env []string) (call []byte, key string, ok bool) {
	argv := ex.req.Argv
	if ex.req.Warm == nil || ex.req.Terminal != nil || ex.req.Shell != "" || len(argv) < 2 || !imagesPython(binary) {
		return nil, "", false
	}
	if argv[1] == "-c" && len(argv) < 3 || argv[1] != "-c" && (argv[1] == "" || argv[1][0] == '-') {
		return nil, "", false
	}
	if st, err := os.Stat(ex.dir); err != nil || !st.IsDir() {
		return nil, "", false // the usual start says what is wrong with it
	}
	lasting, ok := warmEnv(env)
	if !ok || slices.ContainsFunc(slices.Concat(argv, env, []string{ex.dir}), func(s string) bool { return !utf8.ValidString(s) }) {
		return nil, "", false
	}
	vars := map[string]string{}
	for _, kv := range env {
		k, v, _ := strings.Cut(kv, "=")
		vars[k] = v
	}
	call, err := json.Marshal(map[string]any{"argv": argv, "env": vars, "dir": ex.dir})
	return call, strings.Join(slices.Concat([]string{binary}, lasting, ex.req.Warm.Modules), "\x00"), err == nil && len(call) <= mostCall
}

// atStart are variables that Python and its libraries read once, at their start: the
// server is started with them. Others of their kind are for a start of its own.
var atStart = []string{"LANG", "PYTHONUTF8", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONNOUSERSITE"}

func warmEnv(env []string) (lasting []string, ok bool) {
	for _, kv := range env {
		k, _, _ := strings.Cut(kv, "=")
		switch {
		case slices.Contains(atStart, k):
			lasting = append(lasting, kv)
		case k == "PYTHONPATH": // the fork's own, never the server's
		case strings.HasPrefix(k, "PYTHON"), strings.HasPrefix(k, "LD_"), strings.HasPrefix(k, "LC_"), strings.HasPrefix(k, "MALLOC_"), k == "GLIBC_TUNABLES":
			return nil, false
		}
	}
	slices.Sort(lasting)
	return lasting, true
}

// imagesPython reports whether a program is a Python that no user of the sandbox can
// have put there: the server may become others.
func imagesPython(binary string) bool {
	real, err := filepath.EvalSymlinks(binary)
	if err != nil || !strings.HasPrefix(path.Base(real), "python3") {
		return false
	}
	for _, at := range []string{binary, real} {
		for at != "/" {
			at = path.Dir(at)
			var st unix.Stat_t
			if unix.Stat(at, &st) != nil || st.Uid != 0 || st.Mode&0o022 != 0 {
				return false
			}
		}
	}
	var st unix.Stat_t
	return unix.Stat(real, &st) == nil && st.Uid == 0 && st.Mode&0o022 == 0
}

// startLocked starts a server and waits until it has a fork to give.
func (w *warmth) startLocked(req *wire.Exec, binary string, env []string, key string) error {
	text := path.Join(wire.RunDir, "warm.py")
	for name, content := range map[string]string{"warm.py": warmServer, "warm_values.py": python.Values, "warm_inside.py": python.Inside, "warm_boot.py": pyboot.Text} {
		if err := os.WriteFile(path.Join(wire.RunDir, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	lasting, _ := warmEnv(env)
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	control, err := parentEnd(fds[0], "warm")
	if err != nil {
		return errors.Join(err, unix.Close(fds[1]))
	}
	up := &warmUp{key: key, seen: req.Starts != nil, control: control, process: &exec{exited: make(chan exitStatus, 1)}}
	// Its output is what those of execs are, a pipe, and goes nowhere.
	in, out, err := os.Pipe()
	if err != nil {
		return errors.Join(err, unix.Close(fds[1]), control.Close())
	}
	files, rules := []uintptr{w.a.null.Fd(), out.Fd(), out.Fd(), uintptr(fds[1])}, "0"
	if c := w.a.spawn.cage; c != nil { // the server is free, and its forks are not
		rules = strconv.Itoa(len(files))
		files = append(files, uintptr(c.ruleset))
	}
	err = w.a.spawn.start(up.process, binary, append([]string{binary, text, rules}, req.Warm.Modules...), &syscall.ProcAttr{
		Dir: "/", Env: append(lasting, "PATH=/usr/bin:/bin", "HOME=/nonexistent"), Files: files,
		Sys: &syscall.SysProcAttr{
			Setsid: true, Credential: &syscall.Credential{Uid: warmUser, Gid: warmUser, Groups: []uint32{}},
			AmbientCaps: []uintptr{unix.CAP_SETUID, unix.CAP_SETGID},
		},
	})
	err = errors.Join(err, unix.Close(fds[1]), in.Close(), out.Close())
	if err == nil {
		err = up.ready()
	}
	if err != nil {
		up.stop(w.a)
		return err
	}
	w.is = up
	w.up.Store(true)
	return nil
}

// ready waits for the server's first word.
func (up *warmUp) ready() error {
	if err := up.control.SetReadDeadline(time.Now().Add(warmPatience)); err != nil {
		return err
	}
	var word [8]byte
	n, err := up.control.Read(word[:])
	if err == nil && string(word[:n]) != "ready" {
		err = fmt.Errorf("a server of warm interpreters says %q", word[:n])
	}
	return err
}

// ended reports whether the server is gone.
func (up *warmUp) ended() bool {
	select {
	case st := <-up.process.exited:
		up.process.exited <- st
		return true
	default:
		return false
	}
}

// processes is how many stand beside those of execs: the server, and its fork.
func (w *warmth) processes() int {
	if w.up.Load() {
		return 2
	}
	return 0
}

// stop ends a server and the fork that it holds ready, which ends by itself.
func (up *warmUp) stop(a *Agent) {
	_ = up.control.Close()                        // the fork hears of it
	_ = a.reaper.signal(up.process, unix.SIGKILL) // it may have ended
	if up.process.pid != 0 {
		<-up.process.exited
	}
}

func (w *warmth) stopLocked() {
	w.is.stop(w.a)
	w.is = nil
	w.up.Store(false)
}

// forkLocked hands an exec to the fork that is ready. Nobody reaps meanwhile: the fork
// is the exec's before its end can be seen.
func (w *warmth) forkLocked(ex *exec, call []byte, files [3]uintptr) error {
	ours, theirs, err := sockets()
	if err != nil {
		return err
	}
	defer ours.Close()
	var who [8]byte
	binary.NativeEndian.PutUint32(who[:4], uint32(ex.group))
	binary.NativeEndian.PutUint32(who[4:], uint32(w.a.uid(ex.req.Role)))
	rights := unix.UnixRights(int(files[0]), int(files[1]), int(files[2]), theirs)
	r := w.a.reaper
	r.mu.Lock()
	defer r.mu.Unlock()
	err = sendRights(w.is.control, who[:], rights)
	err = errors.Join(err, unix.Close(theirs))
	if err != nil {
		return err
	}
	var pid [4]byte
	if err := ours.SetDeadline(time.Now().Add(forkPatience)); err != nil {
		return err
	}
	if _, err := io.ReadFull(ours, pid[:]); err != nil {
		return err
	}
	ex.pid = int(binary.NativeEndian.Uint32(pid[:]))
	call = append(binary.NativeEndian.AppendUint32(nil, uint32(len(call))), call...)
	if _, err := ours.Write(call); err != nil {
		return err // what has half a call ends by itself, and is nobody's
	}
	r.leaders[ex.pid] = ex
	r.spawned.Add(1)
	r.empty = false
	r.changed.Broadcast()
	return nil
}

// sendRights sends a packet with descriptors.
func sendRights(to *os.File, b, rights []byte) error {
	conn, err := to.SyscallConn()
	if err != nil {
		return err
	}
	var sent error
	err = conn.Write(func(fd uintptr) bool {
		sent = unix.Sendmsg(int(fd), b, rights, nil, unix.MSG_NOSIGNAL)
		return !errors.Is(sent, unix.EAGAIN)
	})
	return errors.Join(err, sent)
}

// childless reports whether nothing that execs started is left. Where a server of warm
// interpreters stands beside them, only looking tells, and one look can miss a process
// that was forked behind it.
func (a *Agent) childless() bool {
	if childless() {
		return true
	}
	if !a.warm.up.Load() {
		return false
	}
	for range 2 {
		left := 0
		if a.scan(func(p procInfo) {
			if p.execGroup() != 0 && !p.dead() {
				left++
			}
		}) != nil || left > 0 {
			return false
		}
	}
	return true
}

//go:build linux

package pid1

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"unsafe"

	"github.com/hashicorp/yamux"
	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/wire"
)

// mostSockets bounds the execs that can call tools at once: with [wire.MaxCalling]
// connections of them all, they stay below the files that the agent may open.
const mostSockets = 96

var errSockets = errors.New("too many execs can call tools")

// calling are the sockets of the execs that can call tools. The zero value is ready.
type calling struct {
	mu      sync.Mutex
	sockets map[string]*toolSocket
}

// toolSocket is one exec's. The exec and the host that answers come in any order.
type toolSocket struct {
	taken bool          // a host answers
	ready chan struct{} // closed once out and ex are set
	gone  chan struct{} // closed at its end
	out   *outlet
	ex    *exec
}

// ofLocked finds the socket of an exec, or makes its place.
func (c *calling) ofLocked(id string) (*toolSocket, error) {
	if t := c.sockets[id]; t != nil {
		return t, nil
	}
	if len(c.sockets) >= mostSockets {
		return nil, errSockets
	}
	if c.sockets == nil {
		c.sockets = map[string]*toolSocket{}
	}
	t := &toolSocket{ready: make(chan struct{}), gone: make(chan struct{})}
	c.sockets[id] = t
	return t, nil
}

// take is for the one host that answers an exec's calls.
func (c *calling) take(id string) (*toolSocket, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, err := c.ofLocked(id)
	if err != nil {
		return nil, err
	}
	if t.taken {
		return nil, errOutletTaken
	}
	t.taken = true
	return t, nil
}

// find gives an outlet that is open; nil is none.
func (c *calling) find(id string) *outlet {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.sockets[id]; t != nil {
		return t.out
	}
	return nil
}

// end closes the socket of an exec, where it has one, and all its connections.
func (c *calling) end(id string) {
	c.mu.Lock()
	t := c.sockets[id]
	delete(c.sockets, id)
	c.mu.Unlock()
	if t == nil {
		return
	}
	close(t.gone)
	t.out.end()
}

// connections counts those of all sockets.
func (c *calling) connections() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.sockets {
		if t.out != nil {
			n += len(t.out.places)
		}
	}
	return n
}

// openTools makes the socket of an exec that is about to start, and what programs
// find beside it.
func (a *Agent) openTools(ex *exec) error {
	dir := path.Join(wire.StageDir, ex.req.ID)
	bin := path.Join(dir, wire.ToolsBin)
	if err := os.Mkdir(bin, 0o755); err != nil {
		return err
	}
	if err := os.Symlink(wire.AgentPath, path.Join(bin, wire.ToolProgram)); err != nil {
		return err
	}
	ln, err := a.listenFor(ex, path.Join(dir, wire.ToolsSocket))
	if err != nil {
		return err
	}
	a.calling.mu.Lock()
	defer a.calling.mu.Unlock()
	t, err := a.calling.ofLocked(ex.req.ID)
	if err != nil {
		return errors.Join(fmt.Errorf("%w: %w", errBusy, err), ln.Close())
	}
	t.out, t.ex = newOutlet(ln, wire.MaxCalling), ex
	close(t.ready)
	return nil
}

// listenFor makes a socket that an exec's group alone may connect to.
func (a *Agent) listenFor(ex *exec, name string) (ln net.Listener, err error) {
	listen := func() { ln, err = net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"}) }
	if a.cfg.Alone != nil { // no other exec sees its folder
		listen()
	} else if denied := asGroup(ex.group, listen); denied != nil {
		return nil, denied
	}
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(name, 0o660); err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	return ln, nil
}

// asGroup has what do makes belong to a group. Without the capability to give files
// away, they have to be made so.
func asGroup(group int, do func()) error {
	runtime.LockOSThread()
	set := func(id int) error {
		_, _, _ = unix.RawSyscall(unix.SYS_SETFSGID, uintptr(id), 0, 0)
		if now, _, _ := unix.RawSyscall(unix.SYS_SETFSGID, ^uintptr(0), 0, 0); int(now) != id {
			return fmt.Errorf("act as group %d: not permitted", id)
		}
		return nil
	}
	if err := set(group); err != nil {
		return err // the thread ends with its goroutine, as in [Agent.as]
	}
	do()
	if err := set(unix.Getegid()); err != nil {
		return err
	}
	runtime.UnlockOSThread()
	return nil
}

// withTools tells programs where tools are called.
func withTools(id string, env []string) []string {
	at := func(name string) string { return wire.StagePath(id, name) }
	before := func(key, folder string) string {
		if old := getenv(env, key); old != "" {
			folder += ":" + old
		}
		return key + "=" + folder
	}
	options := "NODE_OPTIONS=--require=" + at(wire.ToolsLib) + "/plain.cjs"
	if old := getenv(env, "NODE_OPTIONS"); old != "" {
		options += " " + old
	}
	return mergeEnv(env, []string{
		options,
		wire.EnvTools + "=" + at(wire.ToolsSocket), before("PATH", at(wire.ToolsBin)),
		before("PYTHONPATH", at(wire.ToolsLib)), before("NODE_PATH", at(wire.ToolsLib)),
	})
}

// callTools tells the host of the connections to an exec's socket.
func (a *Agent) callTools(s *yamux.Stream, r *wire.Reader, req *wire.Tools) {
	if !validID(req.ID) {
		fail(s, "invalid", fmt.Errorf("exec id %q", req.ID))
		return
	}
	t, err := a.calling.take(req.ID)
	if err != nil {
		kind := "exhausted"
		if errors.Is(err, errOutletTaken) {
			kind = "conflict"
		}
		fail(s, kind, err)
		return
	}
	defer a.calling.end(req.ID)
	go func() {
		_, _ = r.Next() // the host says nothing more: whatever comes is the end
		a.calling.end(req.ID)
	}()
	select {
	case <-t.ready:
	case <-t.gone:
		return
	}
	t.out.announce(s, func(c net.Conn) bool { return a.calling.connections() <= wire.MaxCalling && a.belongs(c, t.ex) })
}

// belongs reports whether the process that has connected is one of the exec's.
func (a *Agent) belongs(c net.Conn, ex *exec) bool {
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		return false
	}
	is := false
	err = raw.Control(func(fd uintptr) {
		if a.cfg.Alone != nil {
			is = sharesPIDs(int(fd), ex.pid)
			return
		}
		groups, err := peerGroups(fd)
		is = err == nil && slices.Contains(groups, uint32(ex.group))
	})
	return err == nil && is
}

// peerGroups are the supplementary groups that whoever connected had then.
func peerGroups(fd uintptr) ([]uint32, error) {
	groups := make([]uint32, 64)
	size := uint32(len(groups) * 4)
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_PEERGROUPS,
		uintptr(unsafe.Pointer(&groups[0])), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return nil, errno
	}
	return groups[:size/4], nil
}

// sharesPIDs reports whether whoever connected lives in the PID namespace of a
// process.
func sharesPIDs(fd, pid int) bool {
	peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil || peer.Pid <= 0 {
		return false
	}
	theirs, err := os.Readlink("/proc/" + strconv.Itoa(int(peer.Pid)) + "/ns/pid")
	if err != nil {
		return false
	}
	ours, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/ns/pid")
	return err == nil && ours == theirs
}

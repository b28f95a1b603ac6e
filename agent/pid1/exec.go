//go:build linux

package pid1

import (
	"errors"
	"fmt"
	"os"
	"path"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/wire"
)

// Why the agent ended an exec, as [wire.End] names it.
const (
	endedTimeout  = "timeout"
	endedCanceled = "canceled"
	endedOutput   = "output"
	endedDisk     = "disk"
	endedDenied   = "denied"
)

// exec is one process that the agent was asked to run, and all that it starts.
type exec struct {
	req     *wire.Exec
	dir     string
	group   int
	lease   *lease
	started time.Time
	pid     int   // set by the spawner: the namespace's first process, where it is nested; a shell's, of what is run in it
	nest    *nest // nil where it shares the sandbox's PID namespace
	out     *outputs
	pumps   [2]*pump
	stop    chan ending     // buffered: the first reason to end it counts
	exited  chan exitStatus // buffered: its own process was reaped
	last    exitStatus      // of its process; set before over is closed
	over    chan struct{}   // closed once its process, and what was to end with it, has ended
	done    chan struct{}   // closed once its end is set
	leave   func() held     // of the room
	watched *watched        // what it starts; nil where that is not seen
	clock   clock           // stands still while a person is asked about a start
	shell   *shell          // that it is, or that it runs in; nil of others
	warm    bool            // it was forked by the server of warm interpreters
	answer  *answering      // nil where it may hand back nothing

	typing  sync.Mutex // held by who types into its terminal
	feeding sync.Mutex // held by one input call at a time
	mu      sync.Mutex
	stdin   *os.File      // nil without, and once it is closed
	orphans time.Duration // CPU time of descendants that the agent reaped
	maxRSS  int64         // the largest of those, in bytes

	// Guarded by the agent's mu.
	shownPID int       // 0 until it runs
	since    time.Time // copies of pid and started, for others to read
	ended    bool      // its end is set
	settled  bool      // none of its processes is left
	read     bool      // a client has acknowledged all of it
	many     bool      // it starts [manyStarts] or more
	proxy    int       // the port of its way out, once no host holds that open
}

// ending says why an exec is to end: by as [wire.End] names it, and the words of
// who canceled it.
type ending struct{ by, cause string }

// end asks for the exec's end. Only the first reason counts.
func (ex *exec) end(by string) { ex.endWith(ending{by: by}) }

func (ex *exec) endWith(why ending) {
	select {
	case ex.stop <- why:
	default:
	}
}

// denied ends an exec of which something was refused to start, or where it is a shell
// what runs in it. What it returns is closed once that is so.
func (ex *exec) denied(why ending) <-chan struct{} {
	if sh := ex.shell; sh != nil {
		if r := sh.running(); r != nil {
			ex = r.ex
		}
	}
	ex.endWith(why)
	return ex.over
}

// start runs a request's process. Its errors are for the client: one of kind
// invalid, or notStarted where the process could not begin. call calls its judge.
func (a *Agent) start(req *wire.Exec, l *lease, call func()) (*exec, error) {
	ex := &exec{
		req: req, lease: l, out: newOutputs(req.Drop, req.Hold), dir: workingDir(req.Dir),
		stop: make(chan ending, 1), exited: make(chan exitStatus, 1), over: make(chan struct{}), done: make(chan struct{}),
	}
	if err := a.register(ex); err != nil {
		return nil, err
	}
	if err := a.trackBegin(ex); err != nil {
		a.forget(ex)
		return nil, err
	}
	before, disks := a.countersBefore(), a.disksBefore(req)
	ex.leave = func() held { return held{} }
	if req.Shell == "" { // what is run in it answers for itself
		ex.leave = a.room.enter(ex)
	}
	err := a.seeStarts(ex, call)
	if err == nil {
		err = a.launch(ex)
	}
	if err != nil {
		ex.leave()
		a.starts.end(ex, false)
		a.trackEnd(ex, true)
		// The child may have existed for a moment and used nothing of note.
		a.calling.end(req.ID)
		ex.answer.end()
		a.unstage(req)
		if ex.shell != nil {
			ex.shell.close()
		}
		a.forget(ex)
		return nil, err
	}
	go a.follow(ex, before, disks)
	return ex, nil
}

// seeStarts has what ex starts seen, where that was asked for. A process that could not
// be held to that is not begun.
func (a *Agent) seeStarts(ex *exec, call func()) error {
	if ex.req.Starts == nil {
		return nil
	}
	return a.starts.begin(ex, call)
}

func workingDir(dir string) string {
	if path.IsAbs(dir) {
		return path.Clean(dir)
	}
	return path.Join(wire.WorkspaceDir, dir)
}

// launch makes the pipes and the process.
func (a *Agent) launch(ex *exec) error {
	if err := a.stage(ex.req); err != nil {
		return err
	}
	env := mergeEnv(a.claim.Env, ex.req.Env, []string{"PWD=" + ex.dir})
	if ex.req.Terminal != nil && getenv(env, "TERM") == "" {
		env = append(env, "TERM=xterm") // which every terminal of today can do, and images know
	}
	if ex.req.Tools {
		if err := a.openTools(ex); err != nil {
			return fmt.Errorf("open the way to tools: %w", err)
		}
		env = withTools(ex.req.ID, env)
	}
	if ex.req.Answer > 0 {
		if err := a.openAnswer(ex); err != nil {
			return fmt.Errorf("open the way back: %w", err)
		}
	}
	if ex.req.Shell != "" {
		if err := a.makeShell(ex, env); err != nil {
			return err
		}
	}
	binary, err := a.lookup(ex, env)
	if err != nil {
		return err
	}
	pipes, err := a.openPipes(ex)
	if err != nil {
		return fmt.Errorf("open pipes: %w", err)
	}
	defer pipes.closeChild()
	ex.started = time.Now()
	if a.cfg.Alone != nil {
		err = a.spawnNested(ex, binary, env, pipes.child)
	} else if !a.warm.take(ex, binary, env, pipes.child) {
		ex.started = time.Now()
		err = a.spawn.start(ex, binary, ex.req.Argv, a.procAttr(ex, pipes.child, env))
	}
	if err != nil {
		pipes.closeParent()
		return explain(ex, binary, err)
	}
	a.show(ex)
	ex.stdin = pipes.stdin
	ex.pump(pipes.out)
	if ex.shell != nil {
		ex.shell.begin()
	}
	return nil
}

// pump begins to read its outputs.
func (ex *exec) pump(files [2]*os.File) {
	for i, f := range files {
		ex.pumps[i] = &pump{
			file: f, index: i, out: ex.out, max: ex.req.MaxOutput, terminal: ex.req.Terminal != nil, drained: make(chan struct{}),
			onLimit: func() { ex.end(endedOutput) },
		}
		go ex.pumps[i].run()
	}
}

// follow waits for the exec's process, ends what is to be ended, and has the
// last word. It is the exec's one owner.
func (a *Agent) follow(ex *exec, before counters, disks disks) {
	defer close(ex.done)
	watch := &watcher{s: a.sampler, seen: watch{disks: disks}}
	if ex.shell == nil { // a shell is idle but for what is run in it
		defer a.life.use()()
		watch = a.sampler.watch(disks)
	}
	end := &wire.End{}
	st, alive := ex.await(end)
	wall := time.Since(ex.started)
	settled := false
	if alive || ex.req.Reap {
		end.Survivors = a.endAll(ex)
		settled = end.Survivors == 0
	}
	if alive {
		wall = time.Since(ex.started)
		select {
		case st = <-ex.exited:
		case <-time.After(killPatience):
			st.status = unix.WaitStatus(unix.SIGKILL)
		}
	}
	ex.last = st
	close(ex.over)
	end.Code, end.Signal = codeOf(st.status)
	end.Warm = ex.warm
	for _, p := range ex.pumps {
		p.finish()
	}
	<-ex.pumps[0].drained
	<-ex.pumps[1].drained
	a.sweepIPC(ex) // before it is looked how much memory is left
	if h := ex.leave(); h != (held{}) {
		end.HeldBytes, end.HeldEntries, end.Events = h.bytes, h.entries, append(end.Events, endedDisk)
	}
	a.account(ex, end, st, before, watch.stop(), wall)
	end.Answer, end.Answered = a.answers.keep(ex)
	if end.Ended == "" && (ex.pumps[0].over || ex.pumps[1].over) {
		end.Ended = endedOutput // it ended by itself just as the cap was passed
	}
	ex.closeStdin()
	a.unstage(ex.req)
	if ex.shell != nil {
		ex.shell.close()
	}
	end.Touched = a.trackEnd(ex, settled)
	a.starts.end(ex, settled)
	all := ex.watched.totals()
	end.Starts, end.Refused, end.Unjudged = all[0], all[1], all[2]
	end.Told = ex.watched.rest()
	ex.out.finish(end)
	a.conclude(ex, settled)
	for _, p := range ex.pumps {
		go p.trail()
	}
}

// left is how much of an exec's time is left, where that is bounded.
func (ex *exec) left() time.Duration {
	return time.Duration(ex.req.TimeoutMS)*time.Millisecond - time.Since(ex.started) + ex.clock.stood()
}

// await waits for the end of an exec's process, or a reason to end it.
func (ex *exec) await(end *wire.End) (st exitStatus, alive bool) {
	var deadline <-chan time.Time
	timer := time.NewTimer(ex.left())
	defer timer.Stop()
	if ex.req.TimeoutMS > 0 {
		deadline = timer.C
	}
	for {
		select {
		case st = <-ex.exited:
			return st, false
		case <-deadline:
			if left := ex.left(); left > 0 {
				timer.Reset(max(left, clockStep))
				continue
			}
			end.Ended = endedTimeout
		case why := <-ex.stop:
			end.Ended, end.Cause = why.by, why.cause
		}
		return st, true
	}
}

// codeOf gives a process's end as a shell would.
func codeOf(ws unix.WaitStatus) (code, signal int) {
	if ws.Signaled() {
		return 128 + int(ws.Signal()), int(ws.Signal())
	}
	return ws.ExitStatus(), 0
}

func (ex *exec) closeStdin() {
	if ex.inShell() {
		if run := ex.shell.running(); run != nil && run.ex == ex {
			run.closeStdin()
			return
		}
	}
	ex.dropStdin()
}

func (ex *exec) dropStdin() {
	ex.mu.Lock()
	f := ex.stdin
	ex.stdin = nil
	ex.mu.Unlock()
	if f != nil {
		_ = f.Close() // a pipe has nothing to flush
	}
}

// feed writes to the exec's standard input, and waits while that is full.
func (ex *exec) feed(b []byte) error {
	ex.mu.Lock()
	f := ex.stdin
	ex.mu.Unlock()
	if f == nil {
		return os.ErrClosed
	}
	_, err := f.Write(b)
	return err
}

// pipeSet is an exec's streams: the child's ends, and ours.
type pipeSet struct {
	child [3]uintptr
	fds   []int // the child's, to be closed after the fork
	stdin *os.File
	out   [2]*os.File
}

// openPipes makes the pipes as the exec's user: whose they are decides who may open
// them by a name such as /dev/stdout.
func (a *Agent) openPipes(ex *exec) (p *pipeSet, err error) {
	if ex.shell != nil {
		return ex.shell.pipes()
	}
	open := a.makePipes
	if ex.req.Terminal != nil {
		open = a.makeTerminal
	}
	if denied := a.as(ex.req.Role, func() { p, err = open(ex) }); denied != nil {
		return nil, denied
	}
	return p, err
}

func (a *Agent) makePipes(ex *exec) (_ *pipeSet, err error) {
	p := &pipeSet{}
	defer func() {
		if err != nil {
			p.closeChild()
			p.closeParent()
		}
	}()
	if ex.req.Stdin {
		var fds [2]int
		if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
			return nil, err
		}
		p.fds = append(p.fds, fds[0])
		p.child[0] = uintptr(fds[0])
		if p.stdin, err = parentEnd(fds[1], "stdin"); err != nil {
			return nil, err
		}
	} else {
		p.child[0] = a.null.Fd()
	}
	for i, name := range [2]string{"stdout", "stderr"} {
		var fds [2]int
		if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
			return nil, err
		}
		p.fds = append(p.fds, fds[1])
		p.child[i+1] = uintptr(fds[1])
		if p.out[i], err = parentEnd(fds[0], name); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// parentEnd makes our end of a pipe one that the runtime can wait for without
// a thread.
func parentEnd(fd int, name string) (*os.File, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), name), nil
}

func (p *pipeSet) closeChild() {
	for _, fd := range p.fds {
		_ = unix.Close(fd) // nothing was written through it here
	}
	p.fds = nil
}

func (p *pipeSet) closeParent() {
	for _, f := range []*os.File{p.stdin, p.out[0], p.out[1]} {
		if f != nil {
			_ = f.Close()
		}
	}
}

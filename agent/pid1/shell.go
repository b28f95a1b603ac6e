//go:build linux

package pid1

import (
	"bytes"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/wire"
)

// A shell is an interpreter that runs one text after another, each an exec of its
// own ([Agent.startRun]). It runs a loop of ours, its driver:
//
//	N.go    a pipe that the driver opens, which waits until the agent has opened it too
//	N.run   the run's key, which input it has, and its text, or the name of that
//	N.in, N.out, N.err  its streams, fresh ones for each run
//	end     a pipe: what the shell has used, and a [bell]
//
// How a run ended stands in the shell's name in /proc, behind the key: that a process
// gives itself alone, and the kernel tells it to everybody. So what a shell has started
// may read and write all of these that it finds: it takes no text away, since nothing
// that is read goes, and tells no end in the shell's place. It may not trace the shell
// either: see [hide]. While a run has its input open, the shell has its usual name.
//
// All of these are opened by name, for the moment that they are needed: there is no
// descriptor that a program could inherit, or a text close. Streams lie in a folder that
// programs find by them; the rest in one whose name is secret, so that a program which a
// text puts in the shell's place knows no key. What is on the shell's own input is read when
// the driver's loop is gone, after an interrupt say: there always lies one line that begins
// it anew, and tells of the end of what ran. Its own streams have secret names too, apart
// from those of the rest: whom a trap starts between two texts has them open.
//
// To tell an end takes as many descriptors as to run a text. A shell that has no room for
// them ends, instead of being silent.
type shell struct {
	a    *Agent
	ex   *exec  // its process
	kind kind   // how it is spoken with
	dir  string // of the runs' files
	ctl  string // whose name is secret
	own  string // what the names of its own streams begin with
	end  *os.File
	ends [3]handle   // of end too, and of what it puts out, so that they never end
	jobs atomic.Bool // something that it started lived when it was last looked

	mu   sync.Mutex
	pid  int  // of a nested one, once asked for
	run  *run // nil between two
	told int  // runs that the driver was told of
	held wire.Held
	size int // of held.Texts
	used usedCPU
	// As the last run left them.
	status  int
	errexit bool
}

// kind is how one kind of shell is started and spoken with.
type kind struct {
	name   string
	argv   []string // {driver} is the driver's path
	driver string
	first  string // what its input begins with
	again  string // what begins the driver's loop anew
	field  string // behind each part of N.run
	evals  bool   // a suffix to a text runs, and a prefix
	// sources says that it reads a text from a file of its own.
	sources bool
}

//go:embed shells/bash.sh
var bashDriver string

//go:embed shells/sh.sh
var shDriver string

//go:embed shells/python.py
var pythonDriver string

// begins is what the input of a bash or sh begins with. It rings, for the line behind it: that
// is not to be read together with this one, since sh forgets what it has read at an error.
const begins = "echo - >/proc/thread-self/comm; printf ! >'{ctl}/end'; . '{ctl}/driver'\n"

// kindsOf are the kinds of shell that a name means, the best first.
func kindsOf(name string) []kind {
	bash := kind{
		name: wire.ShellBash, argv: []string{"bash", "--norc", "--noprofile", "--noediting", "+H", "-i"}, driver: bashDriver, field: "\x00", evals: true,
		first: begins, again: "_caisson_end $?; _caisson_trace=$-; \\builtin set -T; . '{ctl}/driver'\n", // with a trap of DEBUG
	}
	sh := kind{
		name: wire.ShellSh, argv: []string{"sh", "-i"}, driver: shDriver, field: "\n", evals: true, sources: true,
		first: begins, again: "_caisson_end $?; . '{ctl}/driver'\n",
	}
	python := kind{name: wire.ShellPython, argv: []string{"python3", "-u", "{driver}"}, driver: pythonDriver, field: "\n"}
	switch name {
	case wire.ShellAny:
		return []kind{bash, sh}
	case wire.ShellBash:
		return []kind{bash}
	case wire.ShellSh:
		return []kind{sh}
	case wire.ShellPython:
		return []kind{python}
	}
	return nil
}

var (
	errNoShell   = errors.New("no such shell")
	errShellBusy = errors.New("the shell runs something")
)

// makeShell makes ready what the process of ex needs to be a shell, and chooses its
// command. Errors: notStarted where the image has none of its kinds.
func (a *Agent) makeShell(ex *exec, env []string) error {
	var k kind
	var missing error
	for _, k = range kindsOf(ex.req.Shell) {
		ex.req.Argv = k.argv
		if _, missing = a.lookup(ex, env); missing == nil {
			break
		}
	}
	if missing != nil {
		return missing
	}
	dir := path.Join(wire.StageDir, ex.req.ID)
	sh := &shell{a: a, ex: ex, kind: k, dir: dir, ctl: path.Join(dir, rand.Text()), own: path.Join(dir, rand.Text()), held: wire.Held{Dir: ex.dir}}
	if err := sh.prepare(); err != nil {
		sh.close()
		return fmt.Errorf("make a shell: %w", err)
	}
	ex.shell = sh
	for i, arg := range k.argv {
		if arg == "{driver}" {
			ex.req.Argv = append([]string{}, k.argv...)
			ex.req.Argv[i] = sh.ctl + "/driver"
		}
	}
	return nil
}

func (sh *shell) prepare() (err error) {
	if err := os.MkdirAll(sh.ctl, 0o711); err != nil {
		return err
	}
	if err := os.WriteFile(sh.ctl+"/driver", []byte(sh.named(sh.kind.driver)), 0o444); err != nil {
		return err
	}
	if err := makeFIFO(sh.goOf(0), 0o444); err != nil {
		return err
	}
	name := path.Join(sh.ctl, "end")
	if sh.end, err = openFIFO(name, mayWrite, unix.O_RDONLY); err != nil {
		return err
	}
	sh.ends[0], err = openHandle(name, unix.O_WRONLY)
	return err
}

// pipes makes the shell's own streams. They have names, by which it opens them again before
// each text: an earlier one may have closed what a shell keeps them in meanwhile.
func (sh *shell) pipes() (p *pipeSet, err error) {
	p = &pipeSet{}
	defer func() {
		if err != nil {
			p.closeChild()
			p.closeParent()
		}
	}()
	if p.stdin, err = openFIFO(sh.own+".in", mayRead, unix.O_RDWR); err != nil {
		return nil, err
	}
	for i, name := range [2]string{sh.own + ".out", sh.own + ".err"} {
		if p.out[i], err = openFIFO(name, mayWrite, unix.O_RDONLY); err != nil {
			return nil, err
		}
		if sh.ends[i+1], err = openHandle(name, unix.O_WRONLY); err != nil {
			return nil, err
		}
		p.child[i+1] = uintptr(sh.ends[i+1])
	}
	in, err := openHandle(sh.own+".in", unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	p.fds, p.child[0] = []int{int(in)}, uintptr(in)
	return p, nil
}

// goOf is the pipe that the driver waits at for run n.
func (sh *shell) goOf(n int) string { return path.Join(sh.ctl, strconv.Itoa(n)+".go") }

func (sh *shell) named(text string) string {
	return strings.NewReplacer("{ctl}", sh.ctl, "{dir}", sh.dir, "{own}", sh.own, "{name}", sh.kind.argv[0]).Replace(text)
}

// What a shell's user may do with a pipe. It is who made it, too, where all of a sandbox
// is of one user, and then we have opened it before.
const (
	mayRead  = 0o444
	mayWrite = 0o222
	weWrite  = 0o200
)

func makeFIFO(name string, mode os.FileMode) error {
	if err := unix.Mkfifo(name, uint32(mode)); err != nil {
		return err
	}
	return os.Chmod(name, mode) // whatever the umask
}

// handle is a descriptor that the runtime does not wait for: each end of a pipe that it
// does costs it calls, and wakes a thread. 0 is none.
type handle int

func openHandle(name string, flags int) (handle, error) {
	fd, err := unix.Open(name, flags|unix.O_CLOEXEC, mayRead) // what it makes
	if err != nil {
		return 0, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return handle(fd), nil
}

func (h *handle) close() {
	if *h > 0 {
		_ = unix.Close(int(*h)) // nothing was written to it
	}
	*h = 0
}

// openFIFO makes a pipe with a name, for users who know that, and opens it here.
func openFIFO(name string, mode os.FileMode, flags int) (*os.File, error) {
	if err := unix.Mkfifo(name, 0o600); err != nil {
		return nil, err
	}
	fd, err := unix.Open(name, flags|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	if err := f.Chmod(mode); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// begin speaks the first words to a shell that has just been started.
func (sh *shell) begin() {
	go sh.listen()
	if sh.kind.first != "" {
		sh.say(sh.kind.first)
	}
}

// say writes to the shell's own input. Where that fails the shell is ending, which
// its process tells.
func (sh *shell) say(lines string) { _ = sh.ex.feed([]byte(sh.named(lines))) }

// again lays the lines that begin the loop anew on the shell's input, where none lie.
func (sh *shell) again() {
	if sh.kind.again != "" && sh.ex.inputTaken() {
		sh.say(sh.kind.again)
	}
}

// close ends what is open of a shell whose process has ended.
func (sh *shell) close() {
	if sh.end != nil {
		_ = sh.end.Close()
	}
	for i := range sh.ends {
		sh.ends[i].close()
	}
	_ = os.RemoveAll(sh.dir) // what stays is small, and goes with the sandbox
}

// bell has the agent look at the shell.
const bell = '!'

// mostUsed bounds what is kept of what the shell says of its use. Honestly it is short.
const mostUsed = 4 << 10

// listen looks at the shell whenever there is a bell, until its end. Whoever else rings
// has it looked at once more. Its file ends with that.
func (sh *shell) listen() {
	var used []byte
	buf := make([]byte, mostUsed)
	for {
		n, err := sh.end.Read(buf)
		if err != nil && !errors.Is(err, io.EOF) {
			return
		}
		last := bytes.LastIndexByte(buf[:n], bell)
		if last < 0 {
			used = append(used, buf[:n]...)
			used = used[max(0, len(used)-mostUsed):]
			continue
		}
		sh.hear(string(append(used, buf[:last]...)))
		used = append(used[:0], buf[last+1:n]...)
	}
}

// hear looks at the shell's name: it tells of a run's end, or that one has opened its
// input. used is what somebody says that it has used.
func (sh *shell) hear(used string) {
	sh.again()
	run, name := sh.running(), nameOf(sh.a.shellPID(sh))
	if run == nil {
		return
	}
	if name == sh.kind.argv[0] {
		run.open()
		return
	}
	status, ok := strings.CutPrefix(name, run.key)
	if !ok {
		return
	}
	status, errexit := strings.CutSuffix(status, "e")
	select {
	case run.answered <- answer{status: status, errexit: errexit, used: used}:
	default:
	}
}

// nameOf is what a process calls itself, "" where it is gone.
func nameOf(pid int) string {
	h, err := openHandle("/proc/"+strconv.Itoa(pid)+"/comm", unix.O_RDONLY)
	if err != nil {
		return ""
	}
	defer h.close()
	var buf [64]byte
	n, _ := unix.Read(int(h), buf[:])
	return strings.TrimSuffix(string(buf[:max(0, n)]), "\n")
}

// remember notes a text that has run, for who judges the next.
func (sh *shell) rememberLocked(text string) {
	sh.held.Runs++
	if len(text) > wire.MaxHeld {
		text = ""
		sh.held.Forgot = true
	}
	sh.held.Texts = append(sh.held.Texts, text)
	sh.size += len(text) + 1
	for sh.size > wire.MaxHeld {
		sh.size -= len(sh.held.Texts[0]) + 1
		sh.held.Texts, sh.held.Forgot = sh.held.Texts[1:], true
	}
}

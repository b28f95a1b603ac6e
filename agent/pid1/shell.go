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
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/wire"
)

// A shell is an interpreter that runs one text after another, each an exec of its
// own ([Agent.startRun]). It runs a loop of ours, its driver:
//
//	go      the driver reads where the next run's files lie, and a key
//	N.text  the text; N.in, N.out, N.err its streams, fresh ones for each run
//	end     the driver answers: the key, then "opened" or a status; "ready" when it begins
//
// All of these are opened by name, for the moment that they are needed: there is
// no descriptor that a program could inherit, or a text close. go and end lie in a
// folder whose name is secret, the shell's user may only read the one and only write
// the other, and an end without the run's key is nobody's. What is on the shell's own
// input, a socket, is read when the driver's loop is gone, after an interrupt say: there
// always lies one line that begins it anew, and tells of the end of what ran.
type shell struct {
	ex   *exec    // its process
	kind kind     // how it is spoken with
	dir  string   // of the runs' files
	ctl  string   // of go and end
	ring *os.File // go
	end  *os.File
	jobs atomic.Bool // something that it started lived when it was last looked

	mu   sync.Mutex
	pid  int  // of a nested one, once asked for
	run  *run // nil between two
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
	field  string // between two words of a go
	last   string // behind the last
	evals  bool   // a suffix to a text runs, and a prefix
}

//go:embed shells/bash.sh
var bashDriver string

//go:embed shells/sh.sh
var shDriver string

//go:embed shells/python.py
var pythonDriver string

// kindsOf are the kinds of shell that a name means, the best first.
func kindsOf(name string) []kind {
	bash := kind{
		name: wire.ShellBash, argv: []string{"bash", "--norc", "--noprofile", "--noediting", "+H", "-i"}, driver: bashDriver, field: "\x00", last: "\x00", evals: true,
		first: ". '{ctl}/driver'\n", again: "_caisson_end $?; _caisson_debug=$(\\trap -p DEBUG); . '{ctl}/driver'\n",
	}
	sh := kind{
		name: wire.ShellSh, argv: []string{"sh", "-i"}, driver: shDriver, field: " ", last: "\n", evals: true,
		first: ". '{ctl}/driver'\n", again: "_caisson_end $?; . '{ctl}/driver'\n",
	}
	python := kind{name: wire.ShellPython, argv: []string{"python3", "-u", "{driver}"}, driver: pythonDriver, field: " ", last: "\n"}
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
	sh := &shell{ex: ex, kind: k, dir: dir, ctl: path.Join(dir, rand.Text()), held: wire.Held{Dir: ex.dir}}
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
	if sh.ring, err = makeFIFO(path.Join(sh.ctl, "go"), 0o644, unix.O_RDWR); err != nil {
		return err
	}
	sh.end, err = makeFIFO(path.Join(sh.ctl, "end"), 0o622, unix.O_RDWR)
	return err
}

func (sh *shell) named(text string) string { return strings.ReplaceAll(text, "{ctl}", sh.ctl) }

// anybody may read and write.
const anybody = 0o666

// makeFIFO makes a pipe with a name that users may open who know it, as its mode says,
// and opens it here.
func makeFIFO(name string, mode os.FileMode, flags int) (*os.File, error) {
	if err := unix.Mkfifo(name, uint32(mode)); err != nil {
		return nil, err
	}
	if err := os.Chmod(name, mode); err != nil { // whatever the umask
		return nil, err
	}
	fd, err := unix.Open(name, flags|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// begin speaks the first words to a shell that has just been started.
func (sh *shell) begin() {
	go sh.listen()
	if sh.kind.first != "" {
		sh.say(sh.named(sh.kind.first))
	}
}

// say writes to the shell's own input. Where that fails the shell is ending, which
// its process tells.
func (sh *shell) say(line string) { _ = sh.ex.feed([]byte(line)) }

// close ends what is open of a shell whose process has ended.
func (sh *shell) close() {
	for _, f := range []*os.File{sh.ring, sh.end} {
		if f != nil {
			_ = f.Close()
		}
	}
	_ = os.RemoveAll(sh.dir) // what stays is small, and goes with the sandbox
}

// mostAnswer bounds what is read of one answer. An honest one is short.
const mostAnswer = 4 << 10

// listen reads the driver's answers until the shell's end. Its file ends with that.
func (sh *shell) listen() {
	var rest []byte
	buf := make([]byte, mostAnswer)
	for {
		n, err := sh.end.Read(buf)
		if err != nil && !errors.Is(err, io.EOF) {
			return
		}
		rest = append(rest, buf[:n]...)
		for {
			fields, more, ok := cutAnswer(rest)
			if !ok {
				break
			}
			rest = more
			sh.hear(fields)
		}
		if len(rest) > mostAnswer {
			rest = rest[:0]
		}
	}
}

// cutAnswer takes one answer, which is three fields with a NUL behind each.
func cutAnswer(b []byte) (fields [3]string, rest []byte, ok bool) {
	for i := range fields {
		field, more, found := bytes.Cut(b, []byte{0})
		if !found {
			return fields, nil, false
		}
		fields[i], b = string(field), more
	}
	return fields, b, true
}

// hear takes an answer. What has another key is from a run that is over, or from
// somebody who is not the driver.
func (sh *shell) hear(fields [3]string) {
	sh.mu.Lock()
	run := sh.run
	sh.mu.Unlock()
	if fields[1] == "ready" {
		sh.say(sh.named(sh.kind.again))
		return
	}
	if run == nil || fields[0] != run.key {
		return
	}
	if fields[1] == "opened" {
		run.open()
		return
	}
	select {
	case run.answered <- answer{status: fields[1], more: fields[2]}:
	default:
	}
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

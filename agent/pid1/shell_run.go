//go:build linux

package pid1

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/yamux"
	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/wire"
)

// run is one text in a shell.
type run struct {
	sh       *shell
	ex       *exec
	key      string // of its end
	n        int    // of those that its shell was told of
	ring     handle // of N.go
	writers  [2]handle
	answered chan answer  // buffered: the first counts
	before   map[int]bool // processes of the shell's that were there already; nil is the shell alone
	base     [2]int64     // what the shell itself had put out
	starts   [3]int       // what the shell had started, and was refused

	mu     sync.Mutex
	opened bool // the shell has opened its input
	closed bool // nothing more will be written to it
}

// keySize is how much of a key has room in a process's name.
const keySize = 8

// answer is how a run ended, as the shell says.
type answer struct {
	status  string
	errexit bool
	used    string // what the builtin times prints, where nobody else said something
}

// usedCPU is what a shell had used when its last run ended.
type usedCPU struct {
	shell   time.Duration
	orphans time.Duration
}

// inShell reports whether ex is run in a shell, and is no process of its own.
func (ex *exec) inShell() bool { return ex.shell != nil && ex.req.Shell == "" }

// callShell serves wire.Shell.
func (a *Agent) callShell(s *yamux.Stream, r *wire.Reader, req *wire.Shell, l *lease) {
	if !validID(req.ID) || strings.IndexByte(req.Text, 0) >= 0 || len(req.Text) > wire.MaxStage {
		fail(s, "invalid", fmt.Errorf("a text of %d bytes, with a NUL or more than %d, or an id %q", len(req.Text), wire.MaxStage, req.ID))
		return
	}
	ex, moved, err := a.startRun(req, l)
	switch {
	case err != nil:
		failStart(s, err)
	case moved != nil:
		reply(s, wire.Reply{Held: moved})
	default:
		a.stream(s, r, ex, &[2]int64{}, false)
	}
}

// startRun hands a text to a shell. Where that has run others than the client knows
// of, it tells what it holds.
func (a *Agent) startRun(req *wire.Shell, l *lease) (*exec, *wire.Held, error) {
	host := a.find(req.Shell)
	if host == nil || host.shell == nil || host.inShell() {
		return nil, nil, errNoShell
	}
	sh := host.shell
	ex := &exec{
		req: &wire.Exec{
			ID: req.ID, Argv: []string{sh.kind.name, req.Text}, Role: host.req.Role, TimeoutMS: req.TimeoutMS, MaxOutput: req.MaxOutput, Stdin: req.Stdin,
			Track: req.Track, Late: req.Late,
		},
		lease: l, out: newOutputs(false, false), dir: host.dir, pid: host.pid, shell: sh, settled: true,
		stop: make(chan ending, 1), exited: make(chan exitStatus, 1), over: make(chan struct{}), done: make(chan struct{}),
	}
	run := &run{sh: sh, ex: ex, key: rand.Text()[:keySize], answered: make(chan answer, 1)}
	if moved, err := sh.take(run, req); err != nil || moved != nil {
		return nil, moved, err
	}
	if err := a.beginRun(run, req.Text); err != nil {
		sh.release(run)
		return nil, nil, err
	}
	return ex, nil, nil
}

// take gives the shell to a run. It remembers the text before anything of it runs.
func (sh *shell) take(r *run, req *wire.Shell) (*wire.Held, error) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	switch {
	case isClosed(sh.ex.over):
		return nil, errNoShell
	case req.Runs != sh.held.Runs:
		held := sh.held
		held.Texts = append([]string{}, held.Texts...)
		return &held, nil
	case sh.run != nil:
		return nil, errShellBusy
	}
	sh.run, r.n = r, sh.told
	sh.rememberLocked(req.Text)
	return nil, nil
}

// release lets the next run have the shell.
func (sh *shell) release(r *run) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.run == r {
		sh.run = nil
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// beginRun begins all that goes with an exec, and rings.
func (a *Agent) beginRun(r *run, text string) (err error) {
	ex, sh := r.ex, r.sh
	if err := a.register(ex); err != nil {
		return err
	}
	if err := a.trackBegin(ex); err != nil {
		a.forget(ex)
		return err
	}
	before, disks := a.countersBefore(), a.disksBefore(ex.req)
	ex.leave = a.room.enter(ex)
	defer func() {
		if err != nil {
			ex.leave()
			a.trackEnd(ex, true)
			a.forget(ex)
			r.remove()
		}
	}()
	if sh.jobs.Load() {
		r.before = map[int]bool{}
		own := a.shellPID(sh)
		if _, err := a.members(sh.ex.group, func(pid int) { r.before[pid] = pid != own }); err != nil {
			return err
		}
	}
	files, err := r.openFiles(sh.textOf(text, ex.req.Stdin))
	if err != nil {
		return fmt.Errorf("open pipes: %w", err)
	}
	r.base[0], r.base[1] = sh.ex.out.totals()
	r.starts = sh.ex.watched.totals()
	ex.started = time.Now()
	a.show(ex)
	ex.pump(files)
	if err := r.begin(); err != nil {
		ex.end(endedCanceled) // the shell is ending, which tells why
	}
	go a.followRun(r, before, disks)
	return nil
}

// begin has the driver go on: what it waits at stays open until the run's end, so that it
// may come late.
func (r *run) begin() (err error) {
	name := r.sh.goOf(r.n)
	if err := os.Chmod(name, 0o644); err != nil { // we may not write to it as it is
		return err
	}
	if r.ring, err = openHandle(name, unix.O_RDWR); err != nil {
		return err
	}
	r.sh.mu.Lock()
	defer r.sh.mu.Unlock()
	r.sh.told++
	return nil
}

// at is the name of one of its files that its programs may know.
func (r *run) at(kind string) string { return path.Join(r.sh.dir, strconv.Itoa(r.n)+kind) }

// secret is the name of its file that they may not.
func (r *run) secret() string { return path.Join(r.sh.ctl, strconv.Itoa(r.n)+".run") }

// mayExit finds what turns on that a failure ends a shell.
var mayExit = regexp.MustCompile(`\b(set|shopt)\b`)

// textOf is a text as it is handed to a shell. Where a failure may end the shell, a
// line behind it keeps that from the driver, for which the whole text is one
// command: what ends the shell is a command of the text. A here-document that has no
// end would swallow it.
func (sh *shell) textOf(text string, stdin bool) string {
	if !sh.kind.evals {
		return text
	}
	sh.mu.Lock()
	errexit, status := sh.errexit, sh.status
	sh.mu.Unlock()
	if status != 0 && !errexit && strings.Contains(text, "$?") {
		text = "_caisson_was " + strconv.Itoa(status) + "; " + text
	}
	if (errexit || mayExit.MatchString(text)) && !openHeredoc(text) {
		text += "\n\n_caisson_status=$?"
	}
	if stdin {
		text = "{ _caisson_opened; } 2>/dev/null; " + text
	}
	return text
}

var heredoc = regexp.MustCompile(`<<(-?)\s*(?:'([^'\n]*)'|"([^"\n]*)"|\\?([^\s;|&<>()'"]+))`)

// openHeredoc reports whether a here-document of a text may have no end.
func openHeredoc(text string) bool {
	for _, m := range heredoc.FindAllStringSubmatchIndex(text, -1) {
		word := ""
		for g := 2; g <= 4; g++ {
			if m[2*g] >= 0 {
				word = text[m[2*g]:m[2*g+1]]
			}
		}
		ends := false
		for line := range strings.SplitSeq(text[m[1]:], "\n") {
			if m[3] > m[2] {
				line = strings.TrimLeft(line, "\t")
			}
			ends = ends || line == word
		}
		if !ends {
			return true
		}
	}
	return false
}

// openFiles makes the run's files and opens our ends. The ends that the shell will
// write to are held open here too until the run's end: before the shell opens them
// there would be nobody to wait for.
func (r *run) openFiles(text string) (out [2]*os.File, err error) {
	defer func() {
		if err != nil {
			for _, f := range out {
				if f != nil {
					_ = f.Close()
				}
			}
		}
	}()
	in := os.DevNull
	if r.ex.req.Stdin {
		in = r.at(".in")
		if r.ex.stdin, err = openFIFO(in, mayRead|weWrite, unix.O_RDWR); err != nil {
			return out, err
		}
	}
	words := []string{r.key, in, text, ""}
	if r.sh.kind.sources {
		words[2] = r.at(".text")
		err = writeFile(words[2], text)
	}
	err = errors.Join(err, writeFile(r.secret(), strings.Join(words, r.sh.kind.field)), makeFIFO(r.sh.goOf(r.n+1), mayRead))
	if err != nil {
		return out, err
	}
	for i, name := range [2]string{r.at(".out"), r.at(".err")} {
		if out[i], err = openFIFO(name, mayWrite, unix.O_RDONLY); err != nil {
			return out, err
		}
		if r.writers[i], err = openHandle(name, unix.O_WRONLY); err != nil {
			return out, err
		}
	}
	return out, nil
}

// remove takes the names of the run's files away. Who has one open keeps it. The pipe of a
// run that the driver was not told of is the next one's.
func (r *run) remove() {
	ring := r.sh.goOf(r.n)
	if r.ring == 0 {
		ring = r.sh.goOf(r.n + 1)
	}
	for _, h := range []*handle{&r.writers[0], &r.writers[1], &r.ring} {
		h.close()
	}
	for _, name := range []string{r.at(".text"), r.at(".in"), r.at(".out"), r.at(".err"), r.secret(), ring} {
		_ = unix.Unlink(name) // what stays goes with the shell
	}
}

// writeFile makes a file that users may read.
func writeFile(name, text string) error {
	h, err := openHandle(name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
	if err != nil {
		return err
	}
	defer h.close()
	for b := []byte(text); len(b) > 0; {
		n, err := unix.Write(int(h), b)
		if err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		b = b[n:]
	}
	return nil
}

// open notes that the shell has opened its input: from now on a close is seen.
func (r *run) open() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.opened = true
	r.endInputLocked()
}

// closeStdin ends the run's input, once the shell has opened it: to open a pipe that
// nobody has open would wait for ever.
func (r *run) closeStdin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.endInputLocked()
}

func (r *run) endInputLocked() {
	if r.opened && r.closed {
		r.ex.dropStdin()
		go r.showEnd()
	}
}

// showEnd has programs that open the input by a name, such as /dev/stdin, after its end find
// that: to open a pipe with a name waits until somebody opens it to write. Nobody tells of
// who waits so.
func (r *run) showEnd() {
	const most = 100 * time.Millisecond
	for pause := time.Millisecond; ; pause = min(2*pause, most) {
		select {
		case <-r.ex.over:
			return
		case <-time.After(pause):
		}
		if h, err := openHandle(r.at(".in"), unix.O_WRONLY|unix.O_NONBLOCK); err == nil { // else nobody reads
			h.close()
		}
	}
}

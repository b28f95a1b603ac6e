//go:build linux

package pid1

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/wire"
)

// starts sees what execs start while they run, before it happens, and decides what
// it can: the rest is asked about. The kernel tells it by a file that the thread of
// the [spawner] got; whatever that thread makes, and all that descends from it, waits
// at each start for an answer. Where nobody answers any more, as when the agent is
// gone, no start works.
type starts struct {
	a    *Agent
	once sync.Once
	err  error
	file *os.File

	mu       sync.Mutex
	rules    string                         // that passed and programs follow from
	passed   map[[sha256.Size]byte]struct{} // starts that were let pass, by all that was judged of them
	programs map[program]struct{}           // programs that may be started with any arguments
	watched  map[string]*watched            // by exec
	becoming map[int]*becoming              // by process: what was let pass and was not looked at again
}

// manyStarts is how many an exec makes before more are expected.
const manyStarts = 16

// mostPassed bounds each of the two memories. A full one begins anew.
const mostPassed = 4096

func newStarts(a *Agent) *starts {
	return &starts{a: a, watched: map[string]*watched{}, becoming: map[int]*becoming{}}
}

// begin has an exec's starts seen, from its first process on.
func (s *starts) begin(ex *exec, call func()) error {
	s.once.Do(func() { s.err = s.install() })
	if s.err != nil {
		return s.err
	}
	s.follow(ex.req.Starts.Rules)
	w := s.of(ex.req.ID)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.starts, w.began, w.variables = *ex.req.Starts, time.Now(), matterOf(ex.req.Starts.Variables)
	if w.starts.Call {
		w.call = call
	}
	w.env = make(map[string]struct{}, len(ex.req.Env)+len(s.a.claim.Env))
	for _, kv := range mergeEnv(s.a.claim.Env, ex.req.Env) {
		w.env[kv] = struct{}{}
	}
	w.end, w.stand = ex.denied, func() func() { return s.a.stand(ex) }
	s.a.mu.Lock()
	defer s.a.mu.Unlock()
	ex.watched = w
	return nil
}

// install asks the kernel. It happens on the thread that nothing but execs is born of.
func (s *starts) install() error {
	if !canSeeStarts(s.a.cfg.Alone != nil) {
		return errors.New("what an exec starts cannot be seen here")
	}
	var b [24]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails
	var key [3]uint64
	for i := range key {
		key[i] = binary.NativeEndian.Uint64(b[8*i:])
	}
	var files *unix.Rlimit
	if n := s.a.claim.OpenFiles; n > 0 {
		files = &unix.Rlimit{}
		if err := unix.Getrlimit(unix.RLIMIT_NOFILE, files); err != nil {
			return err
		}
		files.Cur = min(uint64(n), files.Max)
	}
	spawn := s.a.spawn
	err := spawn.on(func() (err error) {
		if s.file, err = installStarts(key); err == nil {
			spawn.key, spawn.files = &key, files
		}
		return err
	})
	if err != nil {
		return err
	}
	var root unix.Statfs_t
	if err := unix.Statfs("/", &root); err != nil {
		return err
	}
	go (&hearer{s: s, fd: s.file.Fd(), uid: -1, reader: reader{hosts: root.Flags&unix.ST_RDONLY == 0}}).hear()
	return nil
}

// hearer answers who waits, one after the other, on a thread of its own, which stays the
// user that it was last. It blocks in the kernel: the runtime's poller would miss a
// wake-up that a signal came between.
type hearer struct {
	s          *starts
	fd         uintptr
	uid        int // the thread's, for files
	reader     reader
	said, vars []byte // what was read last of what a process became
}

func (h *hearer) hear() {
	runtime.LockOSThread() // and ends with it
	turn := time.Now()     // when it gave way last, or waited
	for last := turn; ; {
		// One that has not given way for 10 ms loses its processor in each system call
		// from then on, and another thread is woken each time.
		now := time.Now()
		switch {
		case now.Sub(last) > time.Millisecond:
			turn = now
		case now.Sub(turn) > 5*time.Millisecond:
			runtime.Gosched()
			turn = now
		}
		last = now
		n, err := receive(h.fd)
		switch {
		case err != nil:
			h.s.a.endWith(fmt.Sprintf("what is started cannot be seen any more: %v", err))
			return
		case n.Nr == sysFirst:
			h.lookAgain(n)
		default:
			h.decide(n)
		}
	}
}

// as makes the thread a user, as [actAs] does.
func (h *hearer) as(uid int) error {
	if h.uid == uid {
		return nil
	}
	h.uid = -1
	err := setfs(uid)
	if err == nil {
		h.uid = uid
	}
	return err
}

// of finds what is known of an exec's starts, or begins to know it.
func (s *starts) of(id string) *watched {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.watched[id]
	if w == nil {
		w = newWatched()
		s.watched[id] = w
	}
	return w
}

// end is for an exec that has ended, before that is told: nothing more is told of what
// it started. settled says that nothing of it lives.
func (s *starts) end(ex *exec, settled bool) {
	if ex.watched == nil {
		return
	}
	ex.watched.finish(settled)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch id, w := ex.req.ID, ex.watched; {
	case w.judged(): // whoever judges it drops it
	case w.awaited():
		time.AfterFunc(judgePatience, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.watched[id] == w && !w.judged() {
				delete(s.watched, id)
			}
		})
	default:
		delete(s.watched, id)
	}
}

// owner is the exec that a process belongs to, whose starts are seen.
func (s *starts) owner(p procInfo) (ex *exec, w *watched) {
	group := p.execGroup()
	s.a.mu.Lock()
	defer s.a.mu.Unlock()
	if ex = s.a.groups[group]; ex == nil {
		return nil, nil
	}
	return ex, ex.watched
}

// decide answers a notice, or has somebody asked about it.
func (h *hearer) decide(n *notice) {
	s, fd := h.s, h.fd
	p, ok := readProc(int(n.PID))
	if !ok {
		n.answer(fd, 0, false) // it is gone
		return
	}
	ex, w := s.owner(p)
	if ex == nil || w == nil {
		n.answer(fd, 0, ex != nil || p.uid == warmUser) // modules may start something while they are imported
		return
	}
	var b *begin
	var err error
	if err = h.as(p.uid); err == nil {
		b, err = h.reader.start(n, p, w.matter(), h.as)
	}
	if !n.waits(fd) {
		return // and so was what was read another's
	}
	if err != nil {
		b = &begin{}
	}
	if err == nil && b.errno != 0 {
		n.answer(fd, b.errno, false) // as the kernel would find, or has found by then
		return
	}
	if err == nil && b.file == "" {
		err = errNoFile
	}
	told := func() *wire.Start {
		t := b.told()
		t.PID, t.Parent, t.AtUS = p.group, p.parent, time.Since(w.began).Microseconds()
		return t
	}
	switch {
	case err != nil:
		w.refuse(told(), err)
		n.answer(fd, 0, false)
	case !w.starts.Ask || s.known(b):
		number := w.tell(told)
		if number == manyStarts {
			s.a.expectMany(ex)
		}
		s.pass(fd, n, p, w, b, number)
	default:
		go s.ask(fd, n, p, w, b, told())
	}
}

// ask has a start judged by the host.
func (s *starts) ask(fd uintptr, n *notice, p procInfo, w *watched, b *begin, t *wire.Start) {
	if b.own {
		var err error
		s.a.acting <- struct{}{}
		acted := actAs(p.uid, func() { err = b.contents(t) })
		<-s.a.acting
		if acted != nil || err != nil {
			w.refuse(t, fmt.Errorf("its file cannot be read: %w", errors.Join(acted, err)))
			n.answer(fd, 0, false)
			return
		}
	}
	switch v, err := w.ask(t); {
	case err != nil:
		w.refuse(t, err)
		n.answer(fd, 0, false)
	case !v.Allow:
		w.refused(t.N, v.Cause)
		n.answer(fd, 0, false)
	default:
		s.learn(b, v)
		s.pass(fd, n, p, w, b, t.N)
	}
}

// known reports whether a start was let pass before, or one that it is like.
func (s *starts) known(b *begin) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.image && len(b.env) == 0 {
		if _, any := s.programs[b.program()]; any {
			return true
		}
	}
	if len(s.passed) == 0 {
		return false
	}
	_, same := s.passed[b.key()]
	return same
}

// learn remembers an answer.
func (s *starts) learn(b *begin, v wire.Verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v.Any && b.image && len(b.env) == 0 {
		if s.programs == nil || len(s.programs) >= mostPassed {
			s.programs = map[program]struct{}{}
		}
		s.programs[b.program()] = struct{}{}
	}
	if v.Same && !b.cut {
		if s.passed == nil || len(s.passed) >= mostPassed {
			s.passed = map[[sha256.Size]byte]struct{}{}
		}
		s.passed[b.key()] = struct{}{}
	}
}

// follow forgets what was let pass by other rules.
func (s *starts) follow(rules string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if rules != s.rules {
		s.rules, s.passed, s.programs = rules, nil, nil
	}
}

// program is one of the image, and as what it is called: some do what their name says.
type program struct{ file, base, called string }

func (b *begin) program() program {
	p := program{file: b.file, base: path.Base(b.path)}
	if len(b.argv) > 0 {
		p.called = path.Base(b.argv[0])
	}
	return p
}

// key is made of all that is judged of a start.
func (b *begin) key() (k [sha256.Size]byte) {
	h := sha256.New()
	add := func(words ...string) {
		_, _ = h.Write(binary.NativeEndian.AppendUint64(nil, uint64(len(words)))) // a hash takes all
		for _, w := range words {
			_, _ = h.Write(binary.NativeEndian.AppendUint64(nil, uint64(len(w))))
			_, _ = h.Write([]byte(w))
		}
	}
	add(b.path, b.file, b.dir)
	add(b.argv...)
	add(b.env...)
	if b.own {
		st := b.stat
		add(fmt.Sprint(st.Dev_major, st.Dev_minor, st.Ino, st.Size, st.Mode, st.Mtime, st.Ctime))
	}
	h.Sum(k[:0])
	return k
}

// askPatience is how long an answer may take that no person gives, and judge's how
// long the host may take to hear an exec at all.
const (
	askPatience   = 60 * time.Second
	judgePatience = 10 * time.Second
)

var (
	errNoJudge = errors.New("nobody is there to judge it")
	errOver    = errors.New("its exec has ended")
	errLate    = errors.New("nobody answered in time")
)

// ask waits for the host's word about a start.
func (w *watched) ask(t *wire.Start) (wire.Verdict, error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), judgePatience, errNoJudge)
	defer cancel()
	w.toCall()
	select {
	case <-w.joined:
	case <-w.over:
		return wire.Verdict{}, errOver
	case <-ctx.Done():
		w.waitNoMore() // the next need not wait
		return wire.Verdict{}, context.Cause(ctx)
	}
	answers, gone, err := w.put(t)
	if err != nil {
		return wire.Verdict{}, err
	}
	late := time.NewTimer(askPatience)
	defer late.Stop()
	var goOn func()
	defer func() {
		if goOn != nil {
			goOn()
		}
	}()
	for {
		select {
		case v := <-answers:
			if v.Hold {
				late.Stop() // a person takes as long as the exec is there
				if goOn == nil {
					goOn = w.stand()
				}
				continue
			}
			return v, nil
		case <-gone:
			again := *t // the other may be on its way to who has gone
			if answers, gone, err = w.put(&again); err != nil {
				return wire.Verdict{}, err
			}
			late.Reset(askPatience)
		case <-w.over:
			return wire.Verdict{}, errOver
		case <-late.C:
			return wire.Verdict{}, errLate
		}
	}
}

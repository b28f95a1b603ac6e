//go:build linux

package pid1

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/yamux"
	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/wire"
)

// What is kept of starts for a host that has not heard of them yet.
const (
	mostTold      = 1000
	mostToldBytes = 512 << 10
	toldText      = 1 << 10  // of one that nobody is asked about
	endText       = 64 << 10 // of all that an exec's end tells

	// To wake who tells costs more than a start. One that nobody waits for is told
	// with others.
	tellPatience = 5 * time.Millisecond
)

// watched is what is known of one exec's starts: on the one side is what it starts, on
// the other who judges it. Either may come first.
type watched struct {
	starts wire.Starts
	began  time.Time
	env    map[string]struct{}          // the exec's own
	end    func(ending) <-chan struct{} // ends the exec; what it returns is closed once that is so
	stand  func() (goOn func())         // has the exec stand still until it may go on

	joined, over  chan struct{} // the first judge came, or did not in time; the exec ended
	join, endOnce sync.Once

	mu        sync.Mutex
	changed   sync.Cond
	call      func() // has the host come to judge; nil where it does by itself
	called    bool
	variables matter
	count     uint64
	told      int // since the last mark, with those of leftOut
	leftOut   int // of those, the ones that were only counted
	refusals  int
	unjudged  int          // of them, since nobody was there to judge
	shown     []wire.Start // the first ones, as a list shows them, by their number less one
	queue     []*wire.Start
	size      int  // of the queue's texts
	ready     bool // the queue is to be told
	slow      bool // it will be by itself
	waiting   map[uint64]chan wire.Verdict
	running   map[int]*started // by process: whose end is told
	gone      chan struct{}    // closed once the judge went; nil is that none is there
	coming    int              // judges that wait for the place of one
	enough    bool             // the judge wants no more
	done      bool             // nothing more comes
}

func newWatched() *watched {
	w := &watched{joined: make(chan struct{}), over: make(chan struct{}), waiting: map[uint64]chan wire.Verdict{}, running: map[int]*started{}}
	w.changed.L = &w.mu
	return w
}

// matter says which variables are looked at: those that make programs load or run
// something, and that the exec did not have so from the beginning. It does not change.
type matter struct {
	names    map[string]struct{}
	prefixes []string
	own      map[string]struct{}
}

func matterOf(variables []string) (m matter) {
	m.names = make(map[string]struct{}, len(variables))
	for _, v := range variables {
		if prefix, wild := strings.CutSuffix(v, "*"); wild {
			m.prefixes = append(m.prefixes, prefix)
		} else {
			m.names[v] = struct{}{}
		}
	}
	return m
}

func (w *watched) matter() matter {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.variables
	m.own = w.env
	return m
}

// is reports whether a variable, with its value, is looked at.
func (m *matter) is(kv []byte) bool {
	name, _, _ := bytes.Cut(kv, []byte{'='})
	_, found := m.names[string(name)]
	for i := 0; i < len(m.prefixes) && !found; i++ {
		found = len(name) >= len(m.prefixes[i]) && string(name[:len(m.prefixes[i])]) == m.prefixes[i]
	}
	if found {
		_, own := m.own[string(kv)]
		return !own
	}
	return false
}

// tell notes a start that was let pass, and returns its number. Those above
// [mostFollowed] are only counted.
func (w *watched) tell(told func() *wire.Start) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.told++; w.told > mostFollowed {
		w.leftOut++
		w.count++
		return w.count
	}
	t := told()
	w.numberLocked(t)
	w.queueLocked(t)
	return w.count
}

// queueLocked keeps a start until the host takes it, where there is room and it is
// still to hear of any. Where nobody waits for it, it may wait for others.
func (w *watched) queueLocked(t *wire.Start) {
	if w.done || w.enough {
		return
	}
	if !t.Asks {
		shorten(t)
		if len(w.queue) >= mostTold || w.size > mostToldBytes {
			w.leftOut++
			return
		}
	}
	w.queue = append(w.queue, t)
	w.size += textOf(t)
	switch {
	case t.Asks, len(w.queue) > mostTold/2, w.size > endText:
		w.hurryLocked()
	case !w.slow:
		w.slow = true
		time.AfterFunc(tellPatience, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.slow = false
			w.hurryLocked()
		})
	}
}

// hurryLocked has what is kept told now.
func (w *watched) hurryLocked() {
	w.ready = true
	w.callLocked()
	w.changed.Broadcast()
}

// callLocked calls the judge, where that does not come by itself.
func (w *watched) callLocked() {
	if w.call != nil && w.gone == nil && !w.called {
		w.called = true
		go w.call()
	}
}

func (w *watched) toCall() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.callLocked()
}

// waitNoMore has nobody wait for the first judge any more.
func (w *watched) waitNoMore() { w.join.Do(func() { close(w.joined) }) }

// rest is what is told with the end: all of it, where nobody judged or was called to.
func (w *watched) rest() []*wire.Start {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.call == nil || w.called || w.gone != nil {
		return nil
	}
	all := w.queue
	w.queue = nil
	return all
}

// markLocked tells the host that all is told that came before.
func (w *watched) markLocked() {
	w.queue = append(w.queue, &wire.Start{LeftOut: w.leftOut})
	w.told, w.leftOut = 0, 0
	w.hurryLocked()
}

func textOf(t *wire.Start) int {
	n := len(t.Path) + len(t.File) + len(t.Dir)
	for _, a := range t.Argv {
		n += len(a)
	}
	return n
}

// shorten cuts what is only told.
func shorten(t *wire.Start) {
	t.Env, t.Script = nil, nil
	left := toldText
	for i, a := range t.Argv {
		if left -= len(a); left < 0 {
			t.Argv, t.Cut = t.Argv[:i], true
			return
		}
	}
}

// put asks the judge about a start, who may go meanwhile. It waits for one that comes in
// the place of another.
func (w *watched) put(t *wire.Start) (answers chan wire.Verdict, gone <-chan struct{}, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	heard := func() bool { return w.gone != nil && !isClosed(w.gone) && !w.enough }
	for !heard() && w.coming > 0 && !w.done {
		w.changed.Wait()
	}
	if !heard() || w.done {
		return nil, nil, errNoJudge
	}
	if t.Asks = true; t.N == 0 {
		w.numberLocked(t)
	}
	answers = make(chan wire.Verdict, 2) // one to wait, one to go
	w.waiting[t.N] = answers
	w.queueLocked(t)
	return answers, w.gone, nil
}

// refuse notes a start that the agent refused by itself. It fails alone, and the exec
// goes on: nobody judged it.
func (w *watched) refuse(t *wire.Start, why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	told := *t // the other may be on its way to the host
	t = &told
	t.Asks, t.Refused = false, why.Error()
	if t.N == 0 {
		w.numberLocked(t)
	}
	w.refusals++
	if errors.Is(why, errNoJudge) {
		w.unjudged++
	}
	w.showRefusedLocked(t.N, t.Refused)
	w.queueLocked(t)
}

// refused notes that the host refused a start. Where that ends the exec, it does so
// before the start fails: nothing of the exec hears of it.
func (w *watched) refused(n uint64, cause string) {
	w.mu.Lock()
	w.refusals++
	w.showRefusedLocked(n, cause)
	w.mu.Unlock()
	if !w.starts.End {
		return
	}
	late := time.NewTimer(killPatience)
	defer late.Stop()
	select {
	case <-w.end(ending{endedDenied, cause}):
	case <-late.C:
	}
}

// totals counts what was started, what of it was refused, and what of that nobody was
// there to judge.
func (w *watched) totals() (all [3]int) {
	if w == nil {
		return all
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return [3]int{int(w.count), w.refusals, w.unjudged}
}

func (w *watched) judged() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gone != nil
}

// awaited reports whether a judge is on its way: one that was called, or that comes by
// itself and may still be behind the exec's end.
func (w *watched) awaited() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.called || w.call == nil
}

// next waits for starts to tell; nil is the end.
func (w *watched) next() []*wire.Start {
	w.mu.Lock()
	defer w.mu.Unlock()
	for (len(w.queue) == 0 || !w.ready) && !w.done && !w.enough {
		w.changed.Wait()
	}
	all := w.queue
	w.queue, w.size, w.ready = nil, 0, false
	return all
}

// hear hands a verdict to who waits for it.
func (w *watched) hear(v wire.Verdict) {
	w.mu.Lock()
	defer w.mu.Unlock()
	answers := w.waiting[v.N]
	if answers == nil {
		return
	}
	select {
	case answers <- v:
	default: // a host that says more than there is to say
	}
	if !v.Hold {
		delete(w.waiting, v.N)
	}
}

// callJudge tells the host what an exec starts, and takes its answers.
func (a *Agent) callJudge(s *yamux.Stream, r *wire.Reader, req *wire.Judge) {
	if !validID(req.ID) {
		fail(s, "invalid", errors.New("exec id "+req.ID))
		return
	}
	var w *watched
	if req.Again {
		var env *wire.Start
		if w, env = a.judgedOf(req.ID); w == nil {
			fail(s, "not_found", errors.New("no exec "+req.ID+" whose starts are seen"))
			return
		}
		w.come(1)
		if wire.WriteMessage(s, wire.TypeStart, env) != nil {
			w.come(-1)
			return
		}
	} else {
		w = a.starts.of(req.ID)
	}
	left := make(chan struct{})
	leave := sync.OnceFunc(func() { close(left) })
	go func() {
		w.obey(r)
		leave()
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.gone == left {
			w.enough = true
		}
		w.changed.Broadcast()
	}()
	seated := w.seat(left, req)
	if req.Again {
		w.come(-1)
	}
	if !seated {
		return
	}
	a.starts.follow(req.Rules)
	w.waitNoMore()
	defer func() {
		leave()
		a.starts.drop(req.ID, w)
	}()
	var buf []byte
	for {
		all := w.next()
		if all == nil {
			return
		}
		buf = buf[:0]
		for _, t := range all {
			var err error
			if buf, err = wire.AppendMessage(buf, wire.TypeStart, t); err != nil {
				w.hear(wire.Verdict{N: t.N}) // it does not fit, and is refused
			}
		}
		if _, err := s.Write(buf); err != nil {
			return
		}
	}
}

// seat waits until no other judge is there, and reports whether this one still is.
func (w *watched) seat(left chan struct{}, req *wire.Judge) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.gone != nil && !isClosed(left) {
		w.changed.Wait()
	}
	if isClosed(left) {
		return false
	}
	w.gone, w.enough, w.told = left, false, 0
	if req.Again {
		w.repeatLocked()
	}
	w.changed.Broadcast() // for who waits for a judge
	return true
}

// obey takes verdicts until the host has enough.
func (w *watched) obey(r *wire.Reader) {
	for {
		f, err := r.Next()
		if err != nil || f.Type != wire.TypeVerdict {
			return
		}
		var v wire.Verdict
		if f.Message(&v) != nil {
			return
		}
		if v.N == 0 {
			w.mu.Lock()
			w.markLocked()
			w.mu.Unlock()
			continue
		}
		w.hear(v)
	}
}

// drop is for an exec whose judge is gone. What it starts from then on is refused where
// it cannot be decided without, until another one comes. One that has ended, or has not
// begun, is forgotten.
func (s *starts) drop(id string, w *watched) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone, w.queue, w.size = nil, nil, 0
	w.changed.Broadcast()
	if w.done || w.began.IsZero() {
		delete(s.watched, id)
	}
}

// contents reads the file of a start that users can write.
func (b *begin) contents(t *wire.Start) error {
	f, err := os.OpenFile(b.openAs, os.O_RDONLY|unix.O_NONBLOCK, 0) // it may be a pipe by now
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if !st.Mode().IsRegular() {
		return errNoFile
	}
	h := sha256.New()
	head := &bytes.Buffer{}
	n, err := io.Copy(io.MultiWriter(h, &limited{head, wire.MaxStartScript}), io.LimitReader(f, st.Size()))
	if err != nil {
		return err
	}
	t.SHA256, t.Size = h.Sum(nil), n
	t.Native = bytes.HasPrefix(head.Bytes(), []byte("\x7fELF"))
	if !t.Native && n <= wire.MaxStartScript {
		t.Script = head.Bytes()
	}
	return nil
}

// limited keeps the first bytes that are written to it.
type limited struct {
	buf  *bytes.Buffer
	most int
}

func (l *limited) Write(p []byte) (int, error) {
	l.buf.Write(p[:min(len(p), l.most-l.buf.Len())])
	return len(p), nil
}

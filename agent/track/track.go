//go:build linux

package track

import (
	"hash/maphash"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/wire"
)

// Config says what is tracked. Root is required.
type Config struct {
	Root string
	// As runs do with the rights of the tree's user. nil runs it as it is.
	As func(do func()) error
	// Watch uses the kernel's watches. Without it each observation walks the
	// tree, which is as quick for a small one.
	Watch bool
}

// Tracker watches one tree. It is safe for concurrent use; an open
// [Observation] keeps others waiting. It starts no goroutine, and holds its
// watches until [Tracker.Close].
type Tracker struct {
	cfg  Config
	seed maphash.Seed

	looking sync.Mutex // held by an open Observation

	mu       sync.Mutex
	begun    bool
	inotify  int // -1 without watches
	wds      map[int32]*dir
	top      *dir
	walks    uint32
	count    int
	now      int64
	doubt    string            // the tree must be walked
	lameness string            // the tree must be walked each time
	partial  string            // not all of it is looked at
	pending  map[string]uint64 // touched paths, with who may have done it
	fresh    []string          // folders that appeared
	brief    map[string]uint8  // names that appeared: see suspect
	groups   map[uint64][]string
	member   map[string]uint64
	loose    map[uint64]uint32 // inodes that may have names that are not known, with their number of links
	actors   []string
	live     uint64 // who may touch things now
	since    uint64 // who may have since the last observation
	running  map[string]uint64
	muted    bool   // the tracker hears itself
	unheard  bool   // of a [Restorer], which is not watched by itself
	told     uint64 // of those, whom an observation named
	buf      [16 << 10]byte
}

// Actors, as bits. The first is the session itself: its background processes,
// its file operations, its other sandboxes. The last stands for all execs
// beyond those that have a bit of their own.
const (
	bySession = 1 << 0
	lastActor = 63
)

// New prepares a tracker. It looks at nothing yet.
func New(cfg Config) *Tracker {
	t := &Tracker{cfg: cfg, seed: maphash.MakeSeed(), inotify: -1, live: bySession, actors: []string{""}}
	t.reset()
	t.running = map[string]uint64{}
	return t
}

func (t *Tracker) reset() {
	t.wds, t.pending = map[int32]*dir{}, map[string]uint64{}
	t.groups, t.member, t.loose = map[uint64][]string{}, map[string]uint64{}, map[uint64]uint32{}
	t.top, t.brief = &dir{whole: true}, map[string]uint8{}
}

// Close gives the watches back.
func (t *Tracker) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.inotify < 0 {
		return nil
	}
	fd := t.inotify
	t.inotify = -1
	return unix.Close(fd)
}

func (t *Tracker) as(do func()) error {
	if t.cfg.As == nil {
		do()
		return nil
	}
	return t.cfg.As(do)
}

// startLocked makes the watches and looks at the tree for the first time: all
// that is there counts as touched.
func (t *Tracker) startLocked() {
	if t.begun {
		return
	}
	t.begun = true
	if t.cfg.Watch {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
		if err != nil {
			t.lame("the kernel has no more watchers: " + err.Error())
		} else {
			t.inotify = fd
		}
	} else {
		t.lame("it is not watched")
	}
	t.since |= t.live
	t.doubt = "it is looked at for the first time"
}

// Touched returns how many paths were touched and not observed yet, and at
// least 1 where only a walk can tell.
func (t *Tracker) Touched() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.startLocked()
	t.drain()
	return t.touchedLocked()
}

// Begin says that an exec is about to start; others that something of earlier
// execs still runs, fresh that what is there now is not to be booked to
// anybody.
func (t *Tracker) Begin(id string, others, fresh bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.startLocked()
	t.drain()
	if fresh {
		t.since = 0
	}
	bit := uint64(1) << lastActor
	if len(t.actors) < lastActor {
		bit = 1 << len(t.actors)
		t.actors = append(t.actors, id)
	}
	t.running[id] = bit
	t.aliveLocked(others)
}

// End says that an exec has ended; left that it, or an earlier one, has left
// something running. It returns how many paths were touched and not observed.
func (t *Tracker) End(id string, left bool) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drain()
	t.since |= t.live
	n := t.touchedLocked()
	if bit := t.running[id]; t.told&bit != 0 {
		n = max(n, 1)
	}
	delete(t.running, id)
	t.aliveLocked(left)
	return n
}

func (t *Tracker) aliveLocked(others bool) {
	t.live = 0
	for _, bit := range t.running {
		t.live |= bit
	}
	if others || t.live == 0 {
		t.live |= bySession
	}
}

func (t *Tracker) touchedLocked() int {
	if t.doubt != "" || t.lameness != "" {
		return max(1, len(t.pending))
	}
	return len(t.pending)
}

// Observation is what was touched. There is one at a time: whoever wants the
// next waits for [Observation.Done].
type Observation struct {
	t       *Tracker
	since   uint64
	Entries []wire.Entry
	Actors  []string // by bit: "" is the session; the last one of 64 is nobody known
	Walked  string   // why the tree was walked; "" where watches said it all
	Partial string   // what was not looked at
}

// Observe looks at what was touched since the last observation that was taken.
// exact walks the tree, whatever the watches say.
func (t *Tracker) Observe(exact bool) (*Observation, error) {
	t.looking.Lock()
	t.mu.Lock()
	defer t.mu.Unlock()
	o := &Observation{t: t}
	t.startLocked()
	err := t.as(func() {
		t.tick()
		t.drain()
		t.scanFresh(o)
		switch {
		case exact:
			o.Walked = "it was asked for"
		case t.doubt != "":
			o.Walked = t.doubt
		case t.lameness != "":
			o.Walked = t.lameness
		default:
			t.lookAll(o)
			if t.looseLocked() {
				o.Walked = "a file has hard links elsewhere"
			}
		}
		if o.Walked != "" {
			t.walkAll(o)
		}
	})
	if err != nil {
		t.looking.Unlock()
		return nil, err
	}
	o.Actors, o.Partial, o.since = slices.Clone(t.actors), t.partial, t.since
	t.since = 0
	clear(t.brief)
	for i := range o.Entries {
		t.told |= o.Entries[i].Actors
	}
	return o, nil
}

// Done ends an observation. One that was not taken is made again next time.
func (o *Observation) Done(taken bool) {
	t := o.t
	defer t.looking.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if !taken {
		t.since |= o.since
		for i := range o.Entries {
			t.touch(o.Entries[i].Path, o.Entries[i].Actors)
			if d := t.nodeOf(o.Entries[i].Path); d != nil && o.Entries[i].Whole {
				d.whole = true
			}
		}
		return
	}
	if len(t.pending) > 0 || t.since != 0 {
		return
	}
	// Bits are dealt out anew.
	told := t.told
	t.actors, t.told = append(t.actors[:0:0], ""), 0
	for id, was := range t.running {
		bit := uint64(1) << lastActor
		if len(t.actors) < lastActor {
			bit = 1 << len(t.actors)
			t.actors = append(t.actors, id)
		}
		t.running[id] = bit
		if told&was != 0 {
			t.told |= bit
		}
	}
	t.aliveLocked(t.live&bySession != 0)
}

// walkAll looks at the whole tree. What was touched and looks as it did is
// reported too: the watches know more than a coarse clock.
func (t *Tracker) walkAll(o *Observation) {
	at := make(map[string]int, len(o.Entries))
	for i := range o.Entries {
		at[o.Entries[i].Path] = i
	}
	t.walks++
	t.count, t.doubt, t.partial = 0, "", ""
	t.groups, t.member, t.loose = map[uint64][]string{}, map[string]uint64{}, map[uint64]uint32{}
	fd, err := t.openRoot()
	if err != nil {
		t.doubt = err.Error()
		return
	}
	defer unix.Close(fd)
	w := &walker{t: t, found: func(e wire.Entry) {
		if i, seen := at[e.Path]; seen {
			e.Actors, e.Whole = o.Entries[i].Actors, e.Whole || o.Entries[i].Whole
			if e.Names == nil {
				e.Names = o.Entries[i].Names
			}
			o.Entries[i] = e
			return
		}
		if e.Actors = t.pending[e.Path]; e.Actors == 0 {
			e.Actors = t.since
		}
		at[e.Path] = len(o.Entries)
		o.Entries = append(o.Entries, e)
	}}
	dot := [2]byte{'.', 0}
	if statAt(fd, &dot[0], &w.st) == nil {
		w.found(t.describe(fd, ".", ".", &w.st))
	}
	w.walk(t.top, fd, 0)
	var rest []string
	for p := range t.pending {
		if _, seen := at[p]; !seen {
			rest = append(rest, p)
		}
	}
	t.lookAt(o, rest)
	clear(t.pending)
	clear(t.loose) // what else they are called is outside the tree
}

// lookAll looks at what was touched.
func (t *Tracker) lookAll(o *Observation) {
	paths := make([]string, 0, len(t.pending))
	for p := range t.pending {
		paths = append(paths, p)
	}
	t.lookAt(o, paths)
	clear(t.pending)
}

// scanFresh looks through folders that appeared. What is in them was touched.
func (t *Tracker) scanFresh(o *Observation) {
	for len(t.fresh) > 0 && t.doubt == "" {
		fresh := t.fresh
		t.fresh = nil
		slices.Sort(fresh)
		for _, p := range slices.Compact(fresh) {
			actors := t.pending[p]
			t.scan(p, func(e wire.Entry) { t.touch(e.Path, actors) })
		}
		t.drain() // what came while they were read
	}
	t.fresh = nil
}

// scan looks through a folder that is new in the tree.
func (t *Tracker) scan(p string, found func(wire.Entry)) {
	parent := t.nodeOf(parentPath(p))
	if parent == nil {
		return // its own folder appeared too, or is gone
	}
	above, name, err := t.parentOf(p)
	if err != nil {
		return
	}
	defer above.close()
	w := &walker{t: t, all: true, found: found}
	cname := append([]byte(name), 0)
	if statAt(above.fd, &cname[0], &w.st) != nil || kindOf(w.st.Mode) != wire.KindDir {
		return
	}
	w.descend(w.sub(parent, name), above.fd, strings.Count(p, "/"))
}

func parentPath(p string) string {
	if i := strings.LastIndexByte(p, '/'); i >= 0 {
		return p[:i]
	}
	return "."
}

// nodeOf finds a folder that is known.
func (t *Tracker) nodeOf(p string) *dir {
	d := t.top
	if p == "." {
		return d
	}
	for name := range strings.SplitSeq(p, "/") {
		if d = d.subs[name]; d == nil {
			return nil
		}
	}
	return d
}

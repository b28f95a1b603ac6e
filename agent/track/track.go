//go:build linux

package track

import (
	"hash/maphash"
	"maps"
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
	// Watches is what it may take of them; nil is a budget of its own.
	Watches *Watches
}

// Tracker watches one tree. It is safe for concurrent use; an open
// [Observation] keeps the next one waiting, and nobody else. It starts no
// goroutine, and holds its watches until [Tracker.Close].
type Tracker struct {
	cfg     Config
	unheard bool // of a [Restorer], which is not watched by itself

	looking sync.Mutex // held by an open Observation

	// walking is held by who looks at the tree, for as long as that takes, and
	// guards what is remembered of it. mu is taken below it, for moments.
	walking sync.Mutex
	seed    maphash.Seed
	top     *dir
	walks   uint32
	count   int
	now     int64
	partial string // not all of it was looked at
	groups  map[uint64][]string
	member  map[string]uint64
	loose   map[uint64]uint32 // inodes that may have names that are not known, with their number of links

	// mu is never held over a look at the tree: execs begin and end meanwhile.
	mu       sync.Mutex
	begun    bool
	inotify  int // -1 without watches
	wds      map[int32]*dir
	doubt    string            // the tree must be walked
	lameness string            // the tree must be walked each time
	pending  map[string]uint64 // touched paths, with who may have done it
	folders  map[string]bool   // that may be others than before; true where one appeared
	brief    map[string]uint8  // names that appeared: see suspectLocked
	actors   []string
	live     uint64 // who may touch things now
	since    uint64 // who may have since the last observation
	running  map[string]uint64
	muted    bool   // the tracker hears itself
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
	if cfg.Watches == nil {
		cfg.Watches = &Watches{}
	}
	t := &Tracker{
		cfg: cfg, seed: maphash.MakeSeed(), top: &dir{whole: true}, inotify: -1, wds: map[int32]*dir{}, pending: map[string]uint64{},
		folders: map[string]bool{}, brief: map[string]uint8{}, actors: []string{""}, live: bySession, running: map[string]uint64{},
	}
	t.forgetLinks()
	return t
}

// Close gives the watches back.
func (t *Tracker) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cfg.Watch = false
	if t.inotify < 0 {
		return nil
	}
	fd := t.inotify
	t.inotify = -1
	t.cfg.Watches.Give(len(t.wds))
	clear(t.wds)
	return unix.Close(fd)
}

func (t *Tracker) as(do func()) error {
	if t.cfg.As == nil {
		do()
		return nil
	}
	return t.cfg.As(do)
}

// startLocked makes the watches. All that is there counts as touched.
func (t *Tracker) startLocked() {
	if t.begun {
		return
	}
	t.begun = true
	t.listenLocked()
	t.since |= t.live
	t.doubt = "it is looked at for the first time"
}

// Touched returns how many paths were touched and not observed yet, and at
// least 1 where only a walk can tell.
func (t *Tracker) Touched() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.startLocked()
	t.drainLocked()
	return t.touchedLocked()
}

// Begin says that an exec is about to start; others that something of earlier
// execs still runs, fresh that what is there now is not to be booked to
// anybody.
func (t *Tracker) Begin(id string, others, fresh bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.startLocked()
	t.drainLocked()
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
	t.drainLocked()
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

// forgetSums lets the next walk report every entry: what was found is more than
// is remembered of it.
func (t *Tracker) forgetSums() { t.seed = maphash.MakeSeed() }

// scanFolders looks through folders that appeared: what is in them was touched.
// What is known of others in their places is forgotten.
func (t *Tracker) scanFolders() {
	for {
		t.mu.Lock()
		t.drainLocked() // also what came while they were read
		folders := t.folders
		t.folders = map[string]bool{}
		t.mu.Unlock()
		if len(folders) == 0 {
			return
		}
		for _, p := range slices.Sorted(maps.Keys(folders)) {
			if d := t.nodeOf(p); d != nil {
				t.forgetDir(d)
			}
			if folders[p] && !t.doubtful() {
				t.scan(p)
			}
		}
	}
}

// doubtful reports whether the tree will be walked anyway.
func (t *Tracker) doubtful() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.doubt != ""
}

// scan looks through a folder that is new in the tree.
func (t *Tracker) scan(p string) {
	parent := t.nodeOf(parentPath(p))
	if parent == nil {
		return // its own folder appeared too, or is gone
	}
	above, name, err := t.parentOf(p)
	if err != nil {
		return
	}
	defer above.close()
	t.mu.Lock()
	actors := t.pending[p]
	t.mu.Unlock()
	w := &walker{t: t, all: true, stop: t.doubtful, found: func(e wire.Entry) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.touchLocked(e.Path, actors)
	}}
	cname := append([]byte(name), 0)
	if statAt(above.fd, &cname[0], &w.st) != nil || kindOf(w.st.Mode) != wire.KindDir {
		return
	}
	w.descend(w.sub(parent, name), above.fd, strings.Count(p, "/"))
	if t.doubtful() {
		t.forgetSums()
	}
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

//go:build linux

package pid1

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/wire"
)

// room holds the workspace to its size where its file system does not: a volume
// lies on the host's disk, together with all else. While execs run it compares the
// file system's own figures, which costs nothing, and counts what the workspace
// holds once those moved by as much as could matter. An exec that is over the size
// is ended; a workspace that was over it before may be emptied, and not grow.
type room struct {
	a *Agent

	mu      sync.Mutex
	guests  map[*exec]*guest
	running bool // a goroutine looks
	last    look
	brought int // how often the agent itself wrote to the workspace
}

// guest is an exec with what the workspace could hold for its sake.
type guest struct {
	most  held // known once based
	based bool
}

// look is one count of what the workspace holds.
type look struct {
	known bool
	held  held
	at    figures
	when  time.Time
	took  time.Duration
}

// held is what a workspace holds: allocated bytes, and entries.
type held struct{ bytes, entries int64 }

// figures are what is free on the file system of the workspace.
type figures struct{ bytes, entries int64 }

const (
	roomPause = 100 * time.Millisecond
	// A count rests for so many times its own length, and comes all the same after
	// a longer while: others may free what an exec takes.
	roomRest, roomAgain = 9, 50
	roomLeast           = 5 * time.Second
	// countPatience bounds the counts that an exec waits for: before it starts, where
	// the workspace may be full, and after its end, where it may be over.
	countPatience = 200 * time.Millisecond
)

func newRoom(a *Agent) *room { return &room{a: a, guests: map[*exec]*guest{}} }

// size is what the workspace may hold, and false where nobody is to watch it.
func (r *room) size() (held, bool) {
	c := r.a.claim
	return held{c.WorkspaceBytes, c.WorkspaceEntries}, c.WorkspaceBytes > 0
}

// free reads the file system's figures; bounded says that it has no more than the
// workspace may hold, so that nothing is to be watched.
func (r *room) free() (f figures, bounded bool) {
	var st unix.Statfs_t
	size, _ := r.size()
	if unix.Statfs(wire.WorkspaceDir, &st) != nil {
		return f, true
	}
	unit := int64(st.Frsize)
	if unit == 0 {
		unit = int64(st.Bsize)
	}
	f = figures{int64(st.Bfree) * unit, int64(st.Ffree)}
	return f, int64(st.Blocks)*unit <= size.bytes+size.bytes/8
}

// enter begins to watch on behalf of an exec, before it starts. leave ends that, and
// returns what is held where the exec took more than there is.
func (r *room) enter(ex *exec) (leave func() held) {
	fine := func() held { return held{} }
	size, watched := r.size()
	if !watched {
		return fine
	}
	now, bounded := r.free()
	if bounded {
		return fine
	}
	r.mu.Lock()
	within := r.last.known && !r.last.held.plus(r.last.at.since(now)).over(size)
	r.mu.Unlock()
	// What is there before is not this exec's doing, and has to be known.
	based := within || r.look(countPatience)
	r.mu.Lock()
	defer r.mu.Unlock()
	g := &guest{}
	if based {
		r.baseLocked(g)
	}
	r.guests[ex] = g
	if !r.running {
		r.running = true
		go r.watch()
	}
	return func() held { return r.leave(ex, g) }
}

// stale says that something was brought into the workspace by the agent itself: it is
// no exec's doing. The file system's figures may hide it, where others free as much.
func (r *room) stale() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.brought++
	r.last.known = false
}

// since is what was taken from the file system between two readings.
func (f figures) since(now figures) held {
	return held{max(0, f.bytes-now.bytes), max(0, f.entries-now.entries)}
}

func (h held) over(most held) bool { return h.bytes > most.bytes || h.entries > most.entries }

func (h held) plus(o held) held { return held{h.bytes + o.bytes, h.entries + o.entries} }

// baseLocked says what the workspace may hold while a guest is there: its size, or
// what it holds by now, with room for what deleting takes.
func (r *room) baseLocked(g *guest) {
	size, _ := r.size()
	is := r.last.held
	g.based = true
	g.most = held{max(size.bytes, is.bytes+size.bytes/64), max(size.entries, is.entries+size.entries/64)}
}

func (r *room) leave(ex *exec, g *guest) held {
	now, _ := r.free()
	r.mu.Lock()
	delete(r.guests, ex)
	fine := !g.based || r.last.known && !r.last.held.plus(r.last.at.since(now)).over(g.most)
	r.mu.Unlock()
	if fine || !r.look(countPatience) {
		return held{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last.held.over(g.most) {
		return r.last.held
	}
	return held{}
}

// watch looks while there are guests.
func (r *room) watch() {
	tick := time.NewTicker(roomPause)
	defer tick.Stop()
	for range tick.C {
		r.mu.Lock()
		if len(r.guests) == 0 {
			r.running = false
			r.mu.Unlock()
			return
		}
		due := r.dueLocked()
		r.mu.Unlock()
		if due && r.look(0) {
			r.judge()
		}
	}
}

// dueLocked reports whether something may have changed so much that it matters.
func (r *room) dueLocked() bool {
	if !r.last.known {
		return true
	}
	rested := time.Since(r.last.when)
	if rested < roomRest*r.last.took {
		return false
	}
	now, _ := r.free()
	size, _ := r.size()
	took := r.last.at.since(now)
	left := held{max(size.bytes-r.last.held.bytes, size.bytes/16), max(size.entries-r.last.held.entries, size.entries/16)}
	return took.bytes > left.bytes/4 || took.entries > left.entries/4 || rested > max(roomLeast, roomAgain*r.last.took)
}

// judge ends the guests that took more than there is.
func (r *room) judge() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for ex, g := range r.guests {
		if !g.based {
			r.baseLocked(g) // it was too much to count before
		}
		if r.last.held.over(g.most) {
			ex.end(endedDisk)
		}
	}
}

// look counts, within a time if one is given, and reports whether it came to its
// end.
func (r *room) look(within time.Duration) bool {
	began := time.Now()
	r.mu.Lock()
	brought := r.brought
	r.mu.Unlock()
	at, _ := r.free()
	c := &counter{seen: map[uint64]bool{}, stop: func() bool {
		if within > 0 {
			return time.Since(began) > within
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.guests) == 0
	}}
	if err := r.a.as("", func() { c.workspace(); c.nameless() }); err != nil || c.stopped {
		return false
	}
	c.nameless() // a hidden process's are root's
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = look{known: brought == r.brought, held: c.held, at: at, when: time.Now(), took: time.Since(began)}
	return true
}

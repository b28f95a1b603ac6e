//go:build linux

package track

import (
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/wire"
)

// Observation is what was touched. There is one at a time: whoever wants the
// next waits for [Observation.Done].
type Observation struct {
	t       *Tracker
	since   uint64 // who may have touched things since the last one
	early   uint64 // and who may have when this one began
	Entries []wire.Entry
	Actors  []string // by bit: "" is the session; the last one of 64 is nobody known
	Walked  string   // why the tree was walked; "" where watches said it all
	Partial string   // what was not looked at
}

// Observe looks at what was touched since the last observation that was taken.
// exact walks the tree, whatever the watches say. A walk ends early, and the
// observation says so, once stop reports that it shall; nil is never.
func (t *Tracker) Observe(exact bool, stop func() bool) (*Observation, error) {
	t.looking.Lock()
	t.walking.Lock()
	defer t.walking.Unlock()
	t.mu.Lock()
	t.startLocked()
	t.mu.Unlock()
	o := &Observation{t: t}
	t.partial = ""
	var touched map[string]uint64
	err := t.as(func() {
		t.tick()
		t.scanFolders()
		o.Walked, touched = t.takeTouched(o, exact)
		if o.Walked == "" {
			t.lookAt(o, touched, slices.Collect(maps.Keys(touched)))
			if t.looseNames() {
				o.Walked = "a file has hard links elsewhere"
			}
		}
		if o.Walked != "" {
			t.walkAll(o, touched, stop)
		}
	})
	if err != nil {
		t.suspect(err.Error())
		t.forgetSums() // what was found by then is lost
		t.looking.Unlock()
		return nil, err
	}
	t.book(o, touched)
	return o, nil
}

// takeTouched takes over what is to be looked at. What is heard of from then on
// waits for the next observation. why says why the tree is to be walked.
func (t *Tracker) takeTouched(o *Observation, exact bool) (why string, touched map[string]uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case exact:
		why = "it was asked for"
	case t.doubt != "":
		why = t.doubt
	case t.lameness != "":
		why = t.lameness
	}
	if why != "" {
		t.doubt, t.lameness = "", ""
	}
	o.since, t.since = t.since, 0
	o.early = o.since | t.live&^bySession
	touched, t.pending = t.pending, map[string]uint64{}
	clear(t.brief)
	return why, touched
}

// book says of each entry who may have touched it: also those of whom it is heard
// only now, since they did so while it was looked at.
func (t *Tracker) book(o *Observation, touched map[string]uint64) {
	t.mu.Lock()
	t.drainLocked()
	later := maps.Clone(t.pending)
	others := o.since | t.since | t.live&^bySession
	o.Actors, o.Partial = slices.Clone(t.actors), t.partial
	t.told |= others
	for _, by := range []map[string]uint64{touched, later} {
		for _, actors := range by {
			t.told |= actors
		}
	}
	t.mu.Unlock()
	for i := range o.Entries {
		e := &o.Entries[i]
		if e.Actors = touched[e.Path] | later[e.Path]; e.Actors != 0 {
			continue
		}
		if e.Actors = others; e.CTime > 0 && e.CTime < t.now-int64(coarse) {
			e.Actors = o.early // it has not been touched since
		}
	}
}

// Done ends an observation. One that was not taken is made again next time.
func (o *Observation) Done(taken bool) {
	t := o.t
	defer t.looking.Unlock()
	t.walking.Lock()
	defer t.walking.Unlock()
	if !taken {
		for i := range o.Entries {
			o.since |= o.Entries[i].Actors
			if d := t.nodeOf(o.Entries[i].Path); d != nil && o.Entries[i].Whole {
				d.whole = true
			}
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !taken {
		t.since |= o.since
		for i := 0; i < len(o.Entries) && t.doubt == ""; i++ {
			t.touchLocked(o.Entries[i].Path, o.Entries[i].Actors)
		}
		if t.doubt != "" {
			t.forgetSums()
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
func (t *Tracker) walkAll(o *Observation, touched map[string]uint64, stop func() bool) {
	at := make(map[string]int, len(o.Entries))
	for i := range o.Entries {
		at[o.Entries[i].Path] = i
	}
	t.walks++
	t.count = 0
	t.forgetLinks()
	t.mu.Lock()
	t.listenLocked()
	t.mu.Unlock()
	fd, err := t.openRoot()
	if err != nil {
		t.suspect(err.Error())
		return
	}
	defer unix.Close(fd)
	w := &walker{t: t, stop: stop, found: func(e wire.Entry) {
		i, seen := at[e.Path]
		if !seen {
			at[e.Path] = len(o.Entries)
			o.Entries = append(o.Entries, e)
			return
		}
		e.Whole = e.Whole || o.Entries[i].Whole
		if e.Names == nil {
			e.Names = o.Entries[i].Names
		}
		o.Entries[i] = e
	}}
	dot := [2]byte{'.', 0}
	if statAt(fd, &dot[0], &w.st) == nil {
		w.found(t.describe(fd, ".", ".", &w.st))
	}
	w.walk(t.top, fd, 0)
	if w.stopped {
		t.partial = "it took too long to look at everything"
		t.suspect("the last walk was not finished")
	}
	var rest []string
	for p := range touched {
		if _, seen := at[p]; !seen {
			rest = append(rest, p)
		}
	}
	t.lookAt(o, touched, rest)
	clear(t.loose) // what else they are called is outside the tree
}

// Forget takes what is in the tree now for what was there at the beginning.
func (t *Tracker) Forget() error {
	t.mu.Lock()
	begun := t.begun
	t.mu.Unlock()
	if !begun {
		return nil
	}
	o, err := t.Observe(false, nil)
	if err != nil {
		return err
	}
	o.Done(true)
	return nil
}

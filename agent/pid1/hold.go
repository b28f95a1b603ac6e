//go:build linux

package pid1

import "time"

// reader has output held for who reads from at on, until the func that it returns
// is called.
func (o *outputs) reader(at *[2]int64) (leave func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.readers[at], o.met = true, true
	o.changed.Broadcast()
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.readers, at)
		o.changed.Broadcast()
	}
}

// waiting is a writer's time for readers, which begins anew whenever one has
// taken something.
type waiting struct {
	patience time.Duration
	reads    int
	begun    time.Time
	timer    *time.Timer
}

func (w *waiting) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// awaitsLocked reports whether a reader is still to have what is before an offset
// of stream i. Whoever has taken nothing for too long is not held for any more.
func (o *outputs) awaitsLocked(i int, offset int64, w *waiting) bool {
	if !o.hold {
		return false
	}
	behind := !o.met
	for at := range o.readers {
		behind = behind || at[i] < offset
	}
	if !behind {
		return false
	}
	if w.timer == nil || w.reads != o.reads {
		w.stop()
		w.reads, w.begun, w.timer = o.reads, time.Now(), time.AfterFunc(w.patience, o.wake)
		return true
	}
	if time.Since(w.begun) < w.patience {
		return true
	}
	o.met = true
	for at := range o.readers {
		if at[i] < offset {
			delete(o.readers, at)
		}
	}
	return false
}

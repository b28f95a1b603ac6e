package javascript

// listens are methods of emitters that put a function aside for an event.
var listens = map[string]bool{"on": true, "once": true, "addListener": true, "prependListener": true, "prependOnceListener": true}

// maxEvents bounds what is kept of listeners and of events.
const maxEvents = 64

// events joins what is emitted to who listens, by the name of the event.
func (w *walk) events(s *site) {
	method := last(s.name)
	emits := method == "emit"
	if !emits && !listens[method] || len(s.args) == 0 {
		return
	}
	event, ok := s.arg(0).one()
	if !ok || len(w.listeners)+len(w.emits) >= maxEvents {
		return
	}
	if emits {
		w.emits = append(w.emits, emission{event, s.args[1:]})
		for _, l := range w.listeners {
			w.hears(l, emission{event, s.args[1:]}, s.n)
		}
		return
	}
	l := listener{event, s.arg(1)}
	w.listeners = append(w.listeners, l)
	for _, e := range w.emits {
		w.hears(l, e, s.n)
	}
}

type listener struct {
	event string
	f     *val
}

type emission struct {
	event string
	args  []*val
}

// hears calls a listener with what is emitted. Others may call it too.
func (w *walk) hears(l listener, e emission, n id) {
	if l.event != e.event {
		return
	}
	calls := 0
	if l.f.ref != nil && l.f.ref.fn != nil {
		calls = l.f.ref.fn.calls
	}
	w.back(l.f, e.args, n)
	if l.f.ref != nil && l.f.ref.fn != nil {
		l.f.ref.fn.calls = calls
	}
}

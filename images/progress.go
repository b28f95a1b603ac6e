package images

import (
	"fmt"

	"github.com/caisson-dev/caisson/sandbox"
)

// say hands on one line about a step.
func (s *Store) say(ref, format string, args ...any) {
	s.cfg.Progress(sandbox.Progress{Ref: ref, Text: fmt.Sprintf(format, args...)})
}

// done says that a step towards ref has ended, and how where there is
// something to say.
func (s *Store) done(ref, format string, args ...any) {
	s.cfg.Progress(sandbox.Progress{Ref: ref, Text: fmt.Sprintf(format, args...), Done: true})
}

// layers sums up what has arrived of an image's layers.
type layers map[string][2]sandbox.Bytes

// add takes in one message of a pull, and reports whether the sum has changed.
func (l layers) add(m pullMessage) (current, total sandbox.Bytes, changed bool) {
	if m.Status != "Downloading" || m.Progress.Total <= 0 {
		return 0, 0, false
	}
	l[m.ID] = [2]sandbox.Bytes{m.Progress.Current, m.Progress.Total}
	for _, v := range l {
		current, total = current+v[0], total+v[1]
	}
	return current, total, true
}

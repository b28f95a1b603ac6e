package sandbox

import "time"

// smallStep is by how much a clock may be set without anybody following it.
const smallStep = time.Minute

// ClockReading is what the machine's clock shows at a moment, and for how long the
// machine is up by then, which nobody can set.
type ClockReading struct {
	Wall time.Time     `json:"wall"`
	Up   time.Duration `json:"up"`
	Boot string        `json:"boot"` // since which it is up
}

// SetSince is by how much the clock was set since an earlier reading, but for less than a
// minute. Over a start of the machine that is known of a clock alone that shows an
// earlier time than before: it was set back by that much at least.
func (r ClockReading) SetSince(before ClockReading) time.Duration {
	by := r.Wall.Round(0).Sub(before.Wall.Round(0)) // by the clock, not by Go's own, which was not set
	if r.Boot == before.Boot && r.Up >= before.Up {
		by -= r.Up - before.Up
	} else {
		by = min(by, 0)
	}
	if by.Abs() < smallStep {
		return 0
	}
	return by
}

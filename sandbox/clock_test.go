package sandbox_test

import (
	"testing"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

func TestSetSince(t *testing.T) {
	t.Parallel()
	wall := time.Now()
	before := sandbox.ClockReading{Wall: wall, Up: 5 * time.Hour, Boot: "a"}
	for name, c := range map[string]struct {
		wall, up time.Duration // since before
		boot     string
		want     time.Duration
	}{
		"nothing":                    {time.Hour, time.Hour, "a", 0},
		"ahead":                      {3 * time.Hour, time.Hour, "a", 2 * time.Hour},
		"back":                       {-time.Hour, time.Hour, "a", -2 * time.Hour},
		"by little":                  {time.Hour + 50*time.Second, time.Hour, "a", 0},
		"another boot":               {time.Hour, -4 * time.Hour, "b", 0},
		"another boot, up for long":  {time.Hour, 9 * time.Hour, "b", 0},
		"back over a boot":           {-time.Hour, -4 * time.Hour, "b", -time.Hour},
		"the boot's name came again": {-time.Hour, -4 * time.Hour, "a", -time.Hour},
	} {
		now := sandbox.ClockReading{Wall: wall.Add(c.wall), Up: before.Up + c.up, Boot: c.boot}
		if got := now.SetSince(before); got != c.want {
			t.Errorf("%s: %s, not %s", name, got, c.want)
		}
	}
}

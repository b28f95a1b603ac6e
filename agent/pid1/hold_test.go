//go:build linux

package pid1

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-dev/caisson/agent/wire"
)

// TestHeldOutput: a writer waits for those who read, and for the first of them to
// come, but not for who takes nothing.
func TestHeldOutput(t *testing.T) {
	t.Parallel()
	flood := bytes.Repeat([]byte("x"), 4*outputKeep)
	begin := func(hold bool) (o *outputs, written chan time.Duration) {
		o, written = newOutputs(true, hold), make(chan time.Duration, 1)
		begun := time.Now()
		go func() {
			for p := flood; len(p) > 0; p = p[chunkSize:] {
				o.write(0, p[:chunkSize])
			}
			o.finish(&wire.End{})
			written <- time.Since(begun)
		}()
		synctest.Wait()
		return o, written
	}
	read := func(o *outputs, pause time.Duration) (got int64) {
		at := [2]int64{}
		defer o.reader(&at)()
		for {
			before := at[0]
			frame, end := o.next(nil, &at, func() bool { return false })
			if end != nil {
				return got
			}
			if len(frame) == 0 {
				t.Error("no frame and no end")
			}
			got += min(at[0]-before, chunkSize)
			time.Sleep(pause)
		}
	}
	for name, c := range map[string]struct {
		hold   bool
		late   time.Duration // so long after the writer the reader comes; < 0 is never
		pause  time.Duration // between two reads
		all    bool          // nothing is lost
		writer time.Duration // how long the writer took, where nobody waits for it
	}{
		"not held":        {late: 0, pause: time.Second},
		"held":            {hold: true, pause: time.Second, all: true},
		"a late reader":   {hold: true, late: holdPatience / 2, all: true},
		"no reader":       {hold: true, late: -1, writer: holdPatience},
		"a stuck reader":  {hold: true, pause: 3 * holdPatience},
		"nearly as stuck": {hold: true, pause: holdPatience / 2, all: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o, written := begin(c.hold)
				if c.late < 0 {
					if took := <-written; took != c.writer {
						t.Errorf("the writer took %s", took)
					}
					return
				}
				time.Sleep(c.late)
				if got := read(o, c.pause); (got == int64(len(flood))) != c.all {
					t.Errorf("read %d of %d bytes", got, len(flood))
				}
				<-written
			})
		})
	}
}

package executions

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// processBoot stands for the machine's boot where it does not tell: since processBegan.
var processBoot, processBegan = string(sandbox.NewID()), time.Now()

// uptime names the machine's boot, and for how long it is up since.
func uptime() (boot string, up time.Duration) {
	name, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err == nil {
		var text []byte
		text, err = os.ReadFile("/proc/uptime")
		seconds, _, _ := strings.Cut(string(text), " ")
		if err == nil {
			up, err = time.ParseDuration(seconds + "s")
		}
	}
	if err != nil {
		return processBoot, time.Since(processBegan)
	}
	return strings.TrimSpace(string(name)), up
}

func (b *Book) clock() *sandbox.ClockReading {
	boot, up := b.cfg.Up()
	return &sandbox.ClockReading{Wall: b.now().Round(0), Up: up, Boot: boot}
}

// FollowClock has what is to last or to wait for a time do so where the clock was set
// while nobody served. Who serves calls it before anything asks for the time.
func (b *Book) FollowClock(ctx context.Context) error {
	return b.cfg.Store.Apply(ctx, sandbox.Transaction{Clock: b.clock()})
}

// follow does so where the clock was set since a reading, and returns the next one.
func (b *Book) follow(ctx context.Context, before *sandbox.ClockReading) *sandbox.ClockReading {
	now := b.clock()
	step := now.SetSince(*before)
	if step == 0 {
		return now
	}
	if err := b.cfg.Store.Apply(ctx, sandbox.Transaction{Clock: now}); err != nil {
		if ctx.Err() == nil {
			b.cfg.Log.Warn("the clock was set, and what waits cannot follow it", "by", step, "error", err)
		}
		return before // it is seen once more
	}
	return now
}

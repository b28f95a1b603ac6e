//go:build linux

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/bench/measure"
	"github.com/caisson-dev/caisson/bench/rig"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/store/sqlite"
)

// openState measures opening a state folder with many events.
func openState(ctx context.Context, s *measure.Suite, f *fixture) error {
	const name, own = "open a state of 100,000 events", "open"
	if !s.Wants(name) {
		return nil
	}
	dir := filepath.Join(f.Dir, "large")
	st, err := sqlite.Open(ctx, sqlite.Config{Dir: dir})
	if err != nil {
		return err
	}
	err = st.Apply(ctx, sandbox.Transaction{Events: []sandbox.Event{{Time: time.Now(), Kind: "k", Session: "s", Data: []byte(`{"exit_code":0}`)}}})
	if err := errors.Join(err, st.Close()); err != nil {
		return err
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "state.db"))
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, `WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
		INSERT INTO events SELECT i, time, kind, actor, session, hex(randomblob(16)), hex(randomblob(16)), data, prev, hash, owner FROM events, n WHERE seq = 1`)
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	return s.Measure(ctx, measure.Set{
		Name: name, Unit: "ms", Rounds: 50, Warmup: 2,
		Subjects: []measure.Subject{{Name: own, Sample: func(ctx context.Context) (float64, error) {
			begin := time.Now()
			st, err := sqlite.Open(ctx, sqlite.Config{Dir: dir})
			took := time.Since(begin)
			if err != nil {
				return 0, err
			}
			return float64(took.Microseconds()) / 1000, st.Close()
		}}},
		Rows: []measure.Row{{Name: "state/open", Own: own, Bar: &measure.Bar{
			Asked: "p99 < 50 ms", Holds: func(own, _ measure.Stats) bool { return own.P99 < 50 },
		}}},
	})
}

// idle measures what idle sessions hold: each one's agent, and a share of this
// process, which is connected to all of them.
func idle(ctx context.Context, s *measure.Suite, f *fixture) error {
	const name = "idle sessions"
	if !s.Wants(name) {
		return nil
	}
	sessions, still := 100, 20*time.Second
	if s.Smoke {
		sessions, still = 2, time.Second
	}
	before, _, err := rig.Memory(os.Getpid())
	if err != nil {
		return err
	}
	var agents, shims []float64
	pids := []int{os.Getpid()}
	for i := range sessions {
		name := fmt.Sprintf("idle%d", i)
		if err := f.session(ctx, name); err != nil {
			return err
		}
		res, err := f.audited.ExecIn(ctx, name, justTrue, sandbox.Streams{})
		if err := rig.Succeeded(res, err); err != nil {
			return err
		}
		got, err := f.API.ContainerInspect(ctx, "caisson-"+string(res.Sandbox))
		if err != nil {
			return err
		}
		agent, parent, err := rig.Memory(got.State.Pid)
		if err != nil {
			return err
		}
		pids = append(pids, got.State.Pid)
		shim, _, err := rig.Memory(parent)
		if err != nil {
			return err
		}
		agents, shims = append(agents, agent), append(shims, shim)
	}
	after, _, err := rig.Memory(os.Getpid())
	if err != nil {
		return err
	}
	used, err := processorTime(ctx, pids, still)
	if err != nil {
		return err
	}
	err = s.Report(measure.Set{
		Name: fmt.Sprintf("processor time of %d idle sessions, of one core", sessions), Unit: "%", Subjects: []measure.Subject{{Name: "agents and manager"}},
		Rows: []measure.Row{{Name: "session/idle/cpu", Own: "agents and manager", Bar: measure.Below("< 2 %", 2)}},
	}, map[string][]float64{"agents and manager": {used}})
	if err != nil {
		return err
	}
	share := max(0, after-before) / float64(sessions)
	samples := map[string][]float64{"agent": agents, "engine's shim": shims}
	for i := range sessions {
		samples["agent and manager"] = append(samples["agent and manager"], agents[i]+share)
		samples["with the shim"] = append(samples["with the shim"], agents[i]+share+shims[i])
	}
	return s.Report(measure.Set{
		Name: "memory of an idle session", Unit: "MB", Subjects: []measure.Subject{{Name: "agent"}, {Name: "engine's shim"}, {Name: "agent and manager"}, {Name: "with the shim"}},
		Rows: []measure.Row{
			{Name: "session/idle/memory", Own: "agent and manager", Bar: &measure.Bar{
				Asked: "p50 <= 12 MB", Holds: func(own, _ measure.Stats) bool { return own.P50 <= 12 },
			}},
			{Name: "session/idle/memory-with-shim", Own: "with the shim"},
		},
	}, samples)
}

// processorTime is what processes use together while nobody asks them for
// anything, in percent of one core.
func processorTime(ctx context.Context, pids []int, still time.Duration) (percent float64, err error) {
	sum := func() (ticks int64, err error) {
		for _, pid := range pids {
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			if err != nil {
				return 0, err
			}
			// Behind the name, which may hold anything, utime and stime are the
			// 12th and 13th field.
			fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
			for _, f := range fields[11:13] {
				n, err := strconv.ParseInt(f, 10, 64)
				if err != nil {
					return 0, err
				}
				ticks += n
			}
		}
		return ticks, nil
	}
	before, err := sum()
	if err != nil {
		return 0, err
	}
	select {
	case <-time.After(still):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	after, err := sum()
	const perSecond = 100 // USER_HZ, the same on every Linux
	return float64(after-before) / perSecond / still.Seconds() * 100, err
}

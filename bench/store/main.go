//go:build linux

// Command store measures what it costs to record a run durably, beside a bare
// write to the same disk:
//
//	go run ./bench/store [-json] [-smoke]
//
// It needs nothing but a folder: TMPDIR, which should be on a disk and not in
// memory.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/caisson-dev/caisson/bench/measure"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/store/sqlite"
)

// callers is how many record at once, large how many events a large log has.
const (
	callers = 16
	large   = 100_000
)

func main() { os.Exit(measure.Main("store", run)) }

func run(ctx context.Context, s *measure.Suite) (err error) {
	dir, err := os.MkdirTemp("", "caisson-bench-store-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := recording(ctx, s, filepath.Join(dir, "recording")); err != nil {
		return err
	}
	return reading(ctx, s, filepath.Join(dir, "reading"))
}

// change is what the start of an exec records.
func change() sandbox.Transaction {
	id := sandbox.NewID()
	return sandbox.Transaction{
		PutExecs: []sandbox.ExecRecord{{ID: id, Session: "bench", Argv: []string{"python3", "-c", "pass"}, Holder: "bench", Started: time.Now()}},
		Events: []sandbox.Event{{Time: time.Now(), Kind: sandbox.EventExecStarted, Actor: "bench", Session: "bench", Exec: id,
			Data: json.RawMessage(`{"argv_digest":"sha256:0000000000000000000000000000000000000000000000000000000000000000"}`)}},
	}
}

// recording measures one change, alone and in a crowd. The peer appends as
// many bytes as SQLite writes for it, and waits for the disk.
func recording(ctx context.Context, s *measure.Suite, dir string) error {
	if !s.Wants("recording") {
		return nil
	}
	st, err := sqlite.Open(ctx, sqlite.Config{Dir: dir})
	if err != nil {
		return err
	}
	defer st.Close()
	if err := st.Apply(ctx, sandbox.Transaction{CreateSession: &sandbox.Session{ID: sandbox.NewID(), Name: "bench"}}); err != nil {
		return err
	}
	bare, err := os.Create(filepath.Join(dir, "bare"))
	if err != nil {
		return err
	}
	defer bare.Close()
	const written = 32 << 10
	block, offset := make([]byte, written), int64(0)
	return s.Measure(ctx, measure.Set{
		Name: "recording", Unit: "ms", Rounds: 1000, Warmup: 50,
		Subjects: []measure.Subject{
			{Name: "one change", Sample: measure.Millis(func(ctx context.Context) error { return st.Apply(ctx, change()) })},
			{Name: "16 at once", Every: 4, Sample: measure.Millis(func(ctx context.Context) error { return crowd(ctx, st) })},
			{Name: "bare write", Sample: measure.Millis(func(context.Context) error {
				if _, err := bare.WriteAt(block, offset); err != nil {
					return err
				}
				offset = (offset + written) % (4 << 20)
				return syscall.Fdatasync(int(bare.Fd()))
			})},
		},
		Rows: []measure.Row{
			{Name: "one change", Own: "one change", Peer: "bare write", Bar: &measure.Bar{
				Asked: "p50 <= 0.6 ms", Holds: func(own, _ measure.Stats) bool { return own.P50 <= 0.6 }}},
			{Name: "16 changes at once, until the last is durable", Own: "16 at once", Peer: "one change", Bar: &measure.Bar{
				Asked: "mean <= 10 x one", Holds: func(own, one measure.Stats) bool { return own.Mean <= 10*one.Mean }}},
		},
	})
}

func crowd(ctx context.Context, st *sqlite.Store) error {
	var wg sync.WaitGroup
	errs := make([]error, callers)
	for i := range callers {
		wg.Go(func() { errs[i] = st.Apply(ctx, change()) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// reading measures what a large log costs.
func reading(ctx context.Context, s *measure.Suite, dir string) error {
	if !s.Wants("reading") {
		return nil
	}
	st, err := sqlite.Open(ctx, sqlite.Config{Dir: dir})
	if err != nil {
		return err
	}
	defer func() { _ = st.Close() }() // the folder goes next
	for range large / 1000 {
		var c sandbox.Transaction
		for range 1000 {
			c.Events = append(c.Events, change().Events...)
		}
		if err := st.Apply(ctx, c); err != nil {
			return err
		}
	}
	if err := st.Close(); err != nil {
		return err
	}
	open := func(ctx context.Context) (*sqlite.Store, error) { return sqlite.Open(ctx, sqlite.Config{Dir: dir}) }
	if st, err = open(ctx); err != nil {
		return err
	}
	last := sandbox.EventFilter{After: large - 1}
	return s.Measure(ctx, measure.Set{
		Name: "reading", Unit: "ms", Rounds: 10, Warmup: 1,
		Subjects: []measure.Subject{
			{Name: "open", Sample: func(ctx context.Context) (float64, error) {
				if err := st.Close(); err != nil {
					return 0, err
				}
				return measure.Millis(func(ctx context.Context) (err error) { st, err = open(ctx); return err })(ctx)
			}},
			{Name: "verify", Sample: measure.Millis(func(ctx context.Context) error {
				r, err := st.Verify(ctx)
				if err == nil && (!r.OK || r.Events != large) {
					err = fmt.Errorf("%d events, %v", r.Events, r.Problems)
				}
				return err
			})},
			{Name: "poll", Sample: measure.Millis(func(ctx context.Context) error {
				n := 0
				for _, err := range st.Events(ctx, last) {
					if err != nil {
						return err
					}
					n++
				}
				if n != 1 {
					return fmt.Errorf("a poll gave %d events", n)
				}
				return nil
			})},
		},
		Rows: []measure.Row{
			{Name: "open 100,000 events", Own: "open", Peer: "poll", Bar: measure.Below("all < 50 ms", 50)},
			{Name: "verify 100,000 events", Own: "verify", Peer: "poll", Bar: measure.Below("all < 2 s", 2000)},
		},
	})
}

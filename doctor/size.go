package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/caisson-dev/caisson/sandbox"
)

// largeState is what the audit and the questions may take before it is told.
const largeState = 2 * sandbox.GiB

// stateSize: what has grown? Of the database what is in it, of all else in the
// state folder what it takes.
func stateSize(ctx context.Context, r *round) finding {
	inside, err := r.service.StateSizes(ctx)
	if err != nil {
		return failed(err, "look yourself: du -sh "+r.StateDir)
	}
	var all sandbox.Bytes
	var parts []string
	for _, s := range inside {
		all += s.Bytes
		parts = append(parts, fmt.Sprintf("%d %s %s", s.Count, s.What, s.Bytes.Human()))
	}
	entries, err := os.ReadDir(r.StateDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return warn("look yourself: du -sh "+r.StateDir, "not known: %v", err)
	}
	for _, e := range entries {
		size, err := sizeOf(ctx, filepath.Join(r.StateDir, e.Name()))
		if err != nil {
			return warn("look yourself: du -sh "+r.StateDir, "not known: %v", err)
		}
		if size >= sandbox.MiB || e.Name() == "state.db" {
			parts = append(parts, fmt.Sprintf("%s %s", e.Name(), size.Human()))
		}
	}
	what := strings.Join(parts, ", ")
	if all > largeState {
		return warn("caisson audit prune --older-than 2160h", "%s", what)
	}
	return ok("%s", what)
}

// sizeOf is what the files at a path take.
func sizeOf(ctx context.Context, top string) (sandbox.Bytes, error) {
	var size sandbox.Bytes
	err := filepath.WalkDir(top, func(_ string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return ctx.Err() // it went meanwhile
		}
		if err != nil || e.IsDir() {
			return errors.Join(err, ctx.Err())
		}
		if info, err := e.Info(); err == nil {
			size += sandbox.Bytes(info.Size())
		}
		return nil
	})
	return size, err
}

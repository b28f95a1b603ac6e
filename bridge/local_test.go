package bridge_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/agent/track"
	"github.com/caisson-dev/caisson/agent/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// local is a workspace in this process: the agent's own tracker without a
// sandbox around it.
type local struct {
	t       *track.Tracker
	dir     string
	observe func(*sandbox.Observation) // nil, or looks at what is handed out
	restore func() error               // nil, or is called before anything is restored
}

func newLocal(tb testing.TB, dir string) *local {
	tb.Helper()
	t := track.New(track.Config{Root: dir, Watch: true})
	tb.Cleanup(func() {
		if err := t.Close(); err != nil {
			tb.Error(err)
		}
	})
	return &local{t: t, dir: dir}
}

var kinds = [...]sandbox.FileKind{"", sandbox.KindFile, sandbox.KindDir, sandbox.KindLink, sandbox.KindOther}

func (l *local) Observe(ctx context.Context, opts sandbox.ObserveOptions, take func(*sandbox.Observation) error) error {
	o, err := l.t.Observe(opts.Exact, nil)
	if err != nil {
		return err
	}
	taken := false
	defer func() { o.Done(taken) }()
	seen := &sandbox.Observation{Walked: o.Walked, Partial: o.Partial}
	for _, raw := range o.Entries {
		// Through the wire's form, as it would come.
		e, err := wire.ReadEntry(bufio.NewReader(bytes.NewReader(wire.AppendEntry(nil, &raw))))
		if err != nil {
			return err
		}
		t := sandbox.Touched{Path: e.Path, Whole: e.Whole, Names: e.Names, State: sandbox.FileState{
			Kind: kinds[e.Kind], Mode: e.Mode, Links: e.Links, Size: e.Size, MTime: e.MTime, CTime: e.CTime, BTime: e.BTime, Inode: e.Inode,
		}}
		if e.Kind == wire.KindLink || e.Kind == wire.KindOther {
			t.State.Target = []byte(e.Target)
		}
		for i, a := range o.Actors {
			if e.Actors&(1<<i) != 0 {
				t.Execs = append(t.Execs, sandbox.ID(a))
			}
		}
		seen.Entries = append(seen.Entries, t)
	}
	seen.Read = func(_ context.Context, wants []sandbox.Want, take func(int, io.Reader, func() string) error) error {
		for i, w := range wants {
			if e := seen.Entries[w.Entry]; opts.Budget.Time > 0 || opts.Budget.Bytes > 0 && e.State.Size > int64(opts.Budget.Bytes) {
				if err := take(i, strings.NewReader(""), func() string { return "" }); err != nil {
					return err
				}
				continue
			}
			if err := l.read(seen.Entries[w.Entry].Path, w.Hash, func(r io.Reader, sum func() string) error { return take(i, r, sum) }); err != nil {
				return err
			}
		}
		return nil
	}
	if l.observe != nil {
		l.observe(seen)
	}
	if err := take(seen); err != nil {
		return err
	}
	taken = true
	return nil
}

func (l *local) read(path string, hashOnly bool, take func(io.Reader, func() string) error) error {
	f, err := l.t.Open(path)
	if err != nil {
		return take(strings.NewReader(""), func() string { return "" })
	}
	defer f.Close()
	h := sha256.New()
	tee := io.TeeReader(f, h)
	if hashOnly {
		if _, err := io.Copy(io.Discard, tee); err != nil {
			return err
		}
		return take(strings.NewReader(""), func() string { return hex.EncodeToString(h.Sum(nil)) })
	}
	return take(tee, func() string { return hex.EncodeToString(h.Sum(nil)) })
}

func (l *local) Restore(_ context.Context, entries []sandbox.Restore) error {
	if l.restore != nil {
		if err := l.restore(); err != nil {
			return err
		}
	}
	r := l.t.Restorer()
	for _, e := range entries {
		w := wire.Entry{Path: e.Path, Mode: e.State.Mode, MTime: e.State.MTime, Target: string(e.State.Target)}
		for i, k := range kinds {
			if k == e.State.Kind {
				w.Kind = byte(i)
			}
		}
		var content io.Reader
		if w.Kind == wire.KindFile {
			w.Target, w.Keep = e.LinkTo, e.LinkTo == "" && e.Open == nil
			if e.Open != nil {
				rc, err := e.Open()
				if err != nil {
					return err
				}
				defer rc.Close()
				content = rc
			}
		}
		if err := r.Make(w, content); err != nil {
			return err
		}
	}
	return r.Finish()
}

var _ sandbox.Tree = (*local)(nil)

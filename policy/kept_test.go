package policy_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"testing/fstest"

	"github.com/caisson-dev/caisson/policies"
	"github.com/caisson-dev/caisson/policy"
	"github.com/caisson-dev/caisson/policy/facts"
	"github.com/caisson-dev/caisson/sandbox"
)

// counting is a scanner that finds an import in every text, or fails.
type counting struct {
	scans int
	err   error
}

func (c *counting) Scan(_ context.Context, r facts.Request) (*facts.Document, error) {
	c.scans++
	d := rmRoot()
	d.Meta = facts.Meta{Lang: r.Lang, SHA256: fmt.Sprintf("%x", sha256.Sum256(r.Code)), Bytes: len(r.Code)}
	d.Imports = []facts.Import{{At: facts.At{Lang: facts.Python, Pos: facts.Pos{Line: 2}}, Module: "helper", Names: []string{"a"}}}
	return d, c.err
}

// A decision is kept for other processes, for exactly the same text, name, rules
// and programs; whoever has it needs no rules.
func TestKept(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "kept")
	request := policy.Request{Language: "python", Code: []byte("import helper"), File: "a.py"}
	base := policy.Config{Rules: policies.FS, Programs: "1", Lazy: true}
	// ask is another process that asks; it tells whether rules were loaded.
	ask := func(c policy.Config, s *counting, r policy.Request) (sandbox.Decision, []policy.Ref, bool) {
		t.Helper()
		folder := policy.NewFolder(dir)
		c.Keeper, c.Scanner = folder, s
		loaded := false
		d, err := policy.Defer(c, func(ctx context.Context) (*policy.Policy, error) {
			loaded = true
			return policy.Load(ctx, c)
		})
		if err != nil {
			t.Fatal(err)
		}
		dec, refs := d.Examine(t.Context(), r)
		if err := errors.Join(d.Err(), folder.Close()); err != nil {
			t.Fatal(err)
		}
		if dec.PolicyRevision != d.Revision() {
			t.Errorf("revision %s, not %s", dec.PolicyRevision, d.Revision())
		}
		return dec, refs, loaded
	}
	if _, _, loaded := ask(base, &counting{err: errors.New("broken")}, request); !loaded {
		t.Error("decided without rules")
	}
	first, refs, loaded := ask(base, &counting{}, request)
	if !loaded || first.Verdict != sandbox.Deny || len(refs) == 0 {
		t.Fatalf("after a scan that failed: loaded %v, %+v, %+v", loaded, first, refs)
	}
	s := &counting{}
	again, sameRefs, loaded := ask(base, s, request)
	if loaded || s.scans != 0 || !reflect.DeepEqual(first, again) || !reflect.DeepEqual(refs, sameRefs) {
		t.Errorf("the same again: loaded %v, %d scans, %+v, %+v", loaded, s.scans, again, sameRefs)
	}
	other := func(change func(c *policy.Config, r *policy.Request)) (policy.Config, policy.Request) {
		c, r := base, request
		change(&c, &r)
		return c, r
	}
	for name, change := range map[string]func(*policy.Config, *policy.Request){
		"a byte":       func(_ *policy.Config, r *policy.Request) { r.Code = []byte("import helpeR") },
		"a name":       func(_ *policy.Config, r *policy.Request) { r.File = "b.py" },
		"a language":   func(_ *policy.Config, r *policy.Request) { r.Language = "bash" },
		"a context":    func(_ *policy.Config, r *policy.Request) { r.Context = map[string]any{"x": 1} },
		"the programs": func(c *policy.Config, _ *policy.Request) { c.Programs = "2" },
		"the data": func(c *policy.Config, _ *policy.Request) {
			c.Data = fstest.MapFS{"waivers.yaml": {Data: []byte("waivers: [] # none\n")}}
		},
	} {
		c, r := other(change)
		if _, _, loaded := ask(c, &counting{}, r); !loaded {
			t.Errorf("another of %s: it was not decided anew", name)
		}
	}
	// One that a waiver bears on is not kept: its end changes it.
	c, r := other(func(c *policy.Config, _ *policy.Request) {
		c.Data = fstest.MapFS{"waivers.yaml": {Data: []byte("waivers: [{rule: SBX-FS-0001, digest: " + sumOfABC + ", expires: 2999-01-01T00:00:00Z}]\n")}}
	})
	for range 2 {
		if _, _, loaded := ask(c, &counting{}, r); !loaded {
			t.Error("a decision was kept that will end")
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f.Name()), []byte(`{"decision":{"verdict":"allow"}}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if d, _, loaded := ask(base, &counting{}, request); !loaded || d.Verdict != sandbox.Deny {
		t.Errorf("with files that say something else: loaded %v, %+v", loaded, d)
	}
}

func TestDeferredThatCannotLoad(t *testing.T) {
	t.Parallel()
	broken := errors.New("no scanner")
	d, err := policy.Defer(policy.Config{Rules: policies.FS}, func(context.Context) (*policy.Policy, error) { return nil, broken })
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Err(); err != nil {
		t.Errorf("before it was needed: %v", err)
	}
	if dec, _ := d.Examine(t.Context(), policy.Request{Language: "bash", Code: []byte("true")}); dec.Verdict != sandbox.Deny || !errors.Is(d.Err(), broken) {
		t.Errorf("%+v, %v", dec, d.Err())
	}
	if dec := d.DecideContext(t.Context(), "", nil); dec.Verdict != sandbox.Deny {
		t.Errorf("%+v", dec)
	}
	other := policy.Config{Rules: policies.FS, Data: fstest.MapFS{"waivers.yaml": {Data: []byte("waivers: []\n")}}}
	if d, err = policy.Defer(policy.Config{Rules: policies.FS}, func(ctx context.Context) (*policy.Policy, error) { return policy.Load(ctx, other) }); err != nil {
		t.Fatal(err)
	}
	if dec := d.DecideContext(t.Context(), "", nil); dec.Verdict != sandbox.Deny || !errors.Is(d.Err(), sandbox.Conflict) {
		t.Errorf("with rules that changed meanwhile: %+v, %v", dec, d.Err())
	}
	if _, err := policy.Defer(policy.Config{}, nil); !errors.Is(err, sandbox.Invalid) {
		t.Errorf("without rules: %v", err)
	}
}

// TestKeptIsBounded keeps one more beside too many, and beside too much: all is
// forgotten, and kept anew.
func TestKeptIsBounded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files int
		size  int64
		full  bool
	}{
		"few":      {100, 1, false},
		"too many": {4097, 1, true},
		"large":    {60, 1 << 20, false},
		"too much": {65, 1 << 20, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for i := range c.files {
				f, err := os.Create(filepath.Join(dir, fmt.Sprintf("f%d", i)))
				if err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(f.Truncate(c.size), f.Close()); err != nil { // a hole takes no disk
					t.Fatal(err)
				}
			}
			for _, key := range []string{"00a", "11b"} {
				folder := policy.NewFolder(dir)
				folder.Put(key, []byte("x"))
				if err := folder.Close(); err != nil {
					t.Fatal(err)
				}
			}
			want := c.files + 2
			if c.full {
				want = 1
			}
			if list, err := os.ReadDir(dir); err != nil || len(list) != want {
				t.Errorf("%d files, not %d, %v", len(list), want, err)
			}
		})
	}
}

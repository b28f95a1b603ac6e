package policy_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"
	"time"

	"github.com/caisson-dev/caisson/policies"
	"github.com/caisson-dev/caisson/policy"
	"github.com/caisson-dev/caisson/policy/facts"
	"github.com/caisson-dev/caisson/sandbox"
)

// byCode is a scanner that finds what a text says: "bad" deletes everything.
type byCode struct{ counting }

func (c *byCode) Scan(ctx context.Context, r facts.Request) (*facts.Document, error) {
	d, err := c.counting.Scan(ctx, r)
	if string(r.Code) != "bad" {
		d = &facts.Document{Meta: d.Meta}
	}
	return d, err
}

// A file of the folder that lies there for another key, or that is not what was
// written into it, is none.
func TestKeptThatIsBroken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ask := func(code string) (sandbox.Verdict, bool) {
		t.Helper()
		folder, s := policy.NewFolder(dir), &byCode{}
		p, err := policy.Load(t.Context(), policy.Config{Rules: policies.FS, Programs: "1", Lazy: true, Keeper: folder, Scanner: s})
		if err != nil {
			t.Fatal(err)
		}
		d := p.Judge(t.Context(), policy.Request{Language: "bash", Code: []byte(code)})
		about := map[string]any{"x": 1}
		if code == "bad" {
			about = map[string]any{"container": map[string]any{"HostConfig": map[string]any{"Privileged": true}}}
		}
		clean := p.DecideContext(t.Context(), "key of "+code, about)
		if err := folder.Close(); err != nil {
			t.Fatal(err)
		}
		if (code == "bad") != (clean.Verdict != sandbox.Allow) {
			t.Errorf("a plan of %s: %s", code, clean.Verdict)
		}
		return d.Verdict, s.scans > 0
	}
	files := func() map[string][]byte {
		m := map[string][]byte{}
		list, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range list {
			b, err := os.ReadFile(filepath.Join(dir, f.Name()))
			if err != nil {
				t.Fatal(err)
			}
			m[f.Name()] = b
		}
		return m
	}
	put := func(name string, b []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	good := func() (key string) {
		t.Helper()
		before := files()
		ask("good")
		for name, b := range files() {
			if before[name] == nil && string(b[64:65]) == "{" && len(b) < 4096 {
				key = name
			}
		}
		return key
	}
	goodKey := good()
	if v, _ := ask("bad"); v != sandbox.Deny {
		t.Fatal(v)
	}
	whole := files()
	var badKey string
	for name, b := range whole {
		if name != goodKey && b[64] == '{' && len(b) < 8192 {
			badKey = name
		}
	}
	if goodKey == "" || badKey == "" {
		t.Fatalf("%q, %q of %d files", goodKey, badKey, len(whole))
	}
	if v, scanned := ask("bad"); v != sandbox.Deny || scanned {
		t.Fatalf("it was not kept: %s, scanned %v", v, scanned)
	}
	flipped := func(at int) []byte {
		b := slices.Clone(whole[badKey])
		b[at] ^= 1
		return b
	}
	for name, b := range map[string][]byte{
		"of another text":   whole[goodKey],
		"without its sum":   whole[goodKey][64:],
		"empty":             {},
		"a page of nothing": make([]byte, 4096),
		"cut":               whole[badKey][:len(whole[badKey])/2],
		"longer":            append(slices.Clone(whole[badKey]), 'x'),
		"a bit of the sum":  flipped(3),
		"a bit of the text": flipped(len(whole[badKey]) / 2),
		"ends in nothing":   append(slices.Clone(whole[badKey][:100]), make([]byte, len(whole[badKey])-100)...),
	} {
		put(badKey, b)
		if v, scanned := ask("bad"); v != sandbox.Deny || !scanned {
			t.Errorf("%s: %s, scanned %v", name, v, scanned)
		}
	}
	// Every file in the place of every other: whatever is asked is answered anew.
	names := make([]string, 0, len(whole))
	for name := range whole {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		put(name, whole[names[(i+1)%len(names)]])
	}
	for code, want := range map[string]sandbox.Verdict{"good": sandbox.Allow, "bad": sandbox.Deny} {
		if v, _ := ask(code); v != want {
			t.Errorf("with files in each other's places, %s: %s", code, v)
		}
	}
}

// Two arguments that differ in bytes which are no text have two decisions.
func TestKeptForExactArguments(t *testing.T) {
	t.Parallel()
	s := &byCode{}
	folder := policy.NewFolder(t.TempDir())
	p, err := policy.Load(t.Context(), policy.Config{Rules: policies.FS, Keeper: folder, Scanner: s})
	if err != nil {
		t.Fatal(err)
	}
	starts := []policy.Start{
		{}, {Known: true}, {Known: true, Sealed: true}, {Known: true, Name: "/workspace/a"}, {Known: true, Zero: &policy.Given{Alts: []string{"a"}}},
		{Known: true, Args: []policy.Given{policy.Told("a")}}, {Known: true, Args: []policy.Given{policy.Told("\xff")}}, {Known: true, Args: []policy.Given{policy.Told("\xfe")}},
		{Known: true, Args: []policy.Given{policy.Told("a"), policy.Told("b")}}, {Known: true, Args: []policy.Given{policy.Told("a", "b")}}, {Known: true, Args: []policy.Given{policy.Told("ab")}},
		{Known: true, Args: []policy.Given{policy.Passed()}}, {Known: true, Args: []policy.Given{{Prefix: "a"}}}, {Known: true, Args: []policy.Given{{Suffix: "a"}}},
		{Known: true, Env: map[string]policy.Given{"a": policy.Told("b")}}, {Known: true, Env: map[string]policy.Given{"a": policy.Told("\xff")}}, {Known: true, Env: map[string]policy.Given{"a\xff": policy.Told("b")}},
		{Known: true, Env: map[string]policy.Given{"a": {Alts: []string{"b"}, Open: true}}}, {Known: true, Env: map[string]policy.Given{"a": policy.Passed()}},
	}
	for range 2 {
		for _, start := range starts {
			p.Judge(t.Context(), policy.Request{Language: "bash", Code: []byte("good"), Start: start})
		}
	}
	if err := folder.Close(); err != nil {
		t.Fatal(err)
	}
	if s.scans != len(starts) {
		t.Errorf("%d ways of starting were scanned %d times", len(starts), s.scans)
	}
}

// What a rule says by the time of day is asked each time.
func TestRulesThatTellTheTime(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]string{"by name": `input.now > "2026-01-01T12"`, "in the whole": `some k, v in input; k == "now"; v > "2026-01-01T12"`} {
		user := map[string]fs.FS{"t": fstest.MapFS{"a.rego": {Data: []byte("package caisson.user.t\n\nfindings contains {\"id\": \"A\", \"severity\": \"high\", \"msg\": \"late\"} if { " + rule + " }\n")}}}
		now := time.Date(2026, 1, 1, 11, 0, 0, 0, time.UTC)
		dir := t.TempDir()
		load := func() (*policy.Policy, *policy.Folder) {
			folder := policy.NewFolder(dir)
			p, err := policy.Load(t.Context(), policy.Config{Rules: policies.FS, User: user, Lazy: true, Keeper: folder, Scanner: &byCode{}, Now: func() time.Time { return now }})
			if err != nil {
				t.Fatal(err)
			}
			return p, folder
		}
		r := policy.Request{Language: "bash", Code: []byte("good")}
		p, folder := load()
		verdicts := func(p *policy.Policy) []sandbox.Verdict {
			return []sandbox.Verdict{p.Judge(t.Context(), r).Verdict, p.DecideContext(t.Context(), "a plan", map[string]any{"x": 1}).Verdict}
		}
		early := verdicts(p)
		now = now.Add(2 * time.Hour)
		late := verdicts(p)
		other, otherFolder := load()
		elsewhere := verdicts(other)
		if err := errors.Join(folder.Close(), otherFolder.Close()); err != nil {
			t.Fatal(err)
		}
		ask := []sandbox.Verdict{sandbox.Ask, sandbox.Ask}
		if !slices.Equal(early, []sandbox.Verdict{sandbox.Allow, sandbox.Allow}) || !slices.Equal(late, ask) || !slices.Equal(elsewhere, ask) {
			t.Errorf("%s: %v, then %v, in another process %v", name, early, late, elsewhere)
		}
	}
}

package policy

import (
	"io/fs"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/caisson-dev/caisson/policies"
	"github.com/caisson-dev/caisson/policy/facts"
	"github.com/caisson-dev/caisson/sandbox"
)

// memory is a Keeper.
type memory struct {
	mu sync.Mutex
	m  map[string][]byte
}

func (k *memory) Get(key string) ([]byte, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	b, ok := k.m[key]
	return b, ok
}

func (k *memory) Put(key string, value []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.m == nil {
		k.m = map[string][]byte{}
	}
	k.m[key] = slices.Clone(value)
}

// preparedDocuments have one fact each, of every sort that rules look at.
func preparedDocuments(t *testing.T, needs []need) []*facts.Document {
	t.Helper()
	at := facts.At{Pos: facts.Pos{Line: 1, Col: 1}}
	any1 := func(list []string, other string) string {
		if len(list) == 0 {
			return other
		}
		return list[0]
	}
	var docs []*facts.Document
	for _, n := range needs {
		d := &facts.Document{Meta: facts.Meta{Lang: facts.Shell, SHA256: "abc"}}
		first, then := any1(n.first, "x"), any1(n.then, "home")
		switch n.part {
		case "files":
			d.Files = []facts.File{{At: at, Op: any1(n.first, facts.OpDelete), Class: then, Path: "/x", Recursive: true, By: "rm"}}
		case "net":
			d.Net = []facts.Net{{At: at, Class: any1(n.first, "public"), Op: any1(n.then, "connect"), Host: "x", By: ">&"}}
		case "env":
			d.Env = []facts.Env{{At: at, Op: first, Class: then, Name: "X"}}
		case "commands":
			d.Commands = []facts.Command{{At: at, Name: first, Background: true, Flags: []string{"r", "f"}, Operands: []string{"/"}}}
		case "actions":
			d.Actions = []facts.Action{{At: at, Op: first, Detail: "x", By: "y"}}
		case "dynamic":
			d.Dynamic = []facts.Dynamic{{At: at, Kind: first, Detail: "x"}}
		case "strings":
			d.Strings = []facts.String{{At: at, Kind: first, Text: "x"}}
		case "structs":
			d.Structs = []facts.Struct{{At: at, Kind: first}}
		case "pipelines":
			d.Pipes = []facts.Pipeline{{At: at, Names: []string{"curl", "sh"}}}
		case "imports":
			d.Imports = []facts.Import{{At: at, Module: first}}
		case "calls":
			d.Calls = []facts.Call{{At: at, Name: first}}
		case "ctx":
		default:
			t.Fatalf("no fact for %s", n.name())
		}
		docs = append(docs, d)
	}
	return docs
}

// A process that has the rules in pieces decides as one that compiles them all,
// whatever it judges first.
func TestPreparedDecidesTheSame(t *testing.T) {
	t.Parallel()
	user := map[string]fs.FS{"team": fstest.MapFS{"a.rego": {Data: []byte(`package caisson.user.team

import data.caisson.user.team as me

wanted := {"nobody", "rm"}

findings contains {"id": "A", "severity": "low", "msg": "x"} if not input.commands.sh

findings contains {"id": "B", "severity": "high", "msg": "x"} if {
	some name in me.wanted
	some _ in input.commands[name]
}
`)}}}
	kept := &memory{}
	c := Config{Rules: policies.FS, User: user, Lazy: true, Keeper: kept, Programs: "1", Timeout: unhurried}
	whole, err := Load(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if len(kept.m) != 1 {
		t.Fatalf("%d things were kept, not the rules", len(kept.m))
	}
	decide := func(p *Policy, d *facts.Document, ctx map[string]any) sandbox.Decision {
		return p.Decide(t.Context(), d, Request{Context: ctx})
	}
	fresh := func() *Policy {
		p, err := Load(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if p.snap.Load().kept == nil {
			t.Fatal("the rules were not taken from what was kept")
		}
		return p
	}
	gate := map[string]any{"gate": map[string]any{"unjudged": []any{map[string]any{"name": "x", "why": "y"}}, "env": []any{}, "later": []any{}, "background": false}}
	docs := preparedDocuments(t, whole.snap.Load().needs)
	docs = append(docs, trickyDocuments()[:200]...)
	found := 0
	lasting := fresh()
	for i, d := range docs {
		ctx := gate
		if i%2 == 0 {
			ctx = nil
		}
		want := decide(whole, d, ctx)
		found += len(want.Findings)
		if got := decide(lasting, d, ctx); !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v\nwhole:  %+v\npieces: %+v", d, want, got)
		}
		if i > 130 {
			continue // to compile takes a while
		}
		if got := decide(fresh(), d, ctx); !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v\nwhole:          %+v\npieces, at first: %+v", d, want, got)
		}
	}
	if found < 200 {
		t.Errorf("only %d findings were compared", found)
	}
	if s := lasting.snap.Load().selected; s.times != mostSelections+1 || slices.Contains(s.compiled, false) {
		t.Errorf("a process that judges much compiled %d times, and not all", s.times)
	}
}

// unhurried is for tests of what is decided, and not of how soon: a busy machine
// may take more than the second that an evaluation has, above all a first one.
const unhurried = time.Minute

// A process that has nothing kept compiles some rules too, and decides the same.
func TestLazyDecidesTheSame(t *testing.T) {
	t.Parallel()
	load := func(lazy bool) *Policy {
		p, err := Load(t.Context(), Config{Rules: policies.FS, Lazy: lazy, Timeout: unhurried})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	whole, lasting := load(false), load(true)
	found := 0
	for i, d := range append(preparedDocuments(t, whole.snap.Load().needs), trickyDocuments()[:100]...) {
		want := whole.Decide(t.Context(), d, Request{})
		found += len(want.Findings)
		if got := lasting.Decide(t.Context(), d, Request{}); !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v\nwhole: %+v\nlazy:  %+v", d, want, got)
		}
		if i%4 != 0 {
			continue // to compile takes a while
		}
		if got := load(true).Decide(t.Context(), d, Request{}); !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v\nwhole:          %+v\nlazy, at first: %+v", d, want, got)
		}
	}
	if s := lasting.snap.Load().selected; found < 100 || s.times != mostSelections+1 || slices.Contains(s.compiled, false) {
		t.Errorf("%d findings, %d times compiled", found, s.times)
	}
}

// TestUsesOfShippedRules: what a rule uses as it stands is all that the compiler
// finds that it refers to.
func TestUsesOfShippedRules(t *testing.T) {
	t.Parallel()
	list, modules := shipped(t)
	where, piece := places{}, 0
	var plain [][]int
	for _, src := range list {
		for _, r := range modules[src.key()].Rules {
			where.add(modules[src.key()].Package.Path, r, piece)
			piece++
		}
	}
	for _, src := range list {
		for _, r := range modules[src.key()].Rules {
			plain = append(plain, where.usedBy(modules[src.key()], r))
		}
	}
	comp, err := compile(modules, capabilities(), true)
	if err != nil {
		t.Fatal(err)
	}
	i, uses := 0, 0
	for _, src := range list {
		for _, r := range comp.Modules[src.key()].Rules {
			ast.WalkRefs(r, func(ref ast.Ref) bool {
				for _, p := range where {
					if !ref.HasPrefix(ast.DefaultRootRef) {
						break
					}
					for _, used := range p.meant(ref) {
						if uses++; !slices.Contains(plain[i], used) {
							t.Errorf("%s uses %s unseen", r.Location, ref)
						}
					}
				}
				return false
			})
			i++
		}
	}
	total := 0
	for _, u := range plain {
		total += len(u)
	}
	t.Logf("%d rules, %d uses seen, %d found by the compiler", i, total, uses)
	if uses < 100 {
		t.Errorf("only %d uses", uses)
	}
}

// A rule in pieces has all that it refers to: also in the body of an else, and
// where it asks for a part that no rule gives.
func TestPreparedHasWhatItRefersTo(t *testing.T) {
	t.Parallel()
	user := map[string]fs.FS{"team": fstest.MapFS{"a.rego": {Data: []byte(`package caisson.user.team

hidden if input.commands.sh

parts["x"] := 1 if input.commands.sh

pick := 1 if {
	input.commands.nothing
} else := 2 if {
	not data.caisson.user.team.hidden
}

findings contains {"id": "A", "severity": "high", "msg": "x"} if pick == 2

findings contains {"id": "B", "severity": "high", "msg": "x"} if not parts.y
`)}}}
	c := Config{Rules: policies.FS, User: user, Lazy: true, Keeper: &memory{}, Timeout: unhurried}
	for _, how := range []string{"whole", "in pieces"} {
		p, err := Load(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		doc := &facts.Document{Commands: []facts.Command{{Name: "sh"}}}
		if d := p.Decide(t.Context(), doc, Request{}); len(d.Findings) != 1 || d.Findings[0].ID != "user/team/B" {
			t.Errorf("%s: %+v", how, d.Findings)
		}
	}
}

// What was kept is taken whole or not at all, and only for the same rules and
// programs.
func TestPreparedThatIsBroken(t *testing.T) {
	t.Parallel()
	kept := &memory{}
	c := Config{Rules: policies.FS, Lazy: true, Keeper: kept, Programs: "1"}
	load := func(c Config) bool {
		p, err := Load(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if d := p.Decide(t.Context(), trickyDocuments()[0], Request{}); d.Verdict != sandbox.Allow {
			t.Fatalf("%+v", d)
		}
		return p.snap.Load().kept != nil
	}
	if load(c) || !load(c) {
		t.Fatal("not kept")
	}
	for name, change := range map[string]func(c *Config){
		"other programs": func(c *Config) { c.Programs = "2" },
		"other rules": func(c *Config) {
			c.User = map[string]fs.FS{"t": fstest.MapFS{"a.rego": {Data: []byte("package caisson.user.t\n")}}}
		},
		"not lazy": func(c *Config) { c.Lazy = false },
	} {
		other := c
		other.Keeper = &memory{m: map[string][]byte{}}
		for k, v := range kept.m {
			other.Keeper.Put(k, v)
		}
		change(&other)
		if load(other) {
			t.Errorf("%s: taken from what was kept", name)
		}
	}
	for key, b := range kept.m {
		for name, broken := range map[string][]byte{"short": b[:40], "cut": b[:len(b)-1], "changed": append(slices.Clone(b[:len(b)-9]), []byte("xxxxxxxxx")...), "empty": {}} {
			other := c
			other.Keeper = &memory{m: map[string][]byte{key: broken}}
			if load(other) {
				t.Errorf("%s: it was believed", name)
			}
		}
		t.Logf("%d bytes are kept", len(b))
	}
}

func BenchmarkLoadPrepared(b *testing.B) {
	c := Config{Rules: policies.FS, Lazy: true, Keeper: &memory{}}
	d := &facts.Document{Meta: facts.Meta{Lang: facts.Shell}, Commands: []facts.Command{{Name: "true", Argv: []string{"true", "1"}}}}
	if _, err := Load(b.Context(), c); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		p, err := Load(b.Context(), c)
		if err != nil {
			b.Fatal(err)
		}
		if d := p.Decide(b.Context(), d, Request{}); d.Verdict != sandbox.Allow {
			b.Fatal(d)
		}
	}
}

package policy

import (
	"fmt"
	"io/fs"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/caisson-dev/caisson/policies"
	"github.com/caisson-dev/caisson/policy/facts"
	"github.com/caisson-dev/caisson/sandbox"
)

// tricky are bodies that hold, or do not, for other reasons than that a fact
// is there.
var tricky = []string{
	`some a in input.actions.kill`,
	`some op in ["kill", "fork"]; some a in input.actions[op]`,
	`some op in {"kill", "fork"}; count(input.actions[op]) > 0`,
	`not input.actions.kill`,
	`not has_kill`,
	`count(input.files) == 0`,
	`count({a | some a in input.actions.kill}) == 0`,
	`every a in object.get(input.actions, "kill", []) { a.depth == 0 }`,
	`used := input.files.read; some f in used["home"]`,
	`used := input.files[_]; some class in ["home", "root"]; some f in used[class]`,
	`x := object.get(input, ["actions", "kill"], []); count(x) == 0`,
	`some op; input.files[op].home`,
	`count(input.files.read.home) == count(input.files.write.home)`,
	`some name in ["sh"]; input.commands[name]; not input.commands.true`,
	`some c in input.commands.sh; c.name == "sh"`,
	`input.ctx.gate.background`,
	`not input.ctx.gate`,
	`op := ["kill"][_]; some a in input.actions[op]`,
	`some op in ["kill"]; op == "kill"; x := [y | some y in input.actions[op]]; count(x) == 0`,
	`input.structs["x/y|z"]`,
	`some kind in input.kinds; input.dynamic[kind]`,
	`some n in input.net.public.connect`,
	`some class, ops in input.net; ops.connect`,
	`input.meta.lang == "bash"`,
	`some p in input.pipelines; p.line == 1`,
	`count(input.pipelines) == 0`,
	`walk(input.actions, [_, v]); v == "kill"`,
	`killed[_].depth == 0`,
	`count(killed) > 0`,
	`some killed in [1, 2]; killed == 2`,
	`either == 1`,
	`some x in busy; x == "kill"`,
	`busy.kill`,
	`busy["fork"]`,
	`count(busy) == 0`,
	`not busy.kill`,
	`depth_of("kill") == 0`,
	`not depth_of("kill")`,
	`otherwise == 2`,
	`loop`,
	`count(gone) == 0`,
	`gone.x == 1`,
	`count(deep.er) == 0`,
	`count(deep) > 0`,
	`input.actions[""]`,
	`some a in input.actions[_]`,
	`input.structs["x/y|z"]`,
	`some k in ["x/y", "z"]; input.structs[k]`,
	`input.structs["z"]`,
}

// inputs are programs that have these facts, one by one and together.
func trickyDocuments() []*facts.Document {
	at := facts.At{Pos: facts.Pos{Line: 1, Col: 1}}
	parts := []facts.Document{
		{Actions: []facts.Action{{At: at, Op: "kill"}}},
		{Actions: []facts.Action{{At: at, Op: "fork"}}},
		{Files: []facts.File{{At: at, Op: facts.OpRead, Class: "home"}}},
		{Files: []facts.File{{At: at, Op: facts.OpWrite, Class: "home"}}},
		{Files: []facts.File{{At: at, Op: facts.OpRead, Class: "root"}}},
		{Commands: []facts.Command{{At: at, Name: "sh"}}},
		{Commands: []facts.Command{{At: at, Name: "true"}}},
		{Net: []facts.Net{{At: at, Op: "connect", Class: "public"}}},
		{Pipes: []facts.Pipeline{{At: at}}},
		{Structs: []facts.Struct{{At: at, Kind: "x/y|z"}}},
		{Structs: []facts.Struct{{At: at, Kind: "z"}}},
		{Actions: []facts.Action{{At: at, Op: ""}}},
	}
	docs := []*facts.Document{{}}
	for mask := 1; mask < 1<<len(parts); mask++ {
		d := &facts.Document{Meta: facts.Meta{Lang: facts.Shell}}
		for i := range parts {
			if mask&(1<<i) != 0 {
				d.Actions = append(d.Actions, parts[i].Actions...)
				d.Files = append(d.Files, parts[i].Files...)
				d.Commands = append(d.Commands, parts[i].Commands...)
				d.Net = append(d.Net, parts[i].Net...)
				d.Pipes = append(d.Pipes, parts[i].Pipes...)
				d.Structs = append(d.Structs, parts[i].Structs...)
			}
		}
		docs = append(docs, d)
	}
	return docs
}

// TestGuardsChangeNothing evaluates rules with what guard wrote into them and
// without.
func TestGuardsChangeNothing(t *testing.T) {
	var text strings.Builder
	text.WriteString("package caisson.main\n\nhas_kill if input.actions.kill\n\nkilled := input.actions.kill\n\neither := 1 if input.commands.true\n\neither := 1 if input.actions.kill\n\nbusy contains \"kill\" if input.actions.kill\n\nbusy contains \"fork\" if input.actions.fork\n\n" +
		"depth_of(op) := input.actions[op][0].depth\n\ndefault otherwise := 2\n\notherwise := 1 if input.actions.kill\n\nloop if input.actions.kill\n\nloop if not input.commands.sh\n\n" +
		"gone[\"x\"] := 1 if input.actions.kill\n\ndeep.er contains 1 if input.actions.kill\n")
	for i, body := range tricky {
		fmt.Fprintf(&text, "\nfindings contains %d if {\n\t%s\n}\n", i, strings.ReplaceAll(body, "; ", "\n\t"))
	}
	prepare := func(guarded bool) (rego.PreparedEvalQuery, []need) {
		m, err := source{name: "t.rego", text: text.String()}.parse(capabilities(), false)
		if err != nil {
			t.Fatal(err)
		}
		modules := map[string]*ast.Module{"t": m}
		var needs []need
		if guarded {
			needs, _ = guard(modules)
		}
		comp := ast.NewCompiler()
		if comp.Compile(modules); comp.Failed() {
			t.Fatal(comp.Errors)
		}
		q, err := rego.New(rego.Query(query), rego.Compiler(comp)).PrepareForEval(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return q, needs
	}
	plain, _ := prepare(false)
	guarded, needs := prepare(true)
	if len(needs) < 8 {
		t.Fatalf("only %d needs were found: %v", len(needs), needs)
	}
	held := map[any]int{}
	for _, d := range trickyDocuments() {
		for _, ctx := range []map[string]any{nil, {"gate": map[string]any{"background": true}}} {
			b := &inputBuilder{uses: func(string) bool { return true }, needs: needs}
			in, err := b.build(d, ctx, time.Unix(0, 0))
			if err != nil {
				t.Fatal(err)
			}
			eval := func(q rego.PreparedEvalQuery) any {
				rs, err := q.Eval(t.Context(), rego.EvalParsedInput(in))
				if err != nil {
					t.Fatal(err)
				}
				return rs[0].Expressions[0].Value
			}
			want, got := eval(plain), eval(guarded)
			if !reflect.DeepEqual(want, got) {
				t.Fatalf("%v\nwithout guards: %v\nwith guards:    %v", in, want, got)
			}
			for _, id := range want.([]any) {
				held[fmt.Sprint(id)]++
			}
		}
	}
	for i, body := range tricky {
		if n := held[fmt.Sprint(i)]; n == 0 && !strings.Contains(body, "kinds") {
			t.Errorf("never held: %s", body)
		}
	}
}

// TestGuardsWithAnotherInput: a rule that asks what would hold with another input,
// or with another rule, is answered for that.
func TestGuardsWithAnotherInput(t *testing.T) {
	for name, rule := range map[string]string{
		"input":      `count(killed) == 1 with input as {"actions": {"kill": [1]}}`,
		"part of it": `count(killed) == 1 with input.actions as {"kill": [1]}`,
		"a rule":     `count(killed) == 1 with data.caisson.user.t.has_kill as true`,
		"shipped":    `count(data.caisson.rules.files.findings) > 0 with input as {"files": {"delete": {"outside": [{"at": 0, "line": 1, "op": "delete", "path": "/x", "class": "outside", "traversal": false, "folded": true, "recursive": true, "mode": "", "by": "rm", "from": [], "where": ""}]}}}`,
	} {
		text := "package caisson.user.t\n\nhas_kill if input.actions.kill\n\nkilled contains 1 if has_kill\n\nfindings contains {\"id\": \"A\", \"severity\": \"high\", \"msg\": \"x\"} if {\n\t" + rule + "\n}\n"
		c := Config{Rules: policies.FS, Lazy: true, Keeper: &memory{}, Timeout: unhurried, User: map[string]fs.FS{"t": fstest.MapFS{"a.rego": {Data: []byte(text)}}}}
		for _, how := range []string{"whole", "in pieces"} {
			p, err := Load(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if d := p.Decide(t.Context(), &facts.Document{}, Request{}); d.Verdict != sandbox.Ask || len(d.Findings) != 1 {
				t.Errorf("%s, %s: %+v", name, how, d)
			}
		}
	}
}

// shipped gives the shipped rules, read and parsed.
func shipped(t *testing.T) ([]source, map[string]*ast.Module) {
	t.Helper()
	list, err := sources(policies.FS, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	modules, err := parse(list, capabilities(), false)
	if err != nil {
		t.Fatal(err)
	}
	return list, modules
}

// TestShippedRulesAreGuarded: nearly every rule looks at some sort of fact. One
// that guard does not understand is evaluated for every program.
func TestShippedRulesAreGuarded(t *testing.T) {
	_, modules := shipped(t)
	packages := packagesOf(modules)
	rules, open := 0, 0
	for _, key := range sortedKeys(modules) {
		for _, r := range modules[key].Rules {
			if r.Head.Name != "findings" {
				continue
			}
			if rules++; len(packages[modules[key].Package.Path.String()].needsOf(r)) == 0 {
				open++
				t.Logf("%s: is always evaluated", r.Location)
			}
		}
	}
	if rules < 100 || open > 10 {
		t.Errorf("%d of %d rules are always evaluated", open, rules)
	}
}

// TestGuardedUserRules: a user's rule about what is absent still holds.
func TestGuardedUserRules(t *testing.T) {
	p, err := Load(t.Context(), Config{Rules: policies.FS, User: map[string]fs.FS{"t": fstest.MapFS{"a.rego": {Data: []byte(
		"package caisson.user.t\n\nfindings contains {\"id\": \"A\", \"severity\": \"low\"} if not input.commands.sh\n\nfindings contains {\"id\": \"B\", \"severity\": \"low\"} if some _ in input.commands.sh\n")}}}})
	if err != nil {
		t.Fatal(err)
	}
	for doc, want := range map[*facts.Document]string{{}: "user/t/A", {Commands: []facts.Command{{Name: "sh"}}}: "user/t/B"} {
		d := p.Decide(t.Context(), doc, Request{})
		found := ""
		for _, f := range d.Findings {
			if strings.HasPrefix(f.ID, "user/") {
				found += f.ID
			}
		}
		if found != want {
			t.Errorf("found %s, want %s", found, want)
		}
	}
}

// TestNothingToSay: where no rule's needs are met, evaluating them all finds
// nothing either, and most plain programs are of that sort.
func TestNothingToSay(t *testing.T) {
	p, err := Load(t.Context(), Config{Rules: policies.FS})
	if err != nil {
		t.Fatal(err)
	}
	s := p.snap.Load()
	silent, loud := 0, 0
	for _, d := range append(preparedDocuments(t, s.needs), trickyDocuments()...) {
		b := &inputBuilder{uses: s.uses, needs: s.needs}
		in, err := b.build(d, nil, time.Unix(0, 0))
		if err != nil {
			t.Fatal(err)
		}
		if s.canSay(b.met) {
			loud++
			continue
		}
		silent++
		rs, err := s.query.Eval(t.Context(), rego.EvalParsedInput(in))
		if err != nil {
			t.Fatal(err)
		}
		if found, ok := rs[0].Expressions[0].Value.([]any); !ok || len(found) > 0 {
			t.Fatalf("%v: %v", in, rs[0].Expressions[0].Value)
		}
	}
	if silent < 3 || loud < 50 {
		t.Errorf("%d documents say nothing, %d may", silent, loud)
	}
	// Rules of another's own main package are asked.
	own := fstest.MapFS{
		"data/settings.yaml": {Data: []byte("thresholds: {ask: high}\n")},
		"main/main.rego": {Data: []byte("# METADATA\n# title: x\n# custom:\n#   id: X\n#   severity: high\n#   category: x\n#   remediation: x\npackage caisson.main\n\n" +
			"# METADATA\n# title: x\n# custom:\n#   id: X\n#   severity: high\n#   category: x\n#   remediation: x\nfindings contains {\"id\": \"X\", \"msg\": \"x\"} if not input.files.read\n")},
	}
	if p, err = Load(t.Context(), Config{Rules: own}); err != nil {
		t.Fatal(err)
	}
	if d := p.Decide(t.Context(), &facts.Document{}, Request{}); len(d.Findings) != 1 {
		t.Errorf("%+v", d)
	}
}

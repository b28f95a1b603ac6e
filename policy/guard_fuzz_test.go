package policy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/caisson-dev/caisson/policy/facts"
)

// ruleMaker writes rules by chance: about what is there and what is not, by way
// of helpers of every sort, in packages that refer to each other.
type ruleMaker struct {
	*rand.Rand
	pkg   string
	with  bool // rules may ask what would be with another input
	vars  int
	names int
}

func (m *ruleMaker) one(list ...string) string { return list[m.IntN(len(list))] }

func (m *ruleMaker) fresh() string {
	m.vars++
	return fmt.Sprintf("v%d", m.vars)
}

// part is a reference into the input that may be undefined.
func (m *ruleMaker) part() string {
	switch m.IntN(11) {
	case 0:
		return "input.files"
	case 1, 2:
		return "input.files." + m.one("read", "write")
	case 3:
		return m.one(`input.files.read.home`, `input.files.write["home"]`, `input.files.read[""]`, `input["files"].read.root`)
	case 4, 5:
		return m.one(`input.actions.kill`, `input.actions.fork`, `input.actions["a|b"]`, `input.actions[""]`, `input.actions["a"]`, `input.actions`)
	case 6:
		return m.one(`input.commands.sh`, `input.commands["true"]`, `input.commands[""]`, `input.commands`)
	case 7:
		return m.one(`input.net.public`, `input.net.public.connect`, `input.net`)
	case 8:
		return m.one(`input.pipelines`, `input.pipelines[0]`, `input.structs["x/y|z"]`, `input.structs.x`)
	case 9:
		return m.one(`input.ctx.gate`, `input.ctx.gate.background`, `input.ctx`)
	}
	return m.one(`input.meta.lang`, `input.env.read.plain`, `input.env.write`)
}

// keyed binds a variable to keys, or to none.
func (m *ruleMaker) keyed() (bind, v string) {
	v = m.fresh()
	switch m.IntN(5) {
	case 0:
		return fmt.Sprintf(`some %s in ["kill", "fork"]`, v), v
	case 1:
		return fmt.Sprintf(`some %s in {"a", "b"}`, v), v
	case 2:
		return fmt.Sprintf(`some %s in {"a|b", ""}`, v), v
	case 3:
		return fmt.Sprintf(`%s := "kill"`, v), v
	}
	return "some " + v, v
}

// helpers are those of each package, in the order of who may use whom.
var helpers = []string{"h0", "h1", "s0", "s1", "o0", "o1", "f0", "d0", "e0", "p0.q", "g0.r"}

// helper is a use of a helper that is defined before the one of that number.
func (m *ruleMaker) helper(below int) string {
	if below <= 0 {
		return m.part()
	}
	h := helpers[m.IntN(below)]
	if h == "f0" {
		h = `f0("kill")`
	}
	if m.IntN(4) == 0 && m.pkg != "caisson.rules.a" && !strings.HasPrefix(h, "f0") {
		return "data.caisson.rules.a." + h
	}
	return h
}

func (m *ruleMaker) expr(below, deep int) string {
	h := m.helper(below)
	switch m.IntN(24) {
	case 0, 1:
		return m.part()
	case 2, 3:
		return "not " + m.part()
	case 4:
		return fmt.Sprintf("size(%s) %s %d", m.part(), m.one("==", ">"), m.IntN(2))
	case 5:
		return h
	case 6:
		return "not " + h
	case 7:
		return fmt.Sprintf("size(%s) %s %d", h, m.one("==", ">"), m.IntN(2))
	case 8:
		return fmt.Sprintf("some %s in %s", m.fresh(), m.one(h, m.part()))
	case 9:
		bind, v := m.keyed()
		return bind + "\n\t" + m.one("input.actions", "input.files.read", "input.commands", "input.net") + "[" + v + "]"
	case 10:
		bind, v := m.keyed()
		if bind == "some "+v {
			bind = v + ` := "fork"`
		}
		return bind + "\n\tnot input.actions[" + v + "]"
	case 11:
		v := m.fresh()
		return fmt.Sprintf("%s := %s\n\tsome %s in %s", v, m.part(), m.fresh(), v)
	case 12:
		return fmt.Sprintf("count([1 | %s]) == %d", strings.ReplaceAll(m.expr(below, deep+1), "\n\t", "; "), m.IntN(2))
	case 13:
		v := m.fresh()
		return fmt.Sprintf("every %s in object.get(%s, %q, []) { %s; %s != 7 }", v, m.one("input.actions", "input.commands"), m.one("kill", "sh"), m.part(), v)
	case 14:
		return fmt.Sprintf("count(object.get(input, [%q, %q], [])) == %d", m.one("actions", "files"), m.one("kill", "read"), m.IntN(2))
	case 15:
		v := m.fresh()
		return fmt.Sprintf("%s = %s\n\tsame(%s, %s)", v, h, v, m.one(h, m.part(), "1", "{}", "set()"))
	case 16:
		return fmt.Sprintf("same(%s, %s)", m.one(h, m.part()), m.one("1", "2", "{}", "set()", `{"kill": 1}`))
	case 17:
		v := m.fresh()
		return fmt.Sprintf("%s := input\n\t%s.actions.kill", v, v)
	case 18:
		v := m.fresh()
		return fmt.Sprintf("some %s, %s in %s", v, m.fresh(), m.one(h, m.part()))
	case 19:
		return h + m.one(`["kill"]`, `[_]`, `.x`)
	case 20:
		if m.with {
			return m.one(h, m.part()) + m.one(` with input as {}`, ` with input.actions as {"kill": [1]}`, ` with input as {"actions": {"kill": [1]}, "files": {"read": {"home": [1]}}, "commands": {"sh": [1]}}`)
		}
		return h
	case 21:
		v := m.fresh()
		return fmt.Sprintf(`%s := {k: 1 | some k, _ in %s}`+"\n\tcount(%s) == %d", v, m.part(), v, m.IntN(2))
	case 22:
		return fmt.Sprintf("{%s, 1} != {1}", m.part())
	}
	return m.one("true", "1 == 1", `input.meta.lang == "bash"`)
}

func (m *ruleMaker) body(below int) string {
	n := 1 + m.IntN(3)
	parts := make([]string, n)
	for i := range parts {
		parts[i] = m.expr(below, 0)
	}
	return " if {\n\t" + strings.Join(parts, "\n\t") + "\n}\n\n"
}

// module writes a package with all helpers and some findings.
func (m *ruleMaker) module(pkg string) string {
	m.pkg = pkg
	var b strings.Builder
	b.WriteString("package " + pkg + "\n\nsame(x, y) if x == y\n\nsize(x) := count(x)\n\n")
	const value = `object.get(input, "none", 1)` // of any type, for the compiler
	times := func(most int, f func()) {
		for range 1 + m.IntN(most) {
			f()
		}
	}
	for i, h := range helpers {
		times(2, func() {
			body := m.body(i)
			switch h[0] {
			case 'h':
				b.WriteString(h + " := " + value + body)
			case 's':
				b.WriteString(h + " contains " + m.one(`"kill"`, `"fork"`, "1") + body)
			case 'o':
				b.WriteString(h + "[" + m.one(`"kill"`, `"x"`) + "] := 1" + body)
			case 'f':
				b.WriteString(h + "(" + m.one("k", "k", "_") + ") := " + value + body)
			case 'e':
				b.WriteString(strings.TrimSpace(h+" := 1"+body) + " else := " + value + m.body(i))
			case 'p':
				b.WriteString(h + " contains " + m.one(`"kill"`, "1") + body)
			case 'g':
				b.WriteString(h + m.one(`.kill := 1`, `["x"].y := 1`) + body)
			case 'd':
				b.WriteString(h + " := " + value + body)
			}
		})
		if h[0] == 'd' {
			b.WriteString("default " + h + " := 2\n\n")
		}
	}
	times(8, func() {
		m.names++
		fmt.Fprintf(&b, "findings contains {\"id\": %d, \"severity\": \"low\"}%s", m.names, m.body(len(helpers)))
	})
	return b.String()
}

func (m *ruleMaker) document() *facts.Document {
	at := facts.At{Pos: facts.Pos{Line: 1, Col: 1}}
	d := &facts.Document{Meta: facts.Meta{Lang: facts.Lang(m.one("bash", "python"))}}
	some := func(f func()) {
		for range max(0, m.IntN(4)-1) {
			f()
		}
	}
	some(func() {
		d.Actions = append(d.Actions, facts.Action{At: at, Op: m.one("kill", "fork", "a|b", "a", "b", "")})
	})
	some(func() {
		d.Files = append(d.Files, facts.File{At: at, Op: m.one("read", "write", "kill", ""), Class: m.one("home", "root", "", "fork")})
	})
	some(func() { d.Commands = append(d.Commands, facts.Command{At: at, Name: m.one("sh", "true", "", "kill")}) })
	some(func() {
		d.Net = append(d.Net, facts.Net{At: at, Op: m.one("connect", "a"), Class: m.one("public", "kill")})
	})
	some(func() { d.Pipes = append(d.Pipes, facts.Pipeline{At: at}) })
	some(func() { d.Structs = append(d.Structs, facts.Struct{At: at, Kind: m.one("x", "x/y|z")}) })
	some(func() {
		d.Env = append(d.Env, facts.Env{At: at, Op: m.one("read", "write"), Class: m.one("", "secret")})
	})
	return d
}

func prepareQuery(ctx context.Context, modules map[string]*ast.Module) (*ast.Compiler, rego.PreparedEvalQuery, error) {
	comp := ast.NewCompiler().WithCapabilities(capabilities())
	if comp.Compile(modules); comp.Failed() {
		return nil, rego.PreparedEvalQuery{}, comp.Errors
	}
	q, err := rego.New(rego.Query(query), rego.Compiler(comp)).PrepareForEval(ctx)
	return comp, q, err
}

// TestRandomRulesAreGuarded evaluates rules that chance wrote: as they are, with
// what guard writes into them, and as a process that has them in pieces does.
// CAISSON_RANDOM_RULES is how many seconds it goes on.
func TestRandomRulesAreGuarded(t *testing.T) {
	t.Parallel()
	seconds, err := strconv.Atoi(os.Getenv("CAISSON_RANDOM_RULES"))
	if err != nil {
		seconds = 3
	}
	main := "package caisson.main\n\nfindings contains f if {\n\tsome topic\n\tsome f in data.caisson.rules[topic].findings\n}\n\nfindings contains f if {\n\tsome bundle\n\tsome said in data.caisson.user[bundle].findings\n\tf := object.union(said, {\"user\": bundle})\n}\n"
	sets, invalid, answers, skipped, dropped := 0, 0, 0, 0, 0
	started := time.Now()
	// On a busy machine it goes on until it has asked enough: the time alone says
	// nothing of how much was compared.
	enough := func() bool { return sets >= 3 && answers >= 20 }
	for seed := uint64(1); time.Since(started) < time.Duration(seconds)*time.Second || !enough() && seed <= 200; seed++ {
		m := &ruleMaker{Rand: rand.New(rand.NewPCG(seed, 0)), with: seed%4 == 0}
		list := []source{{name: "main.rego", text: main}, {name: "a.rego", text: m.module("caisson.rules.a")}, {name: "b.rego", text: m.module("caisson.rules.b")}, {bundle: "u", name: "u.rego", text: m.module("caisson.user.u")}}
		read := func() map[string]*ast.Module {
			modules, err := parse(list, capabilities(), false)
			if err != nil {
				t.Fatalf("seed %d: %v\n%s", seed, err, list[1].text+list[2].text+list[3].text)
			}
			return modules
		}
		_, plain, err := prepareQuery(t.Context(), read())
		if err != nil {
			invalid++
			continue
		}
		modules := read()
		p := prepare(list, modules)
		needs, _ := guard(modules)
		_, guarded, err := prepareQuery(t.Context(), modules)
		if err != nil {
			t.Fatalf("seed %d: with guards: %v", seed, err)
		}
		if err := p.verify(list, modules, capabilities()); err != nil {
			t.Fatalf("seed %d: in pieces: %v", seed, err)
		}
		sets++
		for range 12 {
			ctx := map[string]any(nil)
			if m.IntN(3) == 0 {
				ctx = map[string]any{"gate": map[string]any{"background": m.IntN(2) == 0}}
			}
			d := m.document()
			build := func(needs []need) (ast.Value, []bool) {
				b := &inputBuilder{uses: func(string) bool { return true }, needs: needs}
				in, err := b.build(d, ctx, time.Unix(0, 0))
				if err != nil {
					t.Fatal(err)
				}
				return in, b.met
			}
			eval := func(q rego.PreparedEvalQuery, in ast.Value) (any, error) {
				rs, err := q.Eval(t.Context(), rego.EvalParsedInput(in))
				if err != nil {
					return nil, err
				}
				return rs[0].Expressions[0].Value, nil
			}
			in, _ := build(needs)
			want, err := eval(plain, in)
			if err != nil {
				skipped++ // two values of one rule: that is an error, whoever sees it
				continue
			}
			same := func(how string, q rego.PreparedEvalQuery, in ast.Value) {
				t.Helper()
				got, err := eval(q, in)
				if err != nil || !reflect.DeepEqual(want, got) {
					t.Fatalf("seed %d, %s\n%s\n%s\n%s\n%v\nas they are: %v\n%s: %v %v", seed, how, list[1].text, list[2].text, list[3].text, in, want, how, got, err)
				}
			}
			same("with guards", guarded, in)
			s := &selected{p: p, needs: p.needs(), caps: capabilities(), compile: func(ctx context.Context, modules map[string]*ast.Module) (rego.PreparedEvalQuery, error) {
				_, q, err := prepareQuery(ctx, modules)
				return q, err
			}}
			in, met := build(s.needs)
			q, err := s.queryFor(t.Context(), met)
			if err != nil {
				t.Fatalf("seed %d: select: %v", seed, err)
			}
			same("in pieces", q, in)
			for _, has := range s.compiled {
				if !has {
					dropped++
				}
			}
			answers++
		}
	}
	t.Logf("%d sets of rules (%d more were no rules), %d answers, %d errors of the rules themselves, %d rules left out", sets, invalid, answers, skipped, dropped)
	if !enough() {
		t.Errorf("only %d sets of rules gave %d answers", sets, answers)
	}
}

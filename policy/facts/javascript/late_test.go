package javascript_test

import (
	"testing"

	"github.com/caisson-dev/caisson/policy/facts"
)

// TestIdle tells what a program does from what it offers.
func TestIdle(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, code string
		idle       bool
	}{
		{"function", `function f(x) { eval(x) }`, true},
		{"exported", `exports.f = (x) => eval(x)`, true},
		{"export", `export default class { go(x) { eval(x) } }`, true},
		{"the export", `module.exports = (x) => eval(x)`, true},
		{"exports in an object", `function f(x) { eval(x) }; module.exports = { f, g(x) { eval(x) } }`, true},
		{"export that is called", `module.exports = (x) => eval(x); module.exports(y)`, false},
		{"called", `function f(x) { eval(x) }; f(y)`, false},
		{"called by another that is called", `function g(x) { f(x) } function f(x) { eval(x) }; g(y)`, false},
		{"called by another that is not", `function g(x) { f(x) } function f(x) { eval(x) }`, true},
		{"handed over", `process.on('exit', (x) => eval(x))`, false},
		{"handed over in an object", `require('m').start({ run(x) { eval(x) } })`, false},
		{"handed over as an object of a class", `class A { run(x) { eval(x) } }; require('m').start(new A())`, false},
		{"given to something outside", `require('m').hook = (x) => eval(x)`, false},
		{"method of an object that is made", `class A extends require('m').B { _write(x) { eval(x) } }; new A()`, false},
		{"special method", `const a = { toString(x) { eval(x) } }; a + ''`, false},
		{"accessor", `const a = { get b() { eval(x) } }; a.b`, false},
		{"proxy", `new Proxy({}, { get(t, k) { eval(k) } }).payload`, false},
		{"by a name that is not known", `class A { go(x) { eval(x) } }; const a = new A(); a[process.argv[2]](y)`, false},
		{"branch of what runs", `if (a) { eval(b) }`, false},
		{"branch of what does not", `exports.f = (a, b) => { if (a) { eval(b) } }`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			idle, found := true, false
			for _, d := range scan(t, facts.JavaScript, c.code).Dynamic {
				if d.Kind == facts.DynEval {
					idle, found = idle && d.Idle, true
				}
			}
			if !found || idle != c.idle {
				t.Errorf("found %v, idle %v, want %v", found, idle, c.idle)
			}
		})
	}
}

func TestIndexOutOfReach(t *testing.T) {
	t.Parallel()
	d := scan(t, facts.JavaScript, `[].at(-1); [1].at(-3); require('fs').unlinkSync(['/etc/passwd'].at(-1))`)
	if len(d.Files) != 1 || d.Files[0].Path != "/etc/passwd" {
		t.Errorf("%+v", d.Files)
	}
}

package javascript_test

import (
	"testing"

	"github.com/caisson-dev/caisson/policy/facts"
)

// TestGrow: what grows by itself, without a number in the text that says how far.
func TestGrow(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		code string
		want []string
		not  []string
	}{
		"text":           {code: `let s = 'a'; for (let i = 0; i < 60; i++) s += s`, want: []string{"struct huge_alloc"}},
		"list":           {code: `let a = [1]; for (let i = 0; i < 60; i++) a = [...a, ...a]`, want: []string{"struct huge_alloc"}},
		"number":         {code: `let n = 1; for (let i = 0; i < 60; i++) n += n`, not: []string{"struct*"}},
		"few":            {code: `let s = 'a'; for (let i = 0; i < 6; i++) s += s`, not: []string{"struct*"}},
		"bound":          {code: `const fs = require('fs'); const N = 1000 * 1000; for (let i = 0; i < N; i++) fs.writeFileSync('f' + i, 'x')`, want: []string{"struct loop_write"}},
		"counted down":   {code: `const fs = require('fs'); let n = 1e6; while (n--) fs.writeFileSync('f' + n, 'x')`, want: []string{"struct loop_write"}},
		"array":          {code: `const fs = require('fs'); [...Array(1e6).keys()].forEach(i => fs.writeFileSync('f' + i, 'x'))`, want: []string{"struct loop_write"}},
		"length":         {code: `const fs = require('fs'); Array.from({ length: 1e6 }, (_, i) => fs.writeFileSync('f' + i, 'x'))`, want: []string{"struct loop_write"}},
		"repeat":         {code: `const x = 'a'.repeat(2 ** 40)`, want: []string{"struct huge_alloc"}},
		"room":           {code: `new ArrayBuffer(1e13)`, want: []string{"struct huge_alloc"}},
		"length of file": {code: `require('fs').truncateSync('big', 1e13)`, want: []string{"struct huge_alloc"}},
		"recursion":      {code: `function f(n) { return f(n + 1) } f(0)`, want: []string{"struct infinite_loop"}},
		"that ends":      {code: `function f(n) { if (n < 2) return 1; return n * f(n - 1) } f(5)`, not: []string{"struct*"}},
		"that waits":     {code: `async function f() { await g(); f() } f()`, not: []string{"struct*"}},
		"timer":          {code: `setInterval(() => require('child_process').spawn('sleep', ['9']), 1)`, want: []string{"struct resource_burn"}},
		"slow timer":     {code: `setInterval(() => require('child_process').spawn('date'), 60000)`, not: []string{"struct*"}},
		"labels":         {code: `outer: for (const x of xs) { for (;;) { continue outer } }`, not: []string{"struct*"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, facts.JavaScript, tt.code, tt.want, tt.not)
		})
	}
}

// TestEvents: what is emitted reaches who listens, what is assigned its setter,
// and a function of the language that was replaced is what stands in its place.
func TestEvents(t *testing.T) {
	t.Parallel()
	wipe := []string{"run rm -rf /etc"}
	for name, code := range map[string]string{
		"emitter":      `const E = require('events'), cp = require('child_process'); const e = new E(); e.on('x', (a, b) => cp.exec(a + b)); e.emit('x', 'rm -rf ', '/etc')`,
		"derived":      `const { EventEmitter } = require('events'); const { exec } = require('child_process'); class B extends EventEmitter {} const b = new B(); b.once('x', c => exec(c)); b.emit('x', 'rm -rf /etc')`,
		"setter":       `const cp = require('child_process'); const o = { set x(v) { cp.exec(v) } }; o.x = 'rm -rf /etc'`,
		"class setter": `const cp = require('child_process'); class A { set x(v) { cp.exec(v) } } new A().x = 'rm -rf /etc'`,
		"replaced":     `console.log = require('child_process').exec; console.log('rm -rf /etc')`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, facts.JavaScript, code, wipe, nil)
		})
	}
	check(t, facts.JavaScript, `const E = require('events'), fs = require('fs'); const e = new E(); e.on('a', p => fs.unlinkSync(p)); e.emit('b', '/etc/x')`, nil, []string{"file delete /etc/x"})
	check(t, facts.JavaScript, `require('/root/.config/x.json')`, []string{"file read /root/.config/x.json"}, nil)
}

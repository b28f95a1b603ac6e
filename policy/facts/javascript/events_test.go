package javascript_test

import (
	"testing"

	"github.com/caisson-dev/caisson/policy/facts"
)

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
	check(t, facts.JavaScript, `const fs = require('fs'); for (const [k, p] of new Map([['a', '/etc/x']])) fs.unlinkSync(p)`, []string{"file delete /etc/x"}, nil)
}

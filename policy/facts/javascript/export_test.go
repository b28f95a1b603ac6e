package javascript_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/policy/facts"
)

// TestModulesAreFollowed hands to modules of the workspace what only they run.
func TestModulesAreFollowed(t *testing.T) {
	t.Parallel()
	const common = "const { execSync } = require('child_process');\nlet count = 0;\nfunction run(c) { count++; execSync(c); }\nclass Job { constructor(c) { this.c = c } go() { run(this.c) } }\nmodule.exports = { run, Job };\nfunction idle() { execSync('idle') }\n"
	const modern = "import { execSync as ex } from 'node:child_process';\nexport function run(c) { ex(c) }\nexport const go = c => run(c);\nfunction hidden(c) { run(c) }\nexport { hidden as open };\nexport default class { go(c) { run(c) } }\n"
	one := func(text string) map[string]string { return map[string]string{"lib": text} }
	for _, tt := range []struct {
		name, code string
		modules    map[string]string
		links      []string // FROM SPEC NAME
		want       string
	}{
		{"require", "const lib = require('./lib'); lib.run('ls')", one(common), []string{" ./lib lib"}, "run ls"},
		{"taken apart", "const { run: r } = require('./lib'); r('ls')", one(common), []string{" ./lib lib"}, "run ls"},
		{"class", "const { Job } = require('./lib'); new Job('ls').go()", one(common), []string{" ./lib lib"}, "run ls"},
		{"derived", "const { Job } = require('./lib'); class Mine extends Job {} new Mine('ls').go()", one(common), []string{" ./lib lib"}, "run ls"},
		{"in place", "require('./lib').run('ls')", one(common), []string{" ./lib lib"}, "run ls"},
		{"exports", "require('./lib').run('ls')", one("exports.run = c => require('child_process').execSync(c)"), []string{" ./lib lib"}, "run ls"},
		{"a function", "require('./lib')('ls')", one("module.exports = c => require('child_process').execSync(c)"), []string{" ./lib lib"}, "run ls"},
		{"import", "import { run } from './lib.mjs'; run('ls')", one(modern), []string{" ./lib.mjs lib"}, "run ls"},
		{"import as", "import { go as x } from './lib.mjs'; x('ls')", one(modern), []string{" ./lib.mjs lib"}, "run ls"},
		{"renamed export", "import { open } from './lib.mjs'; open('ls')", one(modern), []string{" ./lib.mjs lib"}, "run ls"},
		{"namespace", "import * as lib from './lib.mjs'; lib.go('ls')", one(modern), []string{" ./lib.mjs lib"}, "run ls"},
		{"default", "import Lib from './lib.mjs'; new Lib().go('ls')", one(modern), []string{" ./lib.mjs lib"}, "run ls"},
		{"default of another kind", "import lib from './lib.js'; lib.run('ls')", one(common), []string{" ./lib.js lib"}, "run ls"},
		{"dynamic", "const { run } = await import('./lib.mjs'); run('ls')", one(modern), []string{" ./lib.mjs lib"}, "run ls"},
		{"handed on", "import { run } from './a.mjs'; run('ls')", map[string]string{"a": "export { run } from './lib.mjs'", "lib": modern}, []string{" ./a.mjs a", "a ./lib.mjs lib"}, "run ls"},
		{"all handed on", "import { run } from './a.mjs'; run('ls')", map[string]string{"a": "export * from './lib.mjs'", "lib": modern}, []string{" ./a.mjs a", "a ./lib.mjs lib"}, "run ls"},
		{"two deep", "require('./a').go('ls')", map[string]string{"a": "exports.go = d => require('../lib').run(d + ' -l')", "lib": common}, []string{" ./a a", "a ../lib lib"}, "run ls -l"},
		{"each other", "require('./a').go('ls')", map[string]string{"a": "const b = require('./b'); exports.go = c => b.go(c)", "b": "const a = require('./a'); exports.go = c => require('child_process').execSync(c)"}, []string{" ./a a", "a ./b b", "b ./a a"}, "run ls"},
		{"handed back", "require('./lib').call(require('child_process').execSync, 'ls')", one("exports.call = (f, x) => f(x)"), []string{" ./lib lib"}, "run ls"},
		{"replaced", "const lib = require('./lib'); lib.log = require('child_process').execSync; lib.go('ls')", one("exports.log = x => x; exports.go = x => exports.log(x)"), []string{" ./lib lib"}, "run ls"},
		{"what it does by itself", "require('./a')", map[string]string{"a": "require('./lib').run('ls')", "lib": common}, []string{" ./a a", "a ./lib lib"}, "run ls"},
		{"its own names", "const c = 'pwd'; require('./lib').run()", one("const c = 'ls'; exports.run = () => require('child_process').execSync(c)"), []string{" ./lib lib"}, "run ls"},
		{"nothing called", "require('./lib')", one(common), []string{" ./lib lib"}, ""},
		{"not known", "require('./other').run('ls')", one(common), []string{" ./lib lib"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			links := map[string]string{}
			for _, l := range tt.links {
				f := strings.Split(l, " ")
				links[facts.LinkName(f[0], f[1])] = f[2]
			}
			got := lines(scanStarted(t, facts.JavaScript, tt.code, facts.Start{Modules: tt.modules, Links: links}))
			if tt.want != "" && !slices.Contains(got, tt.want) {
				t.Errorf("%q not found in %q", tt.want, got)
			}
			for _, g := range got {
				if strings.HasPrefix(g, "run ") && g != tt.want || strings.HasPrefix(g, "dyn") {
					t.Errorf("found %q", g)
				}
			}
		})
	}
}

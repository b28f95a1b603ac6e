package javascript_test

import (
	"testing"

	"github.com/caisson-dev/caisson/policy/facts"
)

// TestHeavy tells loops that use up a machine, or search for a key, from those
// that do not.
func TestHeavy(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		code  string
		want  []string
		never []string
	}{
		"files":        {"const fs = require('fs'); for (let i = 0; i < 50000; i++) fs.writeFileSync('f' + i, 'x');", []string{"struct loop_write"}, nil},
		"fewer files":  {"const fs = require('fs'); for (let i = 0; i < 49999; i++) fs.writeFileSync('f' + i, 'x');", nil, []string{"struct*"}},
		"counts":       {"for (let i = 0; i < 1e9; i++) console.log(i);", nil, []string{"struct*"}},
		"key":          {"const c = require('crypto'); for (const a of words) if (c.createHash('md5').update(a).digest('hex') === t) console.log(a);", []string{"struct key_search"}, nil},
		"mined":        {"const c = require('crypto'); let h, n = 0; do { n++; h = c.createHash('sha256').update('' + n).digest('hex'); } while (!h.startsWith('000'));", []string{"struct key_search"}, nil},
		"files hashed": {"const c = require('crypto'), fs = require('fs'); for (const f of names) if (c.createHash('md5').update(fs.readFileSync(f)).digest('hex') === t) console.log(f);", nil, []string{"struct key_search"}},
		"map":          {"const fs = require('fs'); for (const [k, p] of new Map([['a', '/etc/x']])) fs.unlinkSync(p);", []string{"file delete /etc/x"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, facts.JavaScript, tc.code, tc.want, tc.never)
		})
	}
}

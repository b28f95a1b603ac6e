package javascript_test

import (
	"context"
	"fmt"

	"github.com/caisson-dev/caisson/policies"
	"github.com/caisson-dev/caisson/policy/facts"
	"github.com/caisson-dev/caisson/policy/facts/javascript"
	"github.com/caisson-dev/caisson/policy/tables"
)

func ExampleNew() {
	t, err := tables.Load(policies.FS)
	if err != nil {
		fmt.Println(err)
		return
	}
	langs := facts.Dispatcher{facts.JavaScript: javascript.New()}
	d := facts.Scan(context.Background(), t, langs, facts.Limits{}, facts.JavaScript, []byte(`
		const {['unlink' + 'Sync']: gone} = require('node:fs')
		gone(['', 'etc', 'passwd'].join('/'))
	`))
	for _, f := range d.Files {
		fmt.Printf("line %d: %s %s (%s)\n", f.Line, f.Op, f.Path, f.Class)
	}
	// Output:
	// line 3: delete /etc/passwd (identity)
}

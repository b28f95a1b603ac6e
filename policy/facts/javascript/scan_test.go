package javascript_test

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"sync"
	"testing"

	"github.com/caisson-dev/caisson/policies"
	"github.com/caisson-dev/caisson/policy/facts"
	"github.com/caisson-dev/caisson/policy/facts/javascript"
	"github.com/caisson-dev/caisson/policy/tables"
)

var shipped = sync.OnceValues(func() (*facts.Tables, error) { return tables.Load(policies.FS) })

// shell records its text, in place of the extractor of another package.
type shell struct{}

func (shell) Extract(_ context.Context, src []byte, b *facts.Builder) error {
	b.Node()
	words := strings.Fields(string(src))
	argv := make([]facts.Value, len(words))
	for i, w := range words {
		argv[i] = facts.Text(w)
	}
	if len(argv) > 0 {
		b.Command(argv, facts.CommandOpts{})
	}
	return nil
}

var dispatcher = facts.Dispatcher{
	facts.JavaScript: javascript.New(),
	facts.TypeScript: javascript.NewTypeScript(),
	facts.Shell:      shell{},
}

func scan(t testing.TB, lang facts.Lang, code string) *facts.Document {
	t.Helper()
	return scanStarted(t, lang, code, facts.Start{})
}

func scanStarted(t testing.TB, lang facts.Lang, code string, start facts.Start) *facts.Document {
	t.Helper()
	tb, err := shipped()
	if err != nil {
		t.Fatal(err)
	}
	return facts.ScanStarted(context.Background(), tb, dispatcher, facts.Limits{}, lang, []byte(code), start)
}

// lines spells facts in short, one a line, without their places.
func lines(d *facts.Document) []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, strings.TrimSpace(fmt.Sprintf(format, args...))) }
	for _, f := range d.Imports {
		add("import %s", f.Module)
	}
	for _, f := range d.Calls {
		add("call %s", f.Name)
	}
	for _, f := range d.Files {
		add("file %s %s%s", f.Op, f.Path, carried(f.From))
	}
	for _, f := range d.Net {
		add("net %s %s%s", f.Op, f.Host, carried(f.Carries))
	}
	for _, f := range d.Commands {
		add("run %s", strings.Join(f.Argv, " "))
	}
	for _, f := range d.Env {
		add("env %s %s", f.Op, f.Name)
	}
	for _, f := range d.Actions {
		add("action %s", f.Op)
	}
	for _, f := range d.Dynamic {
		add("dynamic %s", f.Kind)
		if len(f.From) > 0 {
			add("dynamic %s%s", f.Kind, carried(f.From))
		}
	}
	for _, f := range d.Structs {
		add("struct %s", f.Kind)
	}
	return out
}

func carried(from []string) string {
	if len(from) == 0 {
		return ""
	}
	from = append([]string(nil), from...)
	sort.Strings(from)
	return " <- " + strings.Join(from, ",")
}

// check reports what of want is missing among the facts of code, and what of
// never is there. A line of never ending in * is a prefix.
func check(t *testing.T, lang facts.Lang, code string, want, never []string) {
	t.Helper()
	got := lines(scan(t, lang, code))
	have := make(map[string]bool, len(got))
	for _, l := range got {
		have[l] = true
	}
	for _, w := range want {
		if !have[w] {
			t.Errorf("missing %q", w)
		}
	}
	for _, n := range never {
		for _, l := range got {
			if l == n || strings.HasSuffix(n, "*") && strings.HasPrefix(l, strings.TrimSuffix(n, "*")) {
				t.Errorf("there should be no %q", l)
			}
		}
	}
	if t.Failed() {
		t.Logf("code: %s\nfacts:\n\t%s", code, strings.Join(got, "\n\t"))
	}
}

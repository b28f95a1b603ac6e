package policy

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/caisson-dev/caisson/policy/facts"
	"github.com/caisson-dev/caisson/sandbox"
)

// TestInputIsDocumented: docs/policy.md names each part of the input, each field
// of its facts and no other, and each key of a finding.
func TestInputIsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	tables := fieldTables(string(doc))
	common := tables["every fact"]
	in := &inputBuilder{uses: func(string) bool { return true }}
	input, err := in.build(&facts.Document{Imports: []facts.Import{{}}, Calls: []facts.Call{{Args: []facts.Value{{}}}}, Files: []facts.File{{}}, Net: []facts.Net{{}},
		Commands: []facts.Command{{}}, Pipes: []facts.Pipeline{{}}, Env: []facts.Env{{}}, Actions: []facts.Action{{}}, Dynamic: []facts.Dynamic{{}},
		Strings: []facts.String{{}}, Structs: []facts.Struct{{}}}, nil, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range keysOf(input.(ast.Object)) {
		if part == "now" || part == "ctx" || part == "has" {
			if !strings.Contains(string(doc), "`input."+part+"`") {
				t.Errorf("input.%s is not described", part)
			}
			continue
		}
		got := slices.Concat(tables[part], common)
		if part == "meta" {
			got = tables[part]
		}
		slices.Sort(got)
		if want := keysOf(factOf(t, input.(ast.Object).Get(ast.StringTerm(part)))); !slices.Equal(got, want) {
			t.Errorf("input.%s has the fields %v, and is described with %v", part, want, got)
		}
	}
	plan := ast.MustInterfaceToValue(sandbox.Surroundings{}).(ast.Object)
	if got := slices.Sorted(slices.Values(tables["ctx"])); !slices.Equal(got, keysOf(plan)) {
		t.Errorf("input.ctx.plan has the fields %v, and is described with %v", keysOf(plan), got)
	}
	value := keysOf(valueTerm(facts.Value{}).Value.(ast.Object))
	row := regexp.MustCompile("(?m)^\\| `args`, `kwargs` \\|.*$").FindString(string(doc))
	for _, field := range value {
		if !strings.Contains(row, "`"+field+"`") {
			t.Errorf("%q of a value is not described", field)
		}
	}
	got := slices.Sorted(slices.Values(tables["A finding"]))
	if want := slices.Sorted(slices.Values(findingKeys)); !slices.Equal(got, want) {
		t.Errorf("a finding has the keys %v, and is described with %v", want, got)
	}
}

// fieldTables has what stands in the first columns of a document's tables of
// fields, by the part of the input in the heading above, or by the heading.
func fieldTables(doc string) map[string][]string {
	tables := map[string][]string{}
	heading := regexp.MustCompile("^#{3,4} (?:`input\\.(\\w+).*|(.*))$")
	name := regexp.MustCompile("`(\\w+)`")
	under := ""
	for line := range strings.Lines(doc) {
		if m := heading.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			under = m[1] + m[2]
		}
		if cells := strings.Split(line, " | "); under != "" && strings.HasPrefix(line, "| ") && len(cells) > 1 {
			for _, m := range name.FindAllStringSubmatch(cells[0], -1) {
				tables[under] = append(tables[under], m[1])
			}
		}
	}
	return tables
}

// keysOf are an object's keys, sorted.
func keysOf(o ast.Object) []string {
	var keys []string
	for _, k := range o.Keys() {
		keys = append(keys, string(k.Value.(ast.String)))
	}
	slices.Sort(keys)
	return keys
}

// factOf is the one fact of a part of the input, under whatever keys.
func factOf(t *testing.T, term *ast.Term) ast.Object {
	t.Helper()
	for {
		switch v := term.Value.(type) {
		case *ast.Array:
			return v.Elem(0).Value.(ast.Object)
		case ast.Object:
			if v.Len() != 1 {
				return v
			}
			term = v.Get(v.Keys()[0])
		default:
			t.Fatalf("no fact: %v", term)
		}
	}
}

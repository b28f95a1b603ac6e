package policy

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/caisson-dev/caisson/sandbox"
)

// findingKeys are what a user's finding may say.
var findingKeys = []string{"id", "severity", "title", "category", "msg", "remediation", "verdict", "at", "line"}

// severityMend is what to do about a finding without a severity that holds.
const severityMend = `give it "severity": "low", "medium", "high" or "critical", or say so in the rule's annotation`

// checkUser refuses what a user's module would say and nobody could tell: a
// finding without severity, as far as the text shows it, and keys and values
// that mean nothing. What only shows when it runs is refused then.
func checkUser(m *ast.Module) error {
	annotated := map[string]bool{}
	for _, a := range m.Annotations {
		if id, ok := a.Custom["id"].(string); ok && a.Custom["severity"] != nil {
			annotated[id] = true
		}
	}
	for _, r := range m.Rules {
		if !givesFindings(r) {
			continue
		}
		for _, t := range saidBy(r) {
			o, ok := t.Value.(ast.Object)
			if !ok {
				continue
			}
			if why := checkFinding(o, annotated); why != "" {
				return fmt.Errorf("%s:%d: %s", t.Location.File, t.Location.Row, why)
			}
		}
	}
	return nil
}

// saidBy gives the findings that stand in a rule: in its head, or in what its
// body assigns to the variable there.
func saidBy(r *ast.Rule) []*ast.Term {
	var said []*ast.Term
	keep := func(t *ast.Term) { said = append(said, t) }
	if r.Head.Key == nil {
		switch all := r.Head.Value.Value.(type) {
		case ast.Set:
			all.Foreach(keep)
		case *ast.Array:
			all.Foreach(keep)
		}
		return said
	}
	if _, ok := r.Head.Key.Value.(ast.Var); !ok {
		return append(said, r.Head.Key)
	}
	for _, e := range r.Body {
		if (e.IsAssignment() || e.IsEquality()) && e.Operand(0).Equal(r.Head.Key) {
			keep(e.Operand(1))
		}
	}
	return said
}

// checkFinding says what is wrong with a finding and what mends it; "" is
// nothing. annotated are the ids that have a severity by annotation.
func checkFinding(o ast.Object, annotated map[string]bool) string {
	for _, key := range o.Keys() {
		if k, ok := key.Value.(ast.String); ok && !slices.Contains(findingKeys, string(k)) {
			return fmt.Sprintf("a finding has no %q; its keys are %s", string(k), strings.Join(findingKeys, ", "))
		}
	}
	id := o.Get(ast.StringTerm("id"))
	if id == nil {
		return `a finding without id: give it "id": "NAME-1"`
	}
	severity := o.Get(ast.StringTerm("severity"))
	if severity == nil {
		if name, ok := id.Value.(ast.String); ok && !annotated[string(name)] {
			return "a finding without severity: " + severityMend
		}
	} else if s, ok := severity.Value.(ast.String); ok {
		if _, err := sandbox.ParseLevel(string(s)); err != nil {
			return fmt.Sprintf("there is no severity %q: %s", string(s), severityMend)
		}
	}
	if verdict := o.Get(ast.StringTerm("verdict")); verdict != nil {
		v, ok := verdict.Value.(ast.String)
		if ok && !slices.Contains([]sandbox.Verdict{sandbox.Allow, sandbox.Ask, sandbox.Deny}, sandbox.Verdict(v)) {
			return fmt.Sprintf("there is no verdict %q: leave it out, or make it ask or deny", string(v))
		}
	}
	return ""
}

// userSources reads a user's bundle. What looks like rules and would not be
// read is refused.
func userSources(fsys fs.FS, bundle string) ([]source, error) {
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink == 0 {
			return err
		}
		if st, err := fs.Stat(fsys, name); err != nil || st.IsDir() {
			return fmt.Errorf("user rules %s: %s is a link that is not followed: put the files themselves there", bundle, name)
		}
		return nil
	})
	if err != nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "read rules: %w", err)
	}
	list, err := sources(fsys, bundle, nil)
	switch {
	case err != nil:
		return nil, err
	case len(list) == 0:
		return nil, sandbox.Errorf(sandbox.Invalid, "user rules %s: no .rego file is in it", bundle).
			WithHint("put rules of the package caisson.user.%s into it, or take the folder away", bundle)
	case len(list) > maxUserFiles:
		return nil, sandbox.Errorf(sandbox.Invalid, "user rules %s: more than %d files", bundle, maxUserFiles)
	}
	return list, nil
}

// checkData refuses what lies in an operator's folder of data and would not be
// read. known are the names that would.
func checkData(data fs.FS, known []string) error {
	entries, err := fs.ReadDir(data, ".")
	if err != nil {
		return err
	}
	slices.Sort(known)
	names := strings.Join(slices.Compact(known), ", ")
	for _, e := range entries {
		name := e.Name()
		switch {
		case strings.HasPrefix(name, "."):
		case e.IsDir():
			return fmt.Errorf("%s is a folder, and none is read: its files belong beside it, as %s", name, names)
		case slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(path.Ext(name))) && !slices.Contains(known, name):
			return fmt.Errorf("nothing reads %s: files of data are %s", name, names)
		}
	}
	return nil
}

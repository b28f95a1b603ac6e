package gate

import (
	"context"
	"maps"
	"path"
	"slices"

	"github.com/caisson-dev/caisson/policy"
	"github.com/caisson-dev/caisson/sandbox"
)

// What a module of the workspace does may be up to whoever calls it: it is
// judged by itself, and the texts that import it are judged with it.

// Bounds of the modules that a text is judged with. What is beyond them is
// judged by itself alone.
const (
	mostModules     = 64
	mostModuleBytes = 128 << 10
)

// addModule is addFile of a module of Python, which from calls by that name.
func (w *walker) addModule(ctx context.Context, from *unit, file, as string) error {
	w.importing = w.units[path.Clean(file)] == nil
	err := w.addFile(ctx, file, "python", from.staged, from.roots)
	w.importing = false
	if err != nil {
		return err
	}
	if m := w.units[path.Clean(file)]; m != nil && m.lang == "python" {
		if from.imports == nil {
			from.imports = map[string]*unit{}
		}
		from.imports[as] = m
	}
	return nil
}

// modulesOf are the texts of the modules that a program imports, and of those that
// these import, the nearest first, and of a program for Node what each of them
// imports as what; nil where there are none, and of a module: what it hands to
// others is followed from the program. That of all its texts together too much is to
// be followed is no finding: each was judged by itself.
func modulesOf(u *unit) (texts, links map[string]string) {
	if u.imported {
		return nil, nil
	}
	type module struct {
		name string
		unit *unit
	}
	size := 0
	queue := []module{{"", u}}
	for i := 0; i < len(queue); i++ {
		from := queue[i]
		for _, spec := range slices.Sorted(maps.Keys(from.unit.imports)) {
			m := from.unit.imports[spec]
			name := m.name
			if u.lang == "python" {
				name = policy.ModuleName(from.name, spec)
			}
			_, known := texts[name]
			if name == "" || m == u || m.shipped || !known && (len(texts) >= mostModules || size+len(m.code) > mostModuleBytes) {
				continue
			}
			if texts == nil {
				texts, links = map[string]string{}, map[string]string{}
			}
			if u.lang != "python" {
				links[policy.LinkName(from.name, spec)] = name
			}
			if !known {
				texts[name] = string(m.code)
				size += len(m.code)
				queue = append(queue, module{name, m})
			}
		}
	}
	return texts, links
}

// tooMuch is the finding that a text could not be scanned to its end.
const tooMuch = "SBX-EV-0001"

// followed is a decision on a text with its modules, less that together they
// were too much.
func followed(d sandbox.Decision) sandbox.Decision {
	if !slices.ContainsFunc(d.Findings, func(f sandbox.Finding) bool { return f.ID == tooMuch }) {
		return d
	}
	all := d.Findings
	d.Findings, d.Verdict, d.Level = nil, sandbox.Allow, sandbox.Safe
	for _, f := range all {
		if f.ID != tooMuch {
			d.Findings = append(d.Findings, f)
			d.Verdict, d.Level = sandbox.Stricter(d.Verdict, f.Verdict), max(d.Level, f.Severity)
		}
	}
	return d
}

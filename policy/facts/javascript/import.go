package javascript

import (
	"path"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// importModule gives a module, by the names that spec may have.
func (w *walk) importModule(spec *val, how, alias string, names []string, n id) *val {
	var out *val
	if spec.simple() {
		for _, m := range spec.Alts {
			w.importFact(facts.Import{Module: strings.TrimPrefix(m, "node:"), Names: names, Alias: alias, How: how}, n)
			if strings.HasSuffix(m, ".node") {
				w.dynamic(facts.DynNative, m, n)
			}
			if strings.HasPrefix(m, "data:") {
				w.dataModule(m, n)
			}
			w.farModule(m, n)
			v := w.load(m, n)
			if v == nil {
				v = w.moduleValue(m)
			}
			out = union(out, v)
		}
		if spec.Known() {
			return out
		}
	}
	head := spec.Head()
	if strings.HasPrefix(head, "./") || strings.HasPrefix(head, "../") || strings.HasPrefix(head, "/") {
		w.importFact(facts.Import{Module: head + "*", Names: names, Alias: alias, How: how}, n)
	} else if !strings.HasSuffix(spec.Tail(), ".json") { // data holds no code
		w.dynamic(facts.DynImport, head, n, spec.origins()...)
		return union(out, opaque(merge([]string{"module"}, spec.From)))
	}
	return union(out, opaque(spec.From))
}

// farModule is a module that comes from the network, or data of a file outside.
func (w *walk) farModule(spec string, n id) {
	switch {
	case w.quiet > 0:
	case strings.HasPrefix(spec, "https://"), strings.HasPrefix(spec, "http://"):
		w.b.Net(facts.Use{Pos: w.pos(n), Op: facts.OpDownload, What: facts.Text(spec), By: "import"})
	case strings.HasPrefix(spec, "/") && (path.Ext(spec) == ".json" || path.Ext(spec) == ""):
		w.b.File(facts.Use{Pos: w.pos(n), Op: facts.OpRead, What: facts.Text(spec), By: "require"})
	}
}

func (w *walk) importFact(f facts.Import, n id) {
	if w.quiet == 0 && w.once("import "+f.Module, n) {
		f.Pos = w.pos(n)
		w.b.Import(f)
	}
}

func (w *walk) moduleValue(spec string) *val {
	name := moduleName(spec)
	head, _, _ := strings.Cut(name, ".")
	w.loaded[head] = true
	w.others = w.others || w.module(name) == "" && !present[head]
	if name == globalName {
		return named(globalName, "alias")
	}
	return &val{name: name, how: "alias"}
}

// dataModule scans the code in the URL of a module.
func (w *walk) dataModule(url string, n id) {
	head, body, _ := strings.Cut(url, ",")
	v := text(body)
	if strings.HasSuffix(head, "base64") {
		v = decodeBase64(v)
	} else {
		v = mapText(v, percent)
	}
	if w.quiet == 0 {
		w.b.Nested(facts.JavaScript, v.out(), facts.NestedOpts{Pos: w.pos(n), Via: []string{"import"}})
	}
}

func (w *walk) importStmt(n id) {
	if req := w.t.kid(n, kImportRequire); req != 0 {
		src := w.t.child(req, fSource)
		if src == 0 {
			src = w.t.kid(req, kString)
		}
		name := w.t.kid(req, kIdentifier)
		m := w.importModule(text(w.stringText(src)), "require", w.t.text(name), nil, n)
		w.declareAt(name, m)
		return
	}
	src := w.t.child(n, fSource)
	if src == 0 {
		return
	}
	var names []string
	alias := ""
	type local struct {
		at   id
		name string // "" is the module itself
	}
	var locals []local
	if clause := w.t.kid(n, kImportClause); clause != 0 {
		w.t.each(clause, func(c id) {
			switch w.t.kind(c) {
			case kIdentifier:
				alias = w.t.text(c)
				locals = append(locals, local{c, "default"})
			case kNamespaceImport:
				if name := w.t.kid(c, kIdentifier); name != 0 {
					alias = w.t.text(name)
					locals = append(locals, local{name, ""})
				}
			case kNamedImports:
				w.t.each(c, func(s id) {
					if w.t.kind(s) != kImportSpecifier {
						return
					}
					name := w.t.child(s, fName)
					key, ok := w.key(name)
					if !ok {
						return
					}
					names = append(names, key)
					at := name
					if a := w.t.child(s, fAlias); a != 0 {
						at = a
					}
					locals = append(locals, local{at, key})
				})
			default: // words and commas
			}
		})
	}
	m := w.importModule(text(w.stringText(src)), "import", alias, names, n)
	for _, l := range locals {
		if l.name == "default" && m.ref != nil && m.ref.props["default"] != nil {
			w.declareAt(l.at, m.ref.props["default"])
			continue
		}
		if l.name == "" || l.name == "default" {
			w.declareAt(l.at, m)
			continue
		}
		w.declareAt(l.at, w.member(m, l.name, "", l.at))
	}
}

package python

import (
	"maps"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// maxModules bounds the modules of the workspace that are followed.
const maxModules = 64

func (it *interp) importStatement(n *node, s *scope) {
	for c := n.first; c != nil; c = c.next {
		if c.field != "name" {
			continue
		}
		module, alias := it.importName(c)
		it.importFact(c, facts.Import{Module: module, Alias: alias, How: "import"})
		if alias != "" {
			it.set(s, alias, it.imported(module, "alias", c))
			continue
		}
		root, _, _ := strings.Cut(module, ".")
		if v := it.swap(root); v != nil {
			it.set(s, root, v)
			continue
		}
		it.set(s, root, it.rooted(root, module, c))
	}
}

// importName reads "a.b" or "a.b as c".
func (it *interp) importName(c *node) (name, alias string) {
	if c.kind == "aliased_import" {
		alias = identifier(it.t.text(c.child("alias")))
		c = c.child("name")
	}
	return identifier(strings.Join(strings.Fields(it.t.text(c)), "")), alias
}

func (it *interp) importFrom(n *node, s *scope) {
	module := identifier(strings.Join(strings.Fields(it.t.text(n.child("module_name"))), ""))
	f := facts.Import{Module: module, How: "from"}
	from := it.load(module, n)
	for c := n.first; c != nil; c = c.next {
		switch {
		case c.field == "name":
			name, alias := it.importName(c)
			f.Names = append(f.Names, name)
			how := "from"
			if alias == "" {
				alias = name
			} else {
				how = "alias"
			}
			v := it.taken(from, module, name, n)
			if other := it.swap(module); other != nil {
				v = it.attribute(other, name, n, s)
			}
			if v == nil {
				v = ref(canonical(module+"."+name), how)
			}
			it.set(s, alias, v)
		case c.kind == "wildcard_import":
			f.Names = append(f.Names, "*")
			it.star = append(it.star, canonical(module))
			if from != nil {
				vars := from.x.cls.scope.vars
				for _, name := range slices.Sorted(maps.Keys(vars)) {
					if !strings.HasPrefix(name, "_") {
						it.set(s, name, vars[name])
					}
				}
			}
		}
	}
	it.importFact(n, f)
}

// taken is what a module of the workspace has under a name, or its module of that
// name, nil where neither is known.
func (it *interp) taken(from *val, module, name string, n *node) *val {
	if from != nil {
		if v := from.x.cls.member(name, 0); v != nil {
			return v
		}
	}
	if !it.b.HasModules() {
		return nil
	}
	if !strings.HasSuffix(module, ".") {
		module += "."
	}
	return it.load(module+name, n)
}

// rooted is what import a.b binds to a: it has b, where that is of the workspace.
func (it *interp) rooted(root, module string, n *node) *val {
	top := it.load(root, n)
	if !it.b.HasModules() || root == module {
		if top == nil {
			return ref(canonical(root), "")
		}
		return top
	}
	at := top
	for name, rest := root, module[len(root)+1:]; ; {
		part, more, _ := strings.Cut(rest, ".")
		name += "." + part
		sub := it.load(name, n)
		if sub == nil && more == "" {
			break
		}
		if sub == nil {
			sub = newModule(name)
		}
		if at == nil {
			top = newModule(root)
			at = top
		}
		it.set(at.x.cls.scope, part, sub)
		if at, rest = sub, more; rest == "" {
			break
		}
	}
	if top == nil {
		return ref(canonical(root), "")
	}
	return top
}

// imported is a module by its name: what is known of it, or its name.
func (it *interp) imported(name, how string, n *node) *val {
	if v := it.swap(name); v != nil {
		return v
	}
	if v := it.load(name, n); v != nil {
		return v
	}
	return ref(canonical(name), how)
}

// newModule stands for a module of the workspace: its names are those of a class
// that nothing makes objects of.
func newModule(name string) *val {
	c := &class{name: name, attrs: map[string]*val{}, scope: newScope(nil), module: true}
	c.value = &val{kind: kClass, x: &extra{cls: c}}
	return c.value
}

// load follows a module of the workspace whose text is known, so that calls of
// what it offers are followed into it; nil where none is.
func (it *interp) load(name string, n *node) *val {
	if !it.b.HasModules() {
		return nil
	}
	name = facts.ModuleName(it.t.module, name)
	if v, ok := it.loaded[name]; ok {
		return v
	}
	text, isPackage, ok := it.b.Module(name)
	if !ok || len(it.loaded) >= maxModules {
		return nil
	}
	if it.loaded == nil {
		it.loaded = map[string]*val{}
	}
	it.loaded[name] = nil // while it is followed it may import itself
	t := it.g.parse(text)
	if t == nil || t.root == nil || t.errors > 0 {
		return nil
	}
	v := newModule(name)
	it.loaded[name] = v
	if t.module = name; isPackage {
		t.module += facts.PackageInit
	}
	it.set(v.x.cls.scope, "__name__", str(name))
	it.limit += stepsPerNode * t.nodes
	before, at, module, opening, pending := it.t, it.at, it.module, it.opening, len(it.pending)
	if at == nil {
		it.at = n
	}
	t.at = it.at
	it.t, it.module, it.opening = t, v.x.cls.scope, false
	it.block(t.root, it.module)
	it.t, it.at, it.module, it.opening = before, at, module, opening
	// What nobody calls here is judged with its own text.
	it.pending = it.pending[:min(pending, len(it.pending))]
	return v
}

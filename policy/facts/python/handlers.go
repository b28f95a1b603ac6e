package python

import (
	"maps"
	"strings"

	"github.com/caisson-dev/caisson/internal/lazyregexp"
	"github.com/caisson-dev/caisson/policy/facts"
)

// handler folds a call of something outside, or does what no table can say.
// It gives nil for a call that is to be reported like any other.
type handler func(c *invocation) *val

// newHandlers gives all handlers by canonical name.
func newHandlers() map[string]handler {
	out := map[string]handler{}
	for _, m := range []map[string]handler{
		namespaceHandlers(), textHandlers(), sequenceHandlers(), functionHandlers(), codecHandlers(), pathHandlers(), treeHandlers(), tempHandlers(), envHandlers(),
		libraryHandlers(), optionHandlers(), nativeHandlers(), userHandlers(), linkHandlers(),
	} {
		maps.Copy(out, m)
	}
	return out
}

// namespaceHandlers reach names and modules.
func namespaceHandlers() map[string]handler {
	return map[string]handler{
		"getattr":                            (*invocation).getattr,
		"inspect.getattr_static":             (*invocation).getattr,
		"object.__getattribute__":            (*invocation).getattr,
		"type.__getattribute__":              (*invocation).getattr,
		"setattr":                            (*invocation).setattr,
		"object.__setattr__":                 (*invocation).setattr,
		"hasattr":                            func(c *invocation) *val { return unknown },
		"__import__":                         (*invocation).importCall,
		"importlib.import_module":            (*invocation).importCall,
		"importlib.reload":                   func(c *invocation) *val { return c.get0() },
		"importlib.util.find_spec":           (*invocation).findSpec,
		"importlib.util.module_from_spec":    (*invocation).moduleFromSpec,
		"pkgutil.resolve_name":               (*invocation).resolveName,
		"pydoc.locate":                       (*invocation).resolveName,
		"globals":                            func(c *invocation) *val { return &val{kind: kSpace} },
		"dir":                                (*invocation).dir,
		"locals":                             func(c *invocation) *val { return &val{kind: kSpace} },
		"vars":                               (*invocation).vars,
		"sys.modules.get":                    func(c *invocation) *val { return c.it.itemOfRef(ref("sys.modules", ""), c.get0(), c.n) },
		"sys.modules.__getitem__":            func(c *invocation) *val { return c.it.itemOfRef(ref("sys.modules", ""), c.get0(), c.n) },
		"sys.modules.values":                 func(*invocation) *val { return fromSomewhere },
		"sys.modules.items":                  func(*invocation) *val { return fromSomewhere },
		"sys.modules.copy":                   func(*invocation) *val { return fromSomewhere },
		"dict.get":                           (*invocation).dictGet,
		"dict.__getitem__":                   (*invocation).dictGet,
		"dict.pop":                           (*invocation).dictGet,
		"dict.setdefault":                    (*invocation).dictSetDefault,
		"dict.update":                        (*invocation).dictUpdate,
		"dict.items":                         (*invocation).dictItems,
		"dict.values":                        (*invocation).dictItems,
		"dict.keys":                          (*invocation).dictItems,
		"dict.copy":                          func(c *invocation) *val { return c.self },
		"inspect.getmembers":                 (*invocation).getmembers,
		"collections.defaultdict":            (*invocation).defaultDict,
		"inspect.getmembers_static":          (*invocation).getmembers,
		"doctest.testmod":                    (*invocation).doctests,
		"doctest.run_docstring_examples":     (*invocation).doctests,
		"doctest.DocTestSuite":               (*invocation).doctests,
		"doctest.DocTestParser.get_doctest":  (*invocation).doctests,
		"doctest.DocTestParser.get_examples": (*invocation).doctests,
		"type":                               (*invocation).typeCall,
		"shutil.which":                       (*invocation).whichCall,
		"types.FunctionType":                 (*invocation).functionOf,
		"super":                              (*invocation).super,
		"eval":                               (*invocation).evalCall,
		"exec":                               (*invocation).execCall,
		"execfile":                           (*invocation).execFile,
		"cProfile.run":                       (*invocation).measured,
		"profile.run":                        (*invocation).measured,
		"cProfile.runctx":                    (*invocation).measuredAmong,
		"profile.runctx":                     (*invocation).measuredAmong,
		"timeit.timeit":                      (*invocation).timed,
		"timeit.repeat":                      (*invocation).timed,
		"timeit.Timer":                       (*invocation).timed,
		"isinstance":                         func(c *invocation) *val { return unknown },
		"os.getpid":                          (*invocation).ownProcess,
		"sys._getframe":                      func(c *invocation) *val { return &val{kind: kObj, text: "frame"} },
		"inspect.currentframe":               func(c *invocation) *val { return &val{kind: kObj, text: "frame"} },
		"importlib.machinery.BuiltinImporter.load_module": (*invocation).importCall,
		"__loader__.load_module":                          (*invocation).importCall,
	}
}

func (c *invocation) getattr() *val {
	obj, name := c.at(0, ""), c.at(1, "")
	if obj == nil || name == nil {
		return derived(c.all()...)
	}
	got := c.it.attributeNamed(obj, name, c.n, c.s)
	if len(c.pos) > 2 && got.kind == kUnknown {
		return join(got, c.pos[2])
	}
	return got
}

// get0 is the first positional argument, or something unknown.
func (c *invocation) get0() *val { return c.nth(0) }

func (c *invocation) nth(i int) *val {
	if i < len(c.pos) {
		return c.pos[i]
	}
	if c.open {
		return &val{from: c.rest}
	}
	return unknown
}

func (c *invocation) setattr() *val {
	obj, name, v := c.nth(0), c.nth(1), c.nth(2)
	s, ok := name.oneText()
	for _, o := range obj.branches() {
		switch {
		case !ok:
			c.it.opaqueAttribute(o, name, c.n)
			c.it.mayRelocate(o)
			c.it.kept(v, anyFunction)
		case o.kind == kInst || o.kind == kClass:
			c.it.assignMember(o.x.cls, s, v)
		case o.kind == kRef && (o.text == "builtins" || o.text == "__builtins__"):
			c.it.set(c.it.module, s, v)
		case o.kind == kRef || o.kind == kObj:
			c.it.patch(o, s, v, c.n)
			c.it.kept(v, s)
		default:
			c.it.kept(v, s)
		}
	}
	return none
}

// importCall is __import__ and importlib.import_module: the first gives the
// outermost package unless it is asked for names.
func (c *invocation) importCall() *val {
	name := c.get(0, "name")
	if name == nil {
		return unknown
	}
	c.it.report(c.name, c.arguments, nil, c.n)
	if name.kind != kStr {
		if inPackage(name) {
			return &val{from: name.from} // of a package that is named: no more than what it is
		}
		return &val{from: mix([]string{"module"}, name.from)}
	}
	from := c.at(3, "fromlist")
	return c.it.eachText(name, func(s string) *val {
		s = identifier(s)
		if c.name == "__import__" && from == nil {
			root, _, _ := strings.Cut(s, ".")
			if v := c.it.rooted(root, s, c.n); v.kind == kClass {
				return v
			}
			return ref(canonical(root), "__import__")
		}
		if pkg := c.at(1, "package"); strings.HasPrefix(s, ".") && pkg != nil {
			if p, ok := pkg.oneText(); ok {
				s = p + s
			}
		}
		return c.it.imported(s, "import_module", c.n)
	})
}

// inPackage reports that a module's name begins with that of a package which is
// none of Python's own that runs things.
func inPackage(name *val) bool {
	pkg, _, ok := strings.Cut(head(name), ".")
	return ok && pkg != "" && !dangerousModules[pkg] && !stdPackages[pkg]
}

// stdPackages are those of Python's own packages with modules that run things.
var stdPackages = map[string]bool{
	"os": true, "multiprocessing": true, "asyncio": true, "concurrent": true, "importlib": true, "ctypes": true, "distutils": true, "idlelib": true,
	"test": true, "unittest": true, "encodings": true, "http": true, "urllib": true, "xmlrpc": true, "email": true, "logging": true, "lib2to3": true,
}

// findSpec is a module that is loaded by hand.
func (c *invocation) findSpec() *val {
	name, ok := c.nth(0).oneText()
	if !ok {
		return unknown
	}
	c.it.importFact(c.n, facts.Import{Module: name, How: "import_module"})
	return c.object("importlib.spec", ref(canonical(name), "import_module"))
}

func (c *invocation) moduleFromSpec() *val {
	if spec := c.nth(0); spec.kind == kObj && spec.text == "importlib.spec" {
		return spec.x.items[0]
	}
	return nil
}

// resolveName is pkgutil.resolve_name("os:system").
func (c *invocation) resolveName() *val {
	name := c.get0()
	if name.kind != kStr {
		c.it.dynamic(facts.DynImport, c.name, c.n, name.origins(0)...)
		return &val{from: mix([]string{"module"}, name.from)}
	}
	return c.it.eachText(name, func(s string) *val {
		module, _, _ := strings.Cut(s, ":")
		c.it.importFact(c.n, facts.Import{Module: module, How: "import_module"})
		return ref(canonical(strings.Replace(s, ":", ".", 1)), "import_module")
	})
}

func (c *invocation) vars() *val {
	if len(c.pos) == 0 {
		return &val{kind: kSpace}
	}
	c.it.ownModule(c.pos[0])
	return &val{kind: kSpace, x: &extra{self: c.pos[0]}}
}

func (c *invocation) dictGet() *val {
	if c.self == nil {
		return nil
	}
	key := c.nth(0)
	got := c.it.item(c.self, key, c.n, c.s)
	if len(c.pos) > 1 && c.self.kind == kDict && c.self.x.dict[dictKey(key)] == nil {
		return prefer(got, c.pos[1])
	}
	return got
}

func (c *invocation) dictSetDefault() *val {
	if c.self == nil || c.self.kind != kDict {
		return nil
	}
	key := c.nth(0)
	if k := dictKey(key); k != "" && c.self.x.dict[k] != nil {
		return c.self.x.dict[k]
	}
	v := c.nth(1)
	c.self.put(key, v)
	return v
}

func (c *invocation) dictUpdate() *val {
	if c.self != nil && c.self.kind == kSpace && c.self.x == nil && c.self.text == "" {
		for _, v := range c.pos { // the names of a module become those of this one
			if v.kind == kSpace && v.x != nil && v.x.self != nil && v.x.self.kind == kRef {
				c.it.star = append(c.it.star, v.x.self.text)
			}
		}
	}
	if c.self == nil || c.self.kind != kDict {
		return nil
	}
	c.it.changed("", c.all()...)
	for _, v := range c.pos {
		if v.isSeq() && !v.open { // pairs
			v = (&invocation{it: c.it, arguments: &arguments{pos: []*val{v}}, n: c.n, s: c.s}).dict()
		}
		if v.kind != kDict || v.open || len(c.it.marks) == 0 {
			c.self.merge(v)
			continue
		}
		for _, k := range v.x.order {
			c.it.store(c.self, keyValue(k), v.x.dict[k])
		}
	}
	for _, k := range c.keys {
		c.it.store(c.self, str(k), c.kw[k])
	}
	return none
}

func (c *invocation) dictItems() *val {
	if c.self != nil && c.self.kind == kSpace && c.self.x != nil && c.name != "dict.keys" && c.it.looksInto(c.self.x.self) {
		return fromSomewhere
	}
	if c.self != nil && c.self.kind == kSpace && c.self.x == nil && c.self.text == "" && c.name == "dict.keys" {
		return ownNames()
	}
	if c.self != nil && c.self.kind == kSpace && c.self.x != nil && c.it.theirs(c.self.x.self) {
		return membersOf(c.name)
	}
	if c.self == nil || c.self.kind != kDict {
		return nil
	}
	out := &val{kind: kList, open: c.self.open, from: c.self.from, x: &extra{}}
	for _, k := range c.self.x.order {
		v := c.self.x.dict[k]
		switch c.name {
		case "dict.items":
			v = list(kTuple, []*val{keyValue(k), v})
		case "dict.keys":
			v = keyValue(k)
		}
		out.x.items = append(out.x.items, v)
	}
	if c.self.open && len(c.self.x.order) > 0 { // what else it holds is met as well
		more := derived(c.self)
		if c.name == "dict.items" {
			more = list(kTuple, []*val{more, more})
		}
		out.x.items = append(out.x.items, more)
	}
	return out
}

// defaultDict makes what it does not hold, where that is a function.
func (c *invocation) defaultDict() *val {
	factory := c.get0()
	if factory.kind != kFunc {
		return nil
	}
	made := c.it.call(factory, &arguments{}, c.n, c.s)
	if made.kind < kRef || made.kind > kWrap {
		return nil
	}
	return &val{kind: kDict, open: true, x: &extra{dict: map[string]*val{"?:": made}}}
}

// looksInto reports that v is a module of which any function may come up.
func (it *interp) looksInto(v *val) bool { return v != nil && v.kind == kRef && it.dangerous(v.text) }

// getmembers lists names of an object with what they stand for.
func (c *invocation) getmembers() *val {
	if c.it.looksInto(c.get0()) {
		return fromSomewhere
	}
	return nil
}

func (c *invocation) typeCall() *val {
	if len(c.pos) == 3 {
		// type(name, bases, namespace) makes a class.
		cls := &class{name: "<type>", attrs: map[string]*val{}, scope: newScope(nil)}
		if c.pos[1].isSeq() {
			cls.bases = c.pos[1].x.items
		}
		if d := c.pos[2]; d.kind == kDict {
			for _, k := range d.x.order {
				_, name, _ := strings.Cut(k, ":")
				cls.attrs[name] = cls.method(d.x.dict[k])
			}
		}
		cls.value = &val{kind: kClass, x: &extra{cls: cls}}
		return cls.value
	}
	switch v := c.get0(); v.kind {
	case kInst:
		return v.x.cls.value
	case kObj:
		return ref(v.text, "type")
	case kRef:
		if c.it.dangerous(v.text) {
			return ref("?class", "class")
		}
		return unknown
	default:
		return ref("?class", "class")
	}
}

// whichCall is shutil.which: a program by its name stands for the program.
func (c *invocation) whichCall() *val {
	if name := c.get0(); name.kind == kStr && len(c.pos) == 1 && len(c.keys) == 0 {
		return name
	}
	return nil
}

// functionOf is types.FunctionType: of the code of a function of the program it
// makes another that does the same.
func (c *invocation) functionOf() *val {
	if among := c.get(1, "globals"); among != nil && among.kind == kDict && !among.ownWords() {
		return nil // the names in it mean something else
	}
	if code := c.get0(); code.kind == kObj && code.text == "function.__code__" {
		return code.x.self
	}
	if code := c.get0(); code.kind == kRef && strings.HasSuffix(code.text, ".__code__") {
		return derived(code) // a copy of a function, which does what that does
	}
	return nil
}

func (c *invocation) super() *val {
	for i := len(c.it.calls) - 1; i >= 0; i-- {
		if cls := c.it.calls[i].cls; cls != nil {
			up := &class{name: cls.name, bases: cls.bases, attrs: map[string]*val{}, scope: newScope(nil)}
			up.value = &val{kind: kClass, x: &extra{cls: up}}
			return &val{kind: kInst, x: &extra{cls: up}}
		}
	}
	return unknown
}

// evalCall reports the call, whose text the builder scans, and then folds the
// expression here to know its value.
func (c *invocation) evalCall() *val {
	code := c.get0()
	got, v := c.evaluate(code)
	if v != nil {
		return v
	}
	return got.with(code.origins(0))
}

func (c *invocation) execCall() *val {
	if v := c.execStatement(); v != nil {
		return c.it.call(ref("exec", ""), &arguments{pos: []*val{v}, how: c.how}, c.n, c.s)
	}
	c.evaluate(c.get0())
	return none
}

// execFile is Python 2's execfile, which runs the text of a file.
func (c *invocation) execFile() *val {
	file := c.it.call(ref("open", ""), &arguments{pos: []*val{c.get0()}}, c.n, c.s)
	text := c.it.call(c.it.attribute(file, "read", c.n, c.s), &arguments{}, c.n, c.s)
	return c.it.call(ref("exec", ""), &arguments{pos: append([]*val{text}, c.pos[min(1, len(c.pos)):]...), how: c.how}, c.n, c.s)
}

// statement is Python 2's "exec code in globals, locals", as text for those
// that cannot write it down.
var statement = lazyregexp.New(`^\s*exec\s+([A-Za-z_]\w*)\s+in\s+[\w\s,]+$`)

// execStatement is what such a text runs: a variable around it.
func (c *invocation) execStatement() *val {
	text, ok := c.get0().oneText()
	if !ok || len(text) > 200 {
		return nil
	}
	if m := statement().FindStringSubmatch(text); m != nil {
		if v, ok := c.it.find(c.s, m[1]); ok {
			return v
		}
	}
	return nil
}

// ownWords reports a dictionary of names that stand for no function, or for the
// one that is called so.
func (v *val) ownWords() bool {
	if v.open {
		return false
	}
	for _, key := range v.x.order {
		name, _ := strings.CutPrefix(key, textKey)
		item := v.x.dict[key]
		own := item.kind == kFunc && item.x.fn.name == name || item.kind == kRef && item.text == name && name != "__builtins__"
		if !item.isConst() && !own {
			return false
		}
	}
	return true
}

package python

import (
	"encoding/json"
	"strings"
)

// libraryHandlers are objects of the standard library that carry values of the
// program from one place to another: options, queues, templates, records.
func libraryHandlers() map[string]handler {
	packages := func(*invocation) *val { return list(kList, []*val{str(sitePackages)}) }
	oneFolder := func(*invocation) *val { return str(sitePackages) }
	out := map[string]handler{
		"site.getsitepackages":               packages,
		"site.getusersitepackages":           func(*invocation) *val { return str("~/.local/lib/python3/site-packages") },
		"sysconfig.get_path":                 (*invocation).installPath,
		"sysconfig.get_paths":                (*invocation).installPaths,
		"distutils.sysconfig.get_python_lib": oneFolder,
		"json.loads":                         (*invocation).jsonLoads,
		"string.Template":                    func(c *invocation) *val { return c.object("string.Template", c.get0()) },
		"string.Template.substitute":         (*invocation).substitute,
		"string.Template.safe_substitute":    (*invocation).substitute,
		"collections.namedtuple":             (*invocation).namedTuple,
		"typing.NamedTuple":                  (*invocation).namedTuple,
		"dataclasses.make_dataclass":         (*invocation).namedTuple,
		"types.SimpleNamespace":              (*invocation).simpleNamespace,
		"threading.local":                    (*invocation).simpleNamespace,
		"joblib.delayed":                     func(c *invocation) *val { return c.get0() },
		"typer.Option":                       (*invocation).givenDefault,
		"typer.Argument":                     (*invocation).givenDefault,
		"os.startfile":                       (*invocation).startFile,
	}
	for _, class := range []string{"queue.Queue", "queue.SimpleQueue", "queue.LifoQueue", "queue.PriorityQueue", "asyncio.Queue", "multiprocessing.Queue", "multiprocessing.SimpleQueue", "multiprocessing.JoinableQueue"} {
		out[class+".put"], out[class+".put_nowait"] = (*invocation).enqueue, (*invocation).enqueue
		out[class+".get"], out[class+".get_nowait"] = (*invocation).dequeue, (*invocation).dequeue
	}
	return out
}

// sitePackages is where modules of others are installed.
const sitePackages = "/usr/lib/python3/site-packages"

// installPath is sysconfig.get_path.
func (c *invocation) installPath() *val {
	if len(c.pos) != 1 || len(c.keys) > 0 {
		return nil // of another scheme, or below another folder
	}
	switch name, _ := c.nth(0).oneText(); name {
	case "purelib", "platlib":
		return str(sitePackages)
	case "stdlib", "platstdlib":
		return str("/usr/lib/python3")
	case "scripts":
		return str("/usr/bin")
	}
	return nil
}

// installPaths is sysconfig.get_paths.
func (c *invocation) installPaths() *val {
	if len(c.pos) > 0 || len(c.keys) > 0 {
		return nil
	}
	d := &val{kind: kDict, open: true, x: &extra{dict: map[string]*val{}}}
	for name, folder := range map[string]string{"purelib": sitePackages, "platlib": sitePackages, "stdlib": "/usr/lib/python3", "scripts": "/usr/bin"} {
		d.put(str(name), str(folder))
	}
	return d
}

// object is an object of something outside that holds values of the program.
func (c *invocation) object(typ string, items ...*val) *val {
	return &val{kind: kObj, text: typ, x: &extra{items: items}}
}

// jsonLoads folds a text that stands in the program.
func (c *invocation) jsonLoads() *val {
	text, ok := c.get0().oneText()
	if !ok || len(text) > maxJSON {
		return nil
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	v, err := decodeJSON(d, 0)
	if err != nil {
		return nil
	}
	return v.with(c.get0().from)
}

// maxJSON bounds the text that is decoded, maxJSONDepth its nesting.
const (
	maxJSON      = 32 << 10
	maxJSONDepth = 32
)

// decodeJSON reads one value, keeping the order of keys.
func decodeJSON(d *json.Decoder, depth int) (*val, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Delim:
		if depth > maxJSONDepth {
			return unknown, nil
		}
		return decodeMany(d, t, depth)
	case string:
		return str(t), nil
	case json.Number:
		return number(t.String()), nil
	case bool:
		return boolean(t), nil
	default:
		return none, nil
	}
}

func decodeMany(d *json.Decoder, open json.Delim, depth int) (*val, error) {
	out := list(kList, nil)
	if open == '{' {
		out = &val{kind: kDict, x: &extra{dict: map[string]*val{}}}
	}
	for d.More() {
		var key *val
		if open == '{' {
			k, err := decodeJSON(d, depth+1)
			if err != nil {
				return nil, err
			}
			key = k
		}
		item, err := decodeJSON(d, depth+1)
		if err != nil {
			return nil, err
		}
		if key != nil {
			out.put(key, item)
		} else {
			out.x.items = append(out.x.items, item)
		}
	}
	_, err := d.Token()
	return out, err
}

// substitute fills in a string.Template.
func (c *invocation) substitute() *val {
	if c.self == nil || c.self.x == nil || len(c.self.x.items) == 0 {
		return nil
	}
	t, ok := c.self.x.items[0].oneText()
	if !ok || len(t) > maxJSON {
		return nil
	}
	acc := str("")
	for {
		i := strings.IndexByte(t, '$')
		if i < 0 || i+1 == len(t) {
			return c.it.concat(acc, str(t)).with(c.self.x.items[0].from)
		}
		acc, t = c.it.concat(acc, str(t[:i])), t[i+1:]
		name, rest := templateName(t)
		if t[0] == '$' {
			acc, t = c.it.concat(acc, str("$")), t[1:]
			continue
		}
		v := c.kw[name]
		if v == nil && len(c.pos) > 0 && c.pos[0].kind == kDict {
			v = c.pos[0].value(str(name))
		}
		if v == nil {
			v = derived(c.all()...)
		}
		acc, t = c.it.concat(acc, toStr(v)), rest
	}
}

// templateName is the name at the start of a text, in braces or not.
func templateName(t string) (name, rest string) {
	if inner, ok := strings.CutPrefix(t, "{"); ok {
		if name, rest, ok = strings.Cut(inner, "}"); ok {
			return name, rest
		}
	}
	i := 0
	for i < len(t) && wordRune(rune(t[i])) {
		i++
	}
	return t[:i], t[i:]
}

// namedTuple makes a class whose fields are named by a list or by a text.
func (c *invocation) namedTuple() *val {
	cls := &class{name: "<tuple>", attrs: map[string]*val{}, scope: newScope(nil), tuple: true}
	names := c.nth(1)
	if text, ok := names.oneText(); ok {
		cls.fields = strings.Fields(strings.ReplaceAll(text, ",", " "))
	} else if items, ok := c.it.iterate(names, c.n); ok {
		for _, item := range items {
			if item.isSeq() && len(item.x.items) > 0 {
				item = item.x.items[0]
			}
			name, _ := item.oneText()
			cls.fields = append(cls.fields, name)
		}
	}
	if defaults := c.kw["defaults"]; defaults != nil && defaults.isSeq() {
		first := len(cls.fields) - len(defaults.x.items)
		for i, v := range defaults.x.items {
			if first+i >= 0 {
				cls.attrs[cls.fields[first+i]] = v
			}
		}
	}
	cls.value = &val{kind: kClass, x: &extra{cls: cls}}
	return cls.value
}

func (c *invocation) simpleNamespace() *val {
	cls := &class{name: "<namespace>", attrs: map[string]*val{}, scope: newScope(nil)}
	for _, k := range c.keys {
		cls.attrs[k] = c.kw[k]
	}
	cls.value = &val{kind: kClass, x: &extra{cls: cls}}
	return cls.instance()
}

// enqueue puts a value into a queue; those who found it empty look again.
func (c *invocation) enqueue() *val {
	if c.self == nil || c.self.kind != kObj || c.self.x == nil {
		return nil
	}
	if q := c.self.x; len(q.items) < maxQueue {
		q.items = append(q.items, c.nth(0))
		c.it.changed("", c.nth(0))
	}
	return none
}

// maxQueue bounds what is remembered of a queue.
const maxQueue = 64

// dequeue is any of what a queue was given.
func (c *invocation) dequeue() *val {
	if c.self == nil || c.self.kind != kObj || c.self.x == nil {
		return nil
	}
	if len(c.self.x.items) == 0 {
		c.it.wait(c.s)
		return derived(c.self)
	}
	return widest(c.self.x.items, c.self)
}

// waiter is a function that found a queue empty, as it was called.
type waiter struct {
	f    *function
	vars map[string]*val
}

const maxWaiters = 8

// wait notes that the function around s is to be followed again at the end.
func (it *interp) wait(s *scope) {
	for p := s; p != nil; p = p.parent {
		if p.fn != nil && p.given != nil {
			if len(it.waiters) < maxWaiters {
				it.waiters = append(it.waiters, waiter{p.fn, p.given})
			}
			return
		}
	}
}

// resume follows those who waited, with what queues hold by now.
func (it *interp) resume() {
	waiters := it.waiters
	it.waiters = nil
	for _, w := range waiters {
		it.enterFunction(w.f, w.vars, w.f.body)
	}
	it.waiters = nil
}

// fromKeys is dict.fromkeys.
func (c *invocation) fromKeys() *val {
	keys, ok := c.it.iterate(c.get(0, "iterable"), c.n)
	if len(keys) == 0 || len(keys) > 4096 {
		return nil
	}
	d := &val{kind: kDict, open: !ok, x: &extra{dict: map[string]*val{}}}
	value := none
	if v := c.get(1, "value"); v != nil {
		value = v
	}
	for _, k := range keys {
		d.put(k, value)
	}
	return d
}

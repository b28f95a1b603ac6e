package python

import (
	"path"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// isPath reports an object of pathlib.
func isPath(v *val) bool {
	return v.kind == kObj && v.text == "pathlib.Path" && v.x != nil && v.x.str != nil
}

// newPath is a path object that stands for a text.
func newPath(s *val) *val {
	if s.kind == kObj && s.x != nil && s.x.str != nil {
		s = s.x.str
	}
	return &val{kind: kObj, text: "pathlib.Path", from: s.from, x: &extra{str: s}}
}

// pathText is the text of a path argument.
func pathText(v *val) *val {
	if v.kind == kObj && v.x != nil && v.x.str != nil {
		return v.x.str
	}
	if v.kind == kBytes {
		return v.decode()
	}
	return v
}

// inFolder is a path that a name in the folder stands for: no more the name
// alone, by which other things are looked for elsewhere.
func inFolder(v *val) *val {
	if !v.isText() {
		return v
	}
	out := v.mapText(kStr, func(s string) (string, bool) {
		if s == "" || s == "." || strings.ContainsAny(s, "/~") {
			return s, true
		}
		return "./" + s, true
	})
	if v.open && out.x == nil {
		out.x = v.x
	}
	return out
}

// joinPath is a / b, and os.path.join(a, b).
func joinPath(a, b *val) *val { return newPath(joinTexts(pathText(a), pathText(b))) }

func joinTexts(a, b *val) *val {
	if b.isText() {
		var out *val
		for _, y := range b.all() {
			if strings.HasPrefix(y, "/") {
				out = join(out, str(y))
				continue
			}
			out = join(out, concat(withSlash(a), str(y)))
		}
		if b.open {
			out = join(out, &val{from: b.from})
		}
		return out.with(mix(a.from, b.from))
	}
	if h := head(b); strings.HasPrefix(h, "/") {
		return b
	}
	return concat(withSlash(a), b)
}

func withSlash(a *val) *val {
	if a.isText() {
		return a.mapText(kStr, func(s string) (string, bool) {
			if s == "" || strings.HasSuffix(s, "/") {
				return s, true
			}
			return s + "/", true
		})
	}
	return concat(a, str("/"))
}

// textOf is the text that a new object stands for.
func textOf(typ string, a *arguments, self *val) *val {
	if typ != "pathlib.Path" {
		return nil
	}
	if self != nil && self.kind == kObj && self.x != nil && self.x.str != nil {
		return self.x.str
	}
	if len(a.pos) == 0 {
		return str(".")
	}
	acc := pathText(a.pos[0])
	for _, p := range a.pos[1:] {
		acc = joinTexts(acc, pathText(p))
	}
	return acc
}

// pathAttribute is an attribute of a path object, nil where it is a method.
func pathAttribute(v *val, name string) *val {
	if !isPath(v) || v.x.str == nil {
		return nil
	}
	s := v.x.str
	part := func(f func(string) string) *val {
		if !s.isText() {
			return derived(s)
		}
		return s.mapText(kStr, func(p string) (string, bool) { return f(p), true })
	}
	switch name {
	case "parent":
		if !s.isText() {
			if h := head(s); strings.Contains(h, "/") {
				return newPath(&val{from: s.from, x: &extra{pre: h[:strings.LastIndexByte(h, '/')+1]}})
			}
		}
		return newPath(part(path.Dir))
	case "name":
		return part(path.Base)
	case "stem":
		return part(func(p string) string { b := path.Base(p); return strings.TrimSuffix(b, path.Ext(b)) })
	case "suffix":
		return part(path.Ext)
	case "parents", "parts":
		return derived(s)
	}
	return nil
}

// pathHandlers fold paths. "~" stays: the builder knows whose home that is.
func pathHandlers() map[string]handler {
	same := func(c *invocation) *val { return pathText(c.get0()) }
	whole := func(c *invocation) *val { return inFolder(pathText(c.get0())) }
	ofPath := func(f func(c *invocation, s *val) *val) handler {
		return func(c *invocation) *val {
			if c.self == nil || !isPath(c.self) {
				return nil
			}
			return newPath(f(c, c.self.x.str))
		}
	}
	asText := func(c *invocation) *val {
		if c.self == nil { // Path.as_posix(p)
			return toStr(c.get0())
		}
		return toStr(c.self)
	}
	keep := ofPath(func(_ *invocation, s *val) *val { return s })
	full := ofPath(func(_ *invocation, s *val) *val { return inFolder(s) })
	part := func(f func(string) string) handler {
		return func(c *invocation) *val {
			return pathText(c.get0()).mapText(kStr, func(p string) (string, bool) { return f(p), true })
		}
	}
	return map[string]handler{
		"pathlib.Path":      func(c *invocation) *val { return newPath(textOf("pathlib.Path", c.arguments, nil)) },
		"pathlib.Path.home": func(*invocation) *val { return newPath(str("~")) },
		"pathlib.Path.cwd":  func(c *invocation) *val { return newPath(c.it.cwd()) },
		"pathlib.Path.joinpath": ofPath(func(c *invocation, s *val) *val {
			for _, p := range c.pos {
				s = joinTexts(s, pathText(p))
			}
			return s
		}),
		"pathlib.Path.resolve": full, "pathlib.Path.absolute": full, "pathlib.Path.expanduser": keep,
		"pathlib.Path.with_name": ofPath(func(c *invocation, s *val) *val {
			return joinTexts(pathAttribute(c.self, "parent").x.str, c.get0())
		}),
		"pathlib.Path.with_suffix": ofPath(func(c *invocation, s *val) *val {
			suffix, ok := c.get0().oneText()
			if !ok {
				return derived(s)
			}
			return s.mapText(kStr, func(p string) (string, bool) { return strings.TrimSuffix(p, path.Ext(p)) + suffix, true })
		}),
		"pathlib.Path.as_posix": asText, "pathlib.Path.__str__": asText, "pathlib.Path.__fspath__": asText,
		"pathlib.Path.relative_to": func(c *invocation) *val {
			if c.self == nil {
				return derived(c.all()...)
			}
			return derived(c.self)
		},
		"os.path.join":       joinPaths,
		"os.path.expanduser": same, "os.path.abspath": whole, "os.path.realpath": whole, "os.path.normpath": part(path.Clean),
		"os.path.expandvars": (*invocation).expandvars,
		"os.fspath":          same, "os.fsdecode": same, "os.fsencode": same,
		"os.path.dirname": part(func(p string) string {
			i := strings.LastIndexByte(p, '/')
			return strings.TrimRight(p[:i+1], "/") + map[bool]string{true: "/"}[i == 0]
		}),
		"os.path.basename": part(func(p string) string { return p[strings.LastIndexByte(p, '/')+1:] }),
		"os.path.splitext": func(c *invocation) *val {
			p, ok := pathText(c.get0()).oneText()
			if !ok {
				return list(kTuple, []*val{derived(c.get0()), unknown})
			}
			return list(kTuple, []*val{str(strings.TrimSuffix(p, path.Ext(p))), str(path.Ext(p))})
		},
		"importlib.util.cache_from_source": (*invocation).cacheFile, "imp.cache_from_source": (*invocation).cacheFile,
		"importlib.util.source_from_cache": (*invocation).cachedSource, "imp.source_from_cache": (*invocation).cachedSource,
		"os.getcwd":                func(c *invocation) *val { return c.it.cwd() },
		"open.write":               (*invocation).fileWrite,
		"open.writelines":          (*invocation).fileWrite,
		"open.read":                (*invocation).fileRead,
		"pathlib.Path.read_text":   (*invocation).fileRead,
		"pathlib.Path.read_bytes":  (*invocation).fileRead,
		"pathlib.Path.write_text":  (*invocation).fileWrite,
		"pathlib.Path.write_bytes": (*invocation).fileWrite,
	}
}

// joinPaths folds os.path.join.
func joinPaths(c *invocation) *val {
	if len(c.pos) == 0 {
		return unknown
	}
	acc := pathText(c.pos[0])
	for _, p := range c.pos[1:] {
		acc = joinTexts(acc, pathText(p))
	}
	if c.open {
		acc = concat(acc, &val{from: c.rest})
	}
	return acc
}

func (it *interp) cwd() *val {
	if d := it.b.Cwd(); d != "" {
		return str(d)
	}
	return unknown
}

// expandvars keeps "$HOME", which the builder knows, and gives up on others.
func (c *invocation) expandvars() *val {
	v := pathText(c.get0())
	return v.mapText(kStr, func(s string) (string, bool) {
		s = strings.NewReplacer("${HOME}", "~", "$HOME", "~").Replace(s)
		return s, !strings.Contains(s, "$")
	})
}

// filePath is the path of the file that a method is called on, and the mode it
// was opened with.
func (c *invocation) filePath() (p *val, mode string) {
	if c.self == nil || c.self.kind != kObj || c.self.x == nil {
		return nil, ""
	}
	if isPath(c.self) {
		return c.self.x.str, "w"
	}
	if len(c.self.x.recv) == 0 {
		return nil, ""
	}
	mode = "r"
	if len(c.self.x.recv) > 1 {
		mode, _ = c.self.x.recv[1].One()
	} else if m, ok := c.self.x.fields["mode"]; ok {
		mode, _ = m.One()
	}
	return fromFact(c.self.x.recv[0]), mode
}

// fileWrite remembers what is written, for when that file is run.
func (c *invocation) fileWrite() *val {
	p, mode := c.filePath()
	if p != nil && c.it.quiet == 0 {
		data := c.get0()
		if data.isSeq() {
			data = joinText(str(""), data, c.it, c.n)
		}
		if from := data.origins(0); len(from) > 0 && c.name[0] == 'o' && strings.ContainsAny(mode, "wax+") {
			op := facts.OpWrite
			if strings.Contains(mode, "a") {
				op = facts.OpAppend
			}
			c.it.b.File(facts.Use{Pos: c.it.pos(c.n), Op: op, What: p.fact(), By: c.name, Data: facts.Opaque(from...)})
		}
		c.it.b.Store(p.fact(), data.fact(), strings.Contains(mode, "a") || c.name == "open.write" && c.self.written(p), c.it.pos(c.n))
	}
	return nil
}

// written reports that something was written through this handle before.
func (v *val) written(*val) bool {
	was := v.x.size > 0
	v.x.size = 1
	return was
}

// fileRead gives what the program wrote to the file before.
func (c *invocation) fileRead() *val {
	p, _ := c.filePath()
	if p == nil || !p.isText() || len(c.pos) > 0 {
		return nil
	}
	got, ok := c.it.b.Load(p.fact())
	if !ok {
		return nil
	}
	v := c.it.report(c.name, c.arguments, c.self, c.n)
	return fromFact(got).with(v.from)
}

// envHandlers read and write the environment.
func envHandlers() map[string]handler {
	read := func(c *invocation) *val {
		name := c.get(0, "key")
		if name == nil {
			return unknown
		}
		got := c.it.report(c.name, c.arguments, nil, c.n)
		s, _ := name.oneText()
		if s == "HOME" {
			return str("~").with(got.from)
		}
		if v := c.it.variable(s); v != nil {
			return v
		}
		v := &val{from: mix([]string{"env:" + s}, got.from)}
		if d := c.at(1, "default"); d != nil && d.isConst() && d.kind != kNone {
			o := *d
			o.open = true
			return o.with(v.from)
		}
		return v
	}
	all := func(c *invocation) *val {
		c.it.listEnv(c.n)
		return &val{from: c.it.eachEnv()}
	}
	names := func(c *invocation) *val {
		c.it.sifting++ // as where the environment itself is gone through
		defer func() { c.it.sifting-- }()
		return all(c)
	}
	return map[string]handler{
		"os.environ.items": all, "os.environ.keys": names, "os.environ.values": all,
		"os.environ.copy.items": all, "os.environ.copy.keys": names, "os.environ.copy.values": all,
		"os.getenv": read, "os.environ.get": read, "os.environ.__getitem__": read, "os.getenvb": read,
		"os.environ.copy": func(*invocation) *val {
			return &val{kind: kObj, text: "os.environ.copy", from: []string{"env_copy"}, x: &extra{}}
		},
		"os.environ.update":        func(c *invocation) *val { return c.setEnv(c.pos) },
		"unittest.mock.patch.dict": (*invocation).patchDict,
		"mock.patch.dict":          (*invocation).patchDict,
	}
}

// setEnv writes variables from mappings and from keywords.
func (c *invocation) setEnv(from []*val) *val {
	for _, v := range from {
		if v.kind == kDict {
			for _, k := range v.x.order {
				c.it.env("write", keyValue(k), v.x.dict[k], c.n)
			}
		} else {
			c.it.env("write", unknown, nil, c.n)
		}
	}
	for _, k := range c.keys {
		if k != "clear" && k != "values" && k != "in_dict" || c.name == "os.environ.update" {
			c.it.env("write", str(k), c.kw[k], c.n)
		}
	}
	return none
}

// patchDict is a test's own environment: variables are set for a while, and
// none is given out.
func (c *invocation) patchDict() *val {
	if d := c.get(0, "in_dict"); d == nil || d.kind != kRef && d.kind != kStr || d.text != "os.environ" {
		return nil
	}
	if v := c.get(1, "values"); v != nil {
		c.setEnv([]*val{v})
	} else {
		c.setEnv(nil)
	}
	return c.object("unittest.mock.patch.dict")
}

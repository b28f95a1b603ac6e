package python

import (
	"maps"
	"slices"
	"strings"
)

// optionHandlers know what a program's options are where it is called without
// any: their defaults.
func optionHandlers() map[string]handler {
	const parser = "argparse.ArgumentParser"
	same := func(c *invocation) *val { return c.self }
	out := map[string]handler{
		parser + ".add_argument":                 (*invocation).addOption,
		parser + ".add_argument_group":           same,
		parser + ".add_mutually_exclusive_group": same,
		parser + ".set_defaults":                 (*invocation).setDefaults,
		parser + ".add_subparsers":               (*invocation).subParsers,
		"argparse.subparsers.add_parser":         (*invocation).subParser,
		parser + ".parse_args":                   (*invocation).parseArgs,
		parser + ".parse_known_args": func(c *invocation) *val {
			return list(kTuple, []*val{c.parseArgs(), {kind: kList, open: true, from: []string{"argv"}, x: &extra{}}})
		},
		"optparse.OptionParser.add_option": (*invocation).addOption,
		"optparse.OptionParser.parse_args": func(c *invocation) *val {
			return list(kTuple, []*val{c.parseArgs(), {kind: kList, open: true, from: []string{"argv"}, x: &extra{}}})
		},
		"click.option":   (*invocation).clickOption,
		"click.argument": (*invocation).clickOption,
	}
	return out
}

// options are what add_argument gathers, by the name of the attribute.
func (v *val) options() map[string]*val {
	if v.x == nil {
		v.x = &extra{}
	}
	if v.x.dict == nil {
		v.x.dict = map[string]*val{}
	}
	return v.x.dict
}

// optionKey keeps options apart from attributes of the parser.
func optionKey(name string) string { return "=" + name }

// destination is the attribute that an option's value is kept in.
func (c *invocation) destination() string {
	if d := c.kw["dest"]; d != nil {
		name, _ := d.oneText()
		return name
	}
	name := ""
	for _, p := range c.pos {
		flag, ok := p.oneText()
		if !ok {
			return ""
		}
		if name == "" || strings.HasPrefix(flag, "--") && !strings.HasPrefix(name, "--") {
			name = flag
		}
	}
	return strings.ReplaceAll(strings.TrimLeft(name, "-"), "-", "_")
}

func (c *invocation) addOption() *val {
	if c.self == nil || c.self.kind != kObj {
		return nil
	}
	name := c.destination()
	v := c.givenDefault()
	if given := c.it.option(); given != nil {
		v = given
		if c.kw["nargs"] != nil {
			v = list(kList, c.it.argv().x.items[1:])
		}
	}
	if name == "" || v == nil {
		return unknown
	}
	opts := c.self.options()
	opts[optionKey(name)] = prefer(opts[optionKey(name)], v)
	return unknown
}

// givenDefault is a value that stands where the caller gives no other; nil
// where nothing stands there.
func (c *invocation) givenDefault() *val {
	v := c.kw["default"]
	if v == nil && strings.HasPrefix(c.name, "typer.") {
		v = c.nth(0)
	}
	if choices := c.kw["choices"]; v == nil && choices != nil {
		v = choose(choices, c.it, c.n)
	}
	if v == nil || v.kind == kNone || v.kind == kUnknown {
		return nil
	}
	if t := c.kw["type"]; t != nil && v.isConst() && (t.kind == kFunc || isPathType(t)) {
		v = c.it.call(t, &arguments{pos: []*val{v}, how: "value"}, c.n, c.s)
	}
	given := []string{"argv"}
	switch {
	case v.isConst():
		o := *v
		o.open = true
		return (&o).with(given)
	case v.isSeq():
		o := *v
		o.open = true
		return (&o).with(given)
	default:
		return join(v, &val{from: given})
	}
}

func isPathType(t *val) bool { return t.kind == kRef && t.text == "pathlib.Path" }

func (c *invocation) setDefaults() *val {
	if c.self == nil || c.self.kind != kObj {
		return nil
	}
	opts := c.self.options()
	for _, k := range c.keys {
		opts[optionKey(k)] = prefer(opts[optionKey(k)], c.kw[k])
	}
	return none
}

// subParsers and subParser share the options of the parser they belong to.
func (c *invocation) subParsers() *val {
	if c.self == nil || c.self.kind != kObj {
		return nil
	}
	return &val{kind: kObj, text: "argparse.subparsers", x: &extra{dict: c.self.options()}}
}

func (c *invocation) subParser() *val {
	if c.self == nil || c.self.kind != kObj {
		return nil
	}
	return &val{kind: kObj, text: "argparse.ArgumentParser", x: &extra{dict: c.self.options()}}
}

// parseArgs is the object that holds the options. What has no default stays
// out of it.
func (c *invocation) parseArgs() *val {
	if c.self == nil || c.self.kind != kObj {
		return nil
	}
	out := &val{kind: kObj, text: c.name, x: &extra{dict: map[string]*val{}}}
	for _, k := range slices.Sorted(maps.Keys(c.self.options())) {
		if name, ok := strings.CutPrefix(k, "="); ok {
			out.x.dict[name] = c.self.x.dict[k]
		}
	}
	c.parseGiven(out)
	return out
}

// parseGiven reads a list of arguments that stands in the program.
func (c *invocation) parseGiven(out *val) {
	if len(c.pos) == 0 || !c.pos[0].isSeq() {
		return
	}
	name := ""
	for _, item := range c.pos[0].x.items {
		text, ok := item.oneText()
		switch {
		case ok && strings.HasPrefix(text, "-"):
			flag, value, has := strings.Cut(strings.TrimLeft(text, "-"), "=")
			name = strings.ReplaceAll(flag, "-", "_")
			if has {
				out.x.dict[name] = str(value)
			}
		case name != "":
			out.x.dict[name] = prefer(out.x.dict[name], item)
		}
	}
}

// clickOption is a decorator: it gives a parameter of a function its default.
func (c *invocation) clickOption() *val {
	return &val{kind: kWrap, text: "option", x: &extra{items: []*val{str(c.destination())}, alts: []*val{c.clickValue()}}}
}

func (c *invocation) clickValue() *val {
	if v := c.it.option(); v != nil {
		return v
	}
	if v := c.givenDefault(); v != nil {
		return v
	}
	return &val{from: []string{"argv"}}
}

// withDefault gives the parameter its default and the function back.
func (it *interp) withDefault(option *val, a *arguments) *val {
	if len(a.pos) == 0 {
		return unknown
	}
	name, _ := option.x.items[0].oneText()
	if f := a.pos[0].fn(); f != nil {
		for i := range f.params {
			if p := &f.params[i]; p.name == name && p.def == nil {
				p.def = option.x.alts[0]
			}
		}
	}
	return a.pos[0]
}

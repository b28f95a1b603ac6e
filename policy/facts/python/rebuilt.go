package python

import (
	"strings"

	"github.com/caisson-dev/caisson/internal/lazyregexp"
	"github.com/caisson-dev/caisson/policy/facts"
)

// yamlLoaders build objects of Python from a text, as their tags name them.
var yamlLoaders = map[string]bool{"yaml.load": true, "yaml.load_all": true, "yaml.unsafe_load": true, "yaml.unsafe_load_all": true, "yaml.full_load": true, "jsonpickle.decode": true, "jsonpickle.loads": true}

var (
	// yamlTag names a function that is called, or fetched.
	yamlTag = lazyregexp.New(`!!python/(?:object/apply|object/new|object|name|module):([A-Za-z_][\w.]*)`)
	// yamlQuoted is a text in quotes, yamlItem a line of a list.
	yamlQuoted = lazyregexp.New(`'([^']*)'|"([^"]*)"`)
	pickleTag  = lazyregexp.New(`"py/(?:function|type|object)"\s*:\s*"([A-Za-z_][\w.]*)"`) // of jsonpickle
	yamlItem   = lazyregexp.New(`(?m)^[ \t]*-[ \t]+([^\s'"!].*)$`)
)

// builds calls what a YAML text that is known has called.
func (c *invocation) builds() {
	if !yamlLoaders[c.name] {
		return
	}
	if l := c.at(1, "Loader"); l != nil && strings.HasSuffix(l.text, "SafeLoader") {
		return
	}
	text, ok := c.nth(0).oneText()
	if !ok || len(text) > maxJSON {
		return
	}
	tags := yamlTag()
	if strings.HasPrefix(c.name, "jsonpickle.") {
		tags = pickleTag()
	}
	for _, m := range tags.FindAllStringSubmatchIndex(text, 8) {
		rest := text[m[1]:]
		var given []*val
		for _, q := range yamlQuoted().FindAllStringSubmatch(rest, 8) {
			if !strings.HasPrefix(q[2], "py/") {
				given = append(given, str(q[1]+q[2]))
			}
		}
		for _, q := range yamlItem().FindAllStringSubmatch(rest, 8) {
			given = append(given, str(strings.TrimSpace(q[1])))
		}
		f := ref(canonical(text[m[2]:m[3]]), "value")
		c.it.call(f, &arguments{pos: given, how: "value"}, c.n, c.s)
		if len(given) > 1 { // or a list of them
			c.it.call(f, &arguments{pos: []*val{list(kList, given)}, how: "value"}, c.n, c.s)
		}
	}
}

// templates make a program of a text: what stands in it between marks reaches
// into the objects that it is given.
var templates = map[string]bool{
	"jinja2.Template": true, "jinja2.Environment.from_string": true, "flask.render_template_string": true, "mako.template.Template": true,
	"jinja2.Environment.compile_expression": true, "tornado.template.Template": true, "django.template.Template": true,
	"jinja2.nativetypes.NativeTemplate": true, "flask.templating.render_template_string": true,
}

// inner are attributes that no template needs of what it is given.
var inner = lazyregexp.New(`__(?:globals|builtins|subclasses|mro|bases?|import|getattribute)__|<%!?\s*\n?[^=]*\bimport\b|\{%\s*import\s+(?:os|subprocess|sys|shutil|socket)\b`)

// fills notices a template that reaches for what lies behind its objects.
func (c *invocation) fills() {
	if !templates[c.name] {
		return
	}
	for _, text := range c.nth(0).all() {
		if m := inner().FindString(text); m != "" {
			c.it.dynamic(facts.DynReflection, strings.TrimSpace(m)+" in a template", c.n)
		}
	}
}

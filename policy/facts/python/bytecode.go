package python

import (
	"path"
	"strings"
)

// cacheFile is where the bytecode of a module of source lies.
func (c *invocation) cacheFile() *val {
	of := c.get(0, "path")
	if of == nil {
		return unknown
	}
	of = pathText(of)
	if !of.isText() || of.open {
		return derived(of)
	}
	return of.mapText(kStr, func(p string) (string, bool) {
		dir, base := path.Split(p)
		return dir + "__pycache__/" + strings.TrimSuffix(base, path.Ext(base)) + ".cpython-311.pyc", true
	})
}

// cachedSource is the source whose bytecode lies there.
func (c *invocation) cachedSource() *val {
	of := c.get(0, "path")
	if of == nil {
		return unknown
	}
	of = pathText(of)
	if !of.isText() || of.open {
		return derived(of)
	}
	return of.mapText(kStr, func(p string) (string, bool) {
		dir, base := path.Split(p)
		base, _, _ = strings.Cut(base, ".")
		return strings.TrimSuffix(dir, "__pycache__/") + base + ".py", true
	})
}

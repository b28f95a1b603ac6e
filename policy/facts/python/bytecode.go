package python

import (
	"path"
	"strings"
)

// cacheFile is where the bytecode of a module of source lies.
func (c *invocation) cacheFile() *val {
	return c.fromPath(func(dir, base string) string {
		return dir + "__pycache__/" + strings.TrimSuffix(base, path.Ext(base)) + ".cpython-311.pyc"
	})
}

// cachedSource is the source whose bytecode lies there.
func (c *invocation) cachedSource() *val {
	return c.fromPath(func(dir, base string) string {
		base, _, _ = strings.Cut(base, ".")
		return strings.TrimSuffix(dir, "__pycache__/") + base + ".py"
	})
}

// fromPath is the path that f makes of the one that is given.
func (c *invocation) fromPath(f func(dir, base string) string) *val {
	of := c.get(0, "path")
	if of == nil {
		return unknown
	}
	of = pathText(of)
	if !of.isText() || of.open {
		return derived(of)
	}
	return of.mapText(kStr, func(p string) (string, bool) { return f(path.Split(p)), true })
}

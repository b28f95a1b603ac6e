package python

import (
	"slices"

	"github.com/caisson-dev/caisson/policy/facts"
)

// foundModule is where imp.find_module says that a module lies.
const foundModule = "imp.found"

// findModule is imp.find_module, whose answer imp.load_module takes: together
// they import the module that is named, as long as it is looked for where an
// import looks, or beside the program.
func (c *invocation) findModule() *val {
	name, ok := c.get(0, "name").oneText()
	if where := c.at(1, "path"); !ok || where != nil && !beside(where) {
		return nil
	}
	file := c.object("imp.file")
	return list(kTuple, []*val{file, c.object(foundModule, str(name)), unknown})
}

// loadModule is imp.load_module.
func (c *invocation) loadModule() *val {
	at := c.nth(2)
	if at.kind != kObj || at.text != foundModule {
		return nil
	}
	name, ok := at.x.items[0].oneText()
	if !ok {
		return nil
	}
	c.it.importFact(c.n, facts.Import{Module: name, How: "import_module"})
	return c.it.imported(name, "import_module", c.n)
}

// beside reports a list of folders that are the program's own.
func beside(folders *val) bool {
	if !folders.isSeq() || len(folders.x.items) == 0 {
		return false
	}
	for _, f := range folders.x.items {
		from := f.origins(0)
		if len(from) == 0 || slices.ContainsFunc(from, func(o string) bool { return o != "own_file" && o != "own_folder" }) {
			return false
		}
	}
	return true
}

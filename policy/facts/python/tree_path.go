package python

import (
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// treeHandlers go through folders, and find the files of modules.
func treeHandlers() map[string]handler {
	return map[string]handler{
		"os.walk": (*invocation).walkTree, "os.fwalk": (*invocation).walkTree,
		"glob.glob": (*invocation).globbed, "glob.iglob": (*invocation).globbed,
		"inspect.getsource": (*invocation).source, "inspect.getsourcelines": (*invocation).source,
		"inspect.getfile": (*invocation).sourceFile, "inspect.getsourcefile": (*invocation).sourceFile,
	}
}

// globbed is what a pattern for a place outside the workspace finds: how it
// begins.
func (c *invocation) globbed() *val {
	pattern, ok := pathText(c.get(0, "pathname")).oneText()
	i := strings.IndexAny(pattern, "*?[")
	if !ok || i < 1 || pattern[0] != '/' && pattern[0] != '~' || strings.HasPrefix(pattern, c.it.b.Tables().Workspace) {
		return nil
	}
	c.it.report(c.name, c.arguments, c.self, c.n)
	out := list(kList, []*val{{x: &extra{pre: pattern[:i]}}})
	out.open = true
	return out
}

// walkTree is what os.walk gives for a place outside the workspace: of each
// folder, how its name begins.
func (c *invocation) walkTree() *val {
	top, ok := pathText(c.get(0, "top")).oneText()
	if !ok || top == "" || top[0] != '/' && top[0] != '~' || strings.HasPrefix(top, c.it.b.Tables().Workspace) {
		return nil
	}
	c.it.report(c.name, c.arguments, c.self, c.n)
	below := &val{x: &extra{pre: strings.TrimSuffix(top, "/") + "/"}}
	out := list(kList, []*val{list(kTuple, []*val{below, unknown, unknown})})
	out.open = true
	return out
}

// source is the program's own text, where what is asked about stands in it.
func (c *invocation) source() *val {
	v := c.get(0, "object")
	if v == nil || v.kind != kFunc && v.kind != kClass && !strings.HasPrefix(v.text, "sys.modules") && !strings.HasPrefix(c.it.t.text(c.n), c.it.calledBy(c.n)+"(sys.modules[__name__]") {
		return nil
	}
	return &val{from: []string{facts.FromOwnText}}
}

// calledBy is how a call names what it calls.
func (it *interp) calledBy(n *node) string {
	if f := n.child("function"); f != nil {
		return it.t.text(f)
	}
	return ""
}

// sourceFile is where a module of the system's lies.
func (c *invocation) sourceFile() *val {
	if v := c.get(0, "object"); v != nil && v.kind == kRef {
		if f := c.it.ownFile(v); f != nil {
			return f
		}
	}
	return nil
}

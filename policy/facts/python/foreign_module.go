package python

import (
	"slices"
	"strings"
)

// theirs reports that v is a module that is not the program's and not Python's
// own, or something of one, of which nothing is known that matters, and that
// the program gave it no text that could be code, which it might give back.
func (it *interp) theirs(v *val) bool {
	if v == nil || v.kind != kRef || v.x != nil && v.x.self != nil || len(v.from) > 0 || v.text == "" || v.text[0] == '?' || v.text[0] == '.' {
		return false
	}
	root, _, _ := strings.Cut(v.text, ".")
	if !it.ordinary(v.text) || !it.ordinary(root) || it.fed[root] || standard[root] {
		return false
	}
	for _, word := range feeding {
		if strings.Contains(it.t.src, word) {
			return false
		}
	}
	return true
}

// feeding are words of texts that may put something into a module unseen.
var feeding = []string{"sys.modules", "setattr", "setitem", "__dict__[", "__dict__.update", "meta_path", "path_hooks"}

// feed notes modules that are given text that could be code, or functions of
// the program, which could give them some: by a call of what they have, or by
// one that is handed that, or its namespace.
func (it *interp) feed(name string, a *arguments, self *val) {
	all := a.all()
	if !a.open && !slices.ContainsFunc(all, it.mayFeed) {
		return
	}
	it.feeds(ref(name, ""))
	for _, v := range append(slices.Clip(all), self) {
		if v != nil {
			for _, b := range v.branches() {
				it.feeds(b)
			}
		}
	}
}

func (it *interp) feeds(v *val) {
	root := rootOf(v)
	if root == "" {
		return
	}
	if it.fed == nil {
		it.fed = map[string]bool{}
	}
	it.fed[root] = true
}

// mayFeed reports a value that may hold more than words of the program.
func (it *interp) mayFeed(v *val) bool {
	return v.kind == kDict || callable(v) || it.holds(v, 0) == codeOfIt || len(v.origins(0)) > 0
}

// rootOf is the module that v is, or has, or is the namespace of; "" where it
// is none of others.
func rootOf(v *val) string {
	for range 4 {
		if v == nil || v.kind == kRef && v.text != "" && v.text[0] != '?' && !strings.HasPrefix(v.text, "dict.") || v.x == nil || v.x.self == nil {
			break
		}
		v = v.x.self
	}
	if v == nil || v.kind != kRef {
		return ""
	}
	root, _, dotted := strings.Cut(v.text, ".")
	if root == "?" || standard[root] || stdPackages[root] || !dotted && builtins[root] {
		return ""
	}
	return root
}

// says reports that what a call gave holds what a module of others says when it
// is asked for nothing in particular, and does not read it from somewhere first.
func (c *invocation) says(v *val) bool {
	if v.kind != kObj || v.text != c.name || v.x == nil || len(v.from) > 0 || c.self != nil || len(c.all()) > 0 || c.open || !strings.Contains(c.name, ".") {
		return false
	}
	last := strings.ToLower(lastPart(c.name))
	for _, word := range takingIn {
		if strings.Contains(last, word) {
			return false
		}
	}
	return c.it.theirs(ref(c.name, ""))
}

// takingIn are parts of the names of functions that take in what comes from
// outside, or decode it.
var takingIn = strings.Fields("read recv receive fetch load input paste clip poll ask prompt next pop wait accept listen download request message line code decode script")

// membersOf is what a method of a module's namespace gives.
func membersOf(method string) *val {
	switch method {
	case "dict.keys":
		return manyOf(ofTheirs)
	case "dict.items":
		out := list(kList, []*val{list(kTuple, []*val{mark(ofTheirs), unknown})})
		out.open = true
		return out
	}
	return nil
}

// listed is a part of the name of a file of a folder.
func (c *invocation) listed() *val {
	of := c.self
	if strings.HasPrefix(c.name, "os.path.") {
		of = c.get0()
	}
	if of == nil || !marked(of, ofListing) {
		return nil
	}
	switch lastPart(c.name) {
	case "splitext", "rsplit", "split", "partition", "rpartition":
		return list(kList, []*val{mark(ofListing), mark(ofListing)})
	case "basename", "strip", "rstrip", "lstrip", "removesuffix", "removeprefix":
		return mark(ofListing)
	}
	return nil
}

package python

import (
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// moduleFile is the attribute that says where a module was loaded from.
const moduleFile = "__file__"

// ownFile is where a module lies: where the program says so, or, of the standard
// library, where that is.
func (it *interp) ownFile(v *val) *val {
	if p := it.patched[canonical(v.text+"."+moduleFile)]; p != nil {
		return p
	}
	if _, ok := it.b.Tables().Modules[facts.Python][v.text]; (ok || standard[v.text]) && v.x.selfOrNil() == nil {
		at := str("/usr/lib/python3/" + v.text + ".py")
		at.open = it.relocated()
		return at
	}
	return nil
}

// loadedAlready reports the file of a module that the program imports by its
// name: loading that once more does what the import did. No module of the
// workspace, which may say of itself what it likes, is among them, and nothing
// in the text may tell a module to lie elsewhere.
func (it *interp) loadedAlready(v *val) bool {
	module, ok := strings.CutSuffix(v.text, "."+moduleFile)
	if !ok || v.kind != kRef || v.x.selfOrNil() != nil || !it.importsPart(module) || len(it.loaded) > 0 {
		return false
	}
	return !it.assigned()[moduleFile] && !it.relocated() && it.loadsOnly()
}

// importsPart reports a module that the program imports, or a part of one.
func (it *interp) importsPart(module string) bool {
	for !it.modules[module] {
		i := strings.LastIndexByte(module, '.')
		if i < 0 {
			return false
		}
		module = module[:i]
	}
	return true
}

// loadsOnly: the text has the files of modules for nothing but to load them, so
// that it puts nothing else in their place.
func (it *interp) loadsOnly() bool {
	if it.loads == 0 {
		it.loads = 1
		if it.filesElsewhere(it.t.root, false) || slices.ContainsFunc(fileNames, func(w string) bool { return strings.Contains(it.t.src, w) }) {
			it.loads = 2
		}
	}
	return it.loads == 1
}

// fileNames are other ways to the file of a module.
var fileNames = []string{"'__file__'", `"__file__"`, "__spec__", "__loader__", "__cached__", "__path__", "getfile", "getsourcefile", "find_spec", "get_loader", "get_filename"}

// loaders load a library of a file.
var loaders = set("CDLL PyDLL WinDLL OleDLL LoadLibrary dlopen")

// filesElsewhere looks for a file of a module that is no argument of a loader;
// loading says that n is what one is given.
func (it *interp) filesElsewhere(n *node, loading bool) bool {
	for c := n.first; c != nil; c = c.next {
		if c.kind == "attribute" && it.t.text(c.child("attribute")) == moduleFile && !loading {
			return true
		}
		given := c.field == "arguments" && n.kind == "call" && loaders[lastPart(it.t.text(n.child("function")))]
		if c.size > 1 && it.filesElsewhere(c, given) {
			return true
		}
	}
	return false
}

// relocated: the text may tell a module to lie elsewhere in a way that is not
// followed.
func (it *interp) relocated() bool {
	return it.relocates || slices.ContainsFunc(relocating, func(w string) bool { return strings.Contains(it.t.src, w) })
}

// relocating are words of texts that may alter or swap a module unseen.
var relocating = []string{
	"sys.modules", "meta_path", "path_hooks", "ModuleType", "__setattr__", "vars(", "globals(", "mock", "monkeypatch", "sys.path",
}

// mayRelocate notes an attribute that is set under a name which is not known, of
// what may be a module.
func (it *interp) mayRelocate(o *val) {
	switch o.kind {
	case kRef, kUnknown, kSpace:
		it.relocates = true
	default: // no module of others
	}
}

// noteModules notes the modules that an import statement names, and what it takes
// from one, which may be a module, beside those of its own package.
func (it *interp) noteModules(f facts.Import) {
	if strings.HasPrefix(f.Module, ".") {
		return
	}
	if it.modules == nil {
		it.modules = map[string]bool{}
	}
	if f.How == "import" {
		it.modules[canonical(f.Module)] = true
		return
	}
	for _, name := range f.Names {
		it.modules[canonical(f.Module+"."+name)] = true
	}
}

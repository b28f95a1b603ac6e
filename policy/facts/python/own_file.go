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
		return str("/usr/lib/python3/" + v.text + ".py")
	}
	return nil
}

// loadedAlready reports the file of a module that the program imports by its
// name: loading that once more does what the import did. No module of the
// workspace, which may say of itself what it likes, is among them, and nothing
// in the text may tell a module to lie elsewhere.
func (it *interp) loadedAlready(v *val) bool {
	module, ok := strings.CutSuffix(v.text, "."+moduleFile)
	if !ok || v.kind != kRef || v.x.selfOrNil() != nil || !it.modules[module] || it.relocates || len(it.loaded) > 0 {
		return false
	}
	it.assigns(moduleFile) // which collects what is assigned
	return !it.attributes[moduleFile] && !slices.ContainsFunc(relocating, func(w string) bool { return strings.Contains(it.t.src, w) })
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

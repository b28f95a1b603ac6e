package shell

import (
	"maps"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// dispatched are the functions of the script that a name may mean of which it
// knows how it begins: do_$x. Nothing else begins so, as far as can be told;
// what was received or hidden is not taken for such a name.
func (w *walker) dispatched(t text) []*function {
	if len(t.alts) != 1 || slices.ContainsFunc(t.from, hiding) {
		return nil
	}
	s := strings.ReplaceAll(t.alts[0], unset, hole)
	first, last := strings.Index(s, hole), strings.LastIndex(s, hole)
	if first < 2 || strings.IndexByte("_-:.", s[first-1]) < 0 || strings.Contains(s, "/") {
		return nil
	}
	var out []*function
	for _, name := range slices.Sorted(maps.Keys(w.st.funcs.flat())) {
		if strings.HasPrefix(name, s[:first]) && strings.HasSuffix(name, s[last+1:]) && len(name) >= len(s)-1 {
			out = append(out, w.st.funcs.get(name)...)
		}
	}
	return out[:min(len(out), facts.MaxAlts)] // the others are read for themselves
}

// hiding are origins of what a script received, decoded or read from itself.
func hiding(from string) bool {
	switch from {
	case "decoded", "encoded", "encrypted", "input", "stdin", "clipboard", facts.FromOwnText:
		return true
	}
	return strings.HasPrefix(from, "net")
}

// globCommand is a command named by a pattern: each program that it could
// mean.
func (w *walker) globCommand(c *invocation, pattern string) text {
	var out text
	like := programsLike(w.tables, pattern)
	if len(like) == 0 && w.ownFiles(pattern) {
		return w.external(c)
	}
	w.dynamic(facts.DynGlob, pattern, c.pos)
	for _, name := range like {
		each := *c
		each.argv = slices.Clone(c.argv)
		each.argv[0] = field{t: lit(name)}
		out = union(out, w.external(&each))
	}
	return concat(out, opaque())
}

// ownFiles reports that a pattern with a folder in it means files of the
// workspace, or of a temporary folder.
func (w *walker) ownFiles(pattern string) bool {
	if !strings.Contains(pattern, "/") || !strings.HasPrefix(pattern, "/") && w.st.cwd == "" {
		return false
	}
	p := w.tables.CleanPath(pattern, w.st.cwd)
	dir := p[:strings.LastIndexByte(p[:strings.IndexAny(p+"*", "*?[")], '/')+1]
	class := w.tables.PathClass(strings.TrimSuffix(dir, "/"))
	return (class == "workspace" || class == "tmp" || w.hooks(p, dir, class)) && len(programsLike(w.tables, p)) == 0
}

// hooks reports that a pattern means files of one program of the system in a
// folder of its own, from where it runs them all. A script that puts some there
// changes the system, which is told.
func (w *walker) hooks(p, dir, class string) bool {
	switch class {
	case "public", "system_binary", "system_config":
		parts := strings.Split(strings.Trim(dir, "/"), "/")
		return (len(parts) > 2 || len(parts) > 1 && parts[0] == "etc") && !slices.ContainsFunc(parts, func(s string) bool {
			return s == "local" || s == "opt" || strings.HasSuffix(s, "bin") || strings.HasPrefix(s, "lib") && s != "lib" || strings.Contains(s, "-linux")
		}) && strings.LastIndexByte(p, '/') < len(dir)
	}
	return false
}

var binaries = []string{"/bin/", "/usr/bin/", "/sbin/", "/usr/sbin/", "/usr/local/bin/"}

// programsLike lists the programs of the tables that a pattern could mean.
func programsLike(t *facts.Tables, pattern string) []string {
	var out []string
	for name := range t.Programs.Names() {
		for _, dir := range binaries {
			if match(pattern, dir+name, true) {
				out = append(out, dir+name)
				break
			}
		}
		if match(pattern, name, true) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out[:min(len(out), facts.MaxAlts)]
}

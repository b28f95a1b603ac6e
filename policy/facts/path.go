package facts

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/internal/lazyregexp"
)

// procRoot leads back to the root of the file system, which all processes of a sandbox
// have in common.
var procRoot = lazyregexp.New(`^/proc/(?:self|thread-self|\d+)(?:/task/\d+)?/root(/|$)`)

// CleanPath makes a path canonical: file URLs, doubled slashes, dots, a
// leading home directory, and the ways through /proc that lead back to the
// root. A relative path is put behind cwd; where cwd is "", it stays relative.
func (t *Tables) CleanPath(p, cwd string) string {
	p = strings.TrimPrefix(p, "file://")
	switch {
	case p == "~" || strings.HasPrefix(p, "~/"):
		p = t.Home + p[1:]
	case strings.HasPrefix(p, "~root"):
		p = "/root" + p[len("~root"):]
	case len(p) > 1 && p[0] == '~' && p[1] != '\\': // else it is one of another system, and no folder here
		p = "/home/" + p[1:]
	}
	if p == "" {
		return ""
	}
	if p[0] != '/' {
		if cwd == "" {
			return path.Clean(p)
		}
		p = cwd + "/" + p
	}
	p = path.Clean(p)
	for strings.HasPrefix(p, "/proc/") {
		root := procRoot().FindString(p)
		if root == "" {
			break
		}
		p = path.Clean("/" + p[len(root):])
	}
	if rest, ok := strings.CutPrefix(p, "/proc/self/cwd"); ok && cwd != "" {
		p = path.Clean(cwd + "/" + rest)
	}
	return p
}

// PathClass gives the class of a cleaned path: that of the first rule that
// matches; "workspace" or "home" below those folders; "relative" for one whose
// working directory is not known; else "outside". A path with wildcards has
// the class of the first rule that it could mean.
func (t *Tables) PathClass(p string) string {
	if p == "" {
		return "unknown"
	}
	glob := strings.ContainsAny(p, "*?[")
	base := path.Base(p)
	harmless := ""
	for i := range t.Paths {
		if r := &t.Paths[i]; r.matches(t, p, base, glob) {
			if !glob || !mildClass[r.Class] || !strings.ContainsAny(path.Dir(p), "*?[") {
				return r.Class
			}
			if harmless == "" {
				harmless = r.Class
			}
		}
	}
	if harmless != "" {
		return harmless
	}
	if p[0] != '/' {
		return "relative"
	}
	if under(p, t.Workspace) {
		return "workspace"
	}
	if under(p, t.Home) {
		return "home"
	}
	return "outside"
}

// mildClass are classes that a path with wildcards has only where it could mean
// nothing worse: /???/?????? is more than /dev/random.
var mildClass = map[string]bool{"device_safe": true, "public": true, "shm": true, "package_cache": true}

// aims reports a pattern that may be meant for one of some names. In the
// workspace, and where the folder is not known, *.bak and data* are not.
func aims(t *Tables, p, base string) bool {
	i := strings.IndexAny(base, "*?[")
	return i >= 0 && strings.Trim(base, "*?.") != "" && (i > 2 || !under(p, t.Workspace) && (p[0] == '/' || p[0] == '~'))
}

func (r *PathRule) matches(t *Tables, p, base string, glob bool) bool {
	for _, u := range r.Under {
		u = t.home(u)
		if under(p, u) || glob && globUnder(p, u) {
			return true
		}
	}
	for _, e := range r.Exact {
		e = t.home(e)
		if p == e || glob && globMatch(p, e) {
			return true
		}
	}
	for _, m := range r.Match {
		if matched(t.home(m), p) {
			return true
		}
	}
	for _, m := range r.Base {
		if matched(m, base) {
			return true
		}
		if glob && aims(t, p, base) && globMatch(base, m) {
			return true
		}
	}
	return false
}

// matched is [path.Match], which is slower to see that the first letters differ.
func matched(pattern, p string) bool {
	if pattern != "" && p != "" && pattern[0] != p[0] && strings.IndexByte(`*?[\`, pattern[0]) < 0 {
		return false
	}
	ok, _ := path.Match(pattern, p)
	return ok
}

func (t *Tables) home(p string) string {
	if strings.HasPrefix(p, "~/") || p == "~" {
		return t.Home + p[1:]
	}
	return p
}

func under(p, dir string) bool {
	if dir == "" {
		return false
	}
	return p == dir || strings.HasPrefix(p, dir) && (dir == "/" || p[len(dir)] == '/')
}

// globMatch reports whether a path with wildcards could mean target. A bare
// star in a folder ("/etc/*") means the folder, not each file in it.
func globMatch(glob, target string) bool {
	if path.Base(glob) == "*" {
		return path.Dir(glob) == target
	}
	ok, err := path.Match(glob, target)
	return err == nil && ok
}

// globUnder reports whether a path with wildcards could lie under dir.
func globUnder(glob, dir string) bool {
	g, d := strings.Split(glob, "/"), strings.Split(dir, "/")
	if len(g) < len(d) {
		return false
	}
	for i := range d {
		if g[i] == "*" && i > 0 && i < len(d) && len(d) > 1 && i == len(g)-1 {
			return false
		}
		if ok, err := path.Match(g[i], d[i]); err != nil || !ok {
			return false
		}
	}
	return true
}

// abs gives the cleaned path of a value's alternative.
func (b *Builder) abs(p string) string { return b.s.tables.CleanPath(p, b.cwd) }

// Chdir changes the directory that relative paths start from, for what this
// builder sees from here on. One that is not known makes relative paths
// unknown.
func (b *Builder) Chdir(dir Value) {
	d, ok := dir.One()
	if !ok {
		b.cwd = ""
		return
	}
	p := b.abs(d)
	if !strings.HasPrefix(p, "/") {
		p = ""
	}
	b.cwd = p
}

// Cwd is the directory that relative paths start from, "" where not known.
func (b *Builder) Cwd() string { return b.cwd }

// SetCwd restores what [Builder.Cwd] gave, at the end of a subshell. Where it
// was told by guess, or is what it may be instead: a relative path that would be
// one of the system's there counts as that.
func (b *Builder) SetCwd(dir, or string) { b.cwd, b.orCwd = dir, or }

// everyday are classes of places that projects have too.
var everyday = []string{"workspace", "relative", "outside", "system_binary", "tmp", "public", "device_safe", "home"}

// FromOwnText is the origin of what a program reads from its own source: text
// of the program that stands there as data.
const FromOwnText = "own_text"

// FromOwnFile is the origin of the name of the program's own source.
const FromOwnFile = "own_file"

// FromSourced is an origin beside that of a variable which nothing in a script
// gives a value, but a file of the project may that it sources.
const FromSourced = "sourced"

// FromListed is the origin of the name of a file in a folder of the workspace
// that a pattern stands for: the folder is known, and a part of the name.
const FromListed = "listed"

// FromFunction is the origin of the name of a function of the program, of which
// only the beginning is known.
const FromFunction = "function"

// OwnSource is the name of a program's own source, of which no more is known
// than how it ends; a name that is made of it ends in another way.
func OwnSource(suffix string, from ...string) Value {
	return Value{Type: "str", Suffix: suffix, From: append([]string{FromOwnFile}, from...)}
}

// ownSource reports that a path is that of the program's own source: $0,
// __file__, __filename.
func (b *Builder) ownSource(v Value) bool {
	if len(v.Alts) > 0 {
		one, _ := v.One()
		return one == b.start.Name && one != "" && (slices.Contains(v.From, "argv0") || slices.Contains(v.From, FromOwnFile))
	}
	if slices.Contains(v.From, FromOwnFile) {
		return v.Prefix == "" && (v.Suffix == ".py" || v.Suffix == ".js")
	}
	return strings.HasSuffix(v.Prefix, "/") && v.Suffix == "" && (slices.Contains(v.From, "self") || slices.Contains(v.From, "argv0"))
}

// FromBeside begins the origin of what is read from a file whose name is known,
// in a folder that is made of the place of the program's own source.
const FromBeside = "file:…/"

// besideOwn is where what is read from a file comes from whose path is not known.
func besideOwn(v Value) string {
	tail := v.Tail()
	name := tail[strings.LastIndexByte(tail, '/')+1:]
	if v.Known() || len(v.Alts) > 0 || name == tail || len(name) < 2 || len(name) > 64 || name == ".." || !slices.Contains(v.From, FromOwnFile) {
		return "file"
	}
	return FromBeside + name
}

// FromAbove is the origin of a path that leaves the workspace by several "..",
// as far as can be told, and was taken for one within.
const FromAbove = "above"

// resolved is a path as it is used. Where it may be another, one of the
// system's, it is that.
func (b *Builder) resolved(f *File, p string, from []string) string {
	or, t := "", b.s.tables
	switch {
	case b.orCwd != "" && p[0] != '/' && p[0] != '~':
		or = t.CleanPath(p, b.orCwd)
	case slices.Contains(from, FromAbove) && under(p, t.Workspace):
		or = t.CleanPath("/"+p[len(t.Workspace):], "")
	}
	if or != "" {
		class := t.PathClass(or)
		wipes := f.Op == OpDelete && f.Recursive
		if !slices.Contains(everyday, class) && (class != "root" || wipes) || wipes && (or == "/usr" || or == "/opt") {
			return or
		}
	}
	return b.abs(p)
}

// File records the use of a path: one fact for each alternative.
func (b *Builder) File(u Use) {
	f := File{Op: u.Op, By: u.By, Recursive: u.Recursive, Mode: u.Mode, From: u.Data.From}
	for _, p := range u.What.Alts {
		b.file(f, p, u.What.From, u.Pos)
	}
	if u.What.Known() {
		return
	}
	if h := u.What.Head(); strings.HasPrefix(h, "/dev/tcp/") || strings.HasPrefix(h, "/dev/udp/") {
		b.Net(Use{Pos: u.Pos, Op: OpConnect, What: Opaque(u.What.From...), Scheme: h[len("/dev/"):len("/dev/tcp")], By: u.By, Data: Value{From: u.Data.From}})
		return
	}
	if len(u.What.Items) > 0 {
		for _, it := range u.What.Items {
			v := u
			v.What = it
			b.File(v)
		}
		return
	}
	if !b.room() {
		return
	}
	f.At = b.at(u.Pos)
	f.Class = "unknown"
	if len(u.What.From) > 0 {
		f.Where = u.What.From[0]
	}
	if rest, is := strings.CutPrefix(besideOwn(u.What), FromBeside); is {
		f.Where = FromOwnFile + ":" + rest
	}
	if h := u.What.Head(); h != "" {
		f.Path = b.abs(h)
		f.Class = b.prefixClass(h)
		if class := b.aroundClass(h, u.What.Tail()); class != "" {
			f.Class = class
		}
		f.Traversal = slices.Contains(strings.Split(h, "/"), "..") && f.Class != "workspace"
	}
	b.s.doc.Files = append(b.s.doc.Files, f)
}

// prefixClass is the class that a path must have of which only the beginning
// is known: the folder's that is wholly known.
func (b *Builder) prefixClass(h string) string {
	i := strings.LastIndexByte(h, '/')
	if i < 0 {
		return "unknown"
	}
	if i == 0 {
		return "unknown"
	}
	return b.s.tables.PathClass(b.abs(h[:i+1]))
}

// aroundClass is the class of a path of which a folder in the middle is not
// known, where that is one of secrets: /proc/…/environ, /home/…/.ssh/id_rsa.
func (b *Builder) aroundClass(head, tail string) string {
	if !strings.HasPrefix(head, "/") || len(tail) < 2 || tail[0] != '/' {
		return ""
	}
	head = head[:strings.LastIndexByte(head, '/')+1]
	class := b.s.tables.PathClass(b.abs(head + "0" + tail))
	if class == "credential" || class == "process_secrets" && b.lang != Shell { // a shell asks about its own, and its parent
		return class
	}
	return ""
}

func (b *Builder) file(f File, p string, from []string, pos Pos) {
	if p == "" || p == "-" {
		return
	}
	if host, port, proto, ok := devNet(p); ok {
		op := OpConnect
		if proto == "udp" {
			op = OpSendUDP
		}
		b.Net(Use{Pos: pos, Op: op, What: Text(host), Port: Number(port), Scheme: proto, By: f.By, Data: Value{From: f.From}})
		return
	}
	if clean := path.Clean(p); clean == "/dev/tcp" || clean == "/dev/udp" || strings.HasPrefix(clean, "/dev/tcp/") || strings.HasPrefix(clean, "/dev/udp/") {
		b.Net(Use{Pos: pos, Op: OpConnect, What: Opaque(from...), Scheme: clean[len("/dev/"):len("/dev/tcp")], By: f.By, Data: Value{From: f.From}}) // parts of it are not known
		return
	}
	if !b.room() {
		return
	}
	f.At = b.at(pos)
	f.Path = b.resolved(&f, p, from)
	f.Folded = true
	f.Class = b.s.tables.PathClass(f.Path)
	f.Traversal = slices.Contains(strings.Split(p, "/"), "..") && f.Class != "workspace"
	b.s.doc.Files = append(b.s.doc.Files, f)
}

// devNet takes apart the paths that bash opens as connections.
func devNet(p string) (host, port, proto string, ok bool) {
	parts := strings.Split(path.Clean(p), "/")
	if len(parts) != 5 || parts[1] != "dev" || parts[2] != "tcp" && parts[2] != "udp" {
		return "", "", "", false
	}
	return parts[3], parts[4], parts[2], true
}

// Store remembers what the program writes to a file, so that running it later
// scans that text. Appending adds to what is there.
func (b *Builder) Store(file, content Value, appending bool, pos Pos) {
	p, ok := file.One()
	if !ok || len(b.s.files) > 64 {
		return
	}
	p = b.abs(p)
	if old, had := b.s.files[p]; had && appending {
		content = Concat(old, content)
	}
	b.s.files[p] = content
	b.settings(p, content, pos)
}

// extensions are of files of code.
var extensions = map[string]Lang{
	".py": Python, ".pyw": Python, ".js": JavaScript, ".cjs": JavaScript, ".mjs": JavaScript, ".ts": TypeScript, ".sh": Shell, ".bash": Shell,
}

// written scans what the program wrote to a file that is run now.
func (b *Builder) written(file Value, pos Pos) {
	text, ok := b.Load(file)
	if !ok {
		return
	}
	name, _ := file.One()
	lang, ok := extensions[path.Ext(name)]
	if !ok {
		lang = b.lang
	}
	b.Nested(lang, text, NestedOpts{Pos: pos, Via: []string{name}})
}

// imported does so for a module: one of the text's own files.
func (b *Builder) imported(module string, pos Pos) {
	if len(b.s.files) == 0 {
		return
	}
	last := module[strings.LastIndexAny(module, "./")+1:]
	if ext := path.Ext(module); strings.Contains(module, "/") && extensions[ext] != "" {
		last = strings.TrimSuffix(path.Base(module), ext)
	}
	for _, p := range slices.Sorted(maps.Keys(b.s.files)) {
		ext := path.Ext(p)
		if stem := strings.TrimSuffix(path.Base(p), ext); last != "" && extensions[ext] != "" && (stem == last || stem == "__init__" || stem == "index") {
			b.written(Text(p), pos)
		}
	}
}

// Load gives what the program wrote to a file before.
func (b *Builder) Load(file Value) (Value, bool) {
	p, ok := file.One()
	if !ok {
		return Value{}, false
	}
	v, ok := b.s.files[b.abs(p)]
	return v, ok
}

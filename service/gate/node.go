package gate

import (
	"context"
	"encoding/json"
	"path"
	"strings"

	"github.com/caisson-dev/caisson/internal/lazyregexp"
	"github.com/caisson-dev/caisson/policy"
)

// importNode finds the file of the workspace that a require loads.
func (w *walker) importNode(ctx context.Context, from *unit, r policy.Ref) error {
	name := strings.TrimPrefix(r.Name, "file://")
	if nodeBuiltin(name) {
		return nil
	}
	w.loads = true // what is not found now must not be found later
	defer func(outer string) { w.spec = outer }(w.spec)
	w.spec = r.Name
	if from.imports == nil {
		from.imports = map[string]*unit{}
	}
	if from.staged && (r.By == "dynamic" || r.By == "import") {
		// import() goes past the loader that gives out the judged copies.
		inPlace := *from
		inPlace.staged = false
		from = &inPlace
	}
	if path.IsAbs(name) {
		name = w.followed(name)
		if in, ok := inWorkspace(name); ok {
			return w.nodeFile(ctx, from, in)
		}
		if w.writable(path.Dir(name)) {
			w.cannot(name, "it lies outside the workspace, where it cannot be read before")
		}
		return nil
	}
	if from.name != "" && from.name != stdinName && judgesNode(from.lang) {
		return w.nodeFrom(ctx, from, path.Dir(from.name), name)
	}
	// The text of a command line: it begins where the run does, or wherever that
	// goes.
	dir, in := inWorkspace(w.dir)
	if in {
		if err := w.nodeFrom(ctx, from, dir, name); err != nil {
			return err
		}
	}
	if !w.wanders {
		return nil
	}
	infos, err := w.everything(ctx)
	if err != nil {
		return err
	}
	for _, i := range infos {
		if i.Type == "dir" && i.Path != dir && !strings.Contains("/"+i.Path+"/", "/node_modules/") {
			if err := w.nodeFrom(ctx, from, i.Path, name); err != nil {
				return err
			}
		}
	}
	return nil
}

func judgesNode(lang string) bool { return lang == "javascript" || lang == "typescript" }

// esModule reports whether the nearest package.json makes a .js file a module of
// the other kind, which Node loads by itself and not through its CommonJS loader.
func (w *walker) esModule(ctx context.Context, name string) bool {
	for dir := path.Dir(name); ; dir = path.Dir(dir) {
		b, err := w.ws.ReadFile(ctx, path.Join(dir, "package.json"), mostFile)
		if err == nil {
			var p struct{ Type string }
			return json.Unmarshal(b, &p) == nil && p.Type == "module"
		}
		if dir == "." || dir == "/" {
			return false
		}
	}
}

// nodeFrom finds what a require in a folder loads.
func (w *walker) nodeFrom(ctx context.Context, from *unit, dir, name string) error {
	if strings.HasPrefix(name, "./") || strings.HasPrefix(name, "../") || name == "." || name == ".." {
		return w.nodeFile(ctx, from, path.Join(dir, name))
	}
	for {
		// A package knows itself by its name, and its own names with a #.
		if err := w.nodeMapped(ctx, from, dir); err != nil {
			return err
		}
		if path.Base(dir) != "node_modules" {
			found, err := w.nodePackage(ctx, from, path.Join(dir, "node_modules"), name)
			if found || err != nil {
				return err
			}
		}
		if dir == "." || dir == "" || strings.HasPrefix(dir, "..") || path.IsAbs(dir) && !isBeside(path.Dir(dir)) {
			return nil
		}
		dir = path.Dir(dir)
	}
}

// nodeFile resolves a path as Node does.
func (w *walker) nodeFile(ctx context.Context, from *unit, name string) error {
	if strings.HasPrefix(name, "..") {
		return nil
	}
	entries, err := w.list(ctx, path.Dir(name))
	if err != nil {
		return err
	}
	base := path.Base(name)
	if t := entries[base]; t == "file" || t == "link" {
		return w.nodeAdd(ctx, from, name)
	}
	for _, ext := range []string{".js", ".json", ".node", ".cjs", ".mjs"} {
		if entries[base+ext] != "" {
			return w.nodeAdd(ctx, from, name+ext)
		}
	}
	if name != "." && entries[base] != "dir" {
		return nil
	}
	if main := w.nodeMain(ctx, name); main != "" {
		return w.nodeFile(ctx, from, path.Join(name, main))
	}
	inner, err := w.list(ctx, name)
	if err != nil || inner["index.js"] == "" {
		return err
	}
	return w.nodeAdd(ctx, from, path.Join(name, "index.js"))
}

func (w *walker) nodeAdd(ctx context.Context, from *unit, name string) error {
	switch path.Ext(name) {
	case ".json":
		return nil // data
	case ".node":
		w.cannot(name, "it is machine code")
		return nil
	}
	spec := w.spec
	w.spec = ""
	w.importing = w.units[path.Clean(name)] == nil
	err := w.addFile(ctx, name, "javascript", from.staged, nil)
	w.importing = false
	if m := w.units[path.Clean(name)]; m != nil && spec != "" && from.imports[spec] == nil && judgesNode(m.lang) {
		from.imports[spec] = m
	}
	w.spec = spec
	return err
}

// nodeMain reads a package's main file, in place of which it may name exports.
func (w *walker) nodeMain(ctx context.Context, dir string) string {
	b, err := w.ws.ReadFile(ctx, path.Join(dir, "package.json"), mostFile)
	if err != nil {
		return ""
	}
	var p struct {
		Main    string          `json:"main"`
		Exports json.RawMessage `json:"exports"`
	}
	if json.Unmarshal(b, &p) != nil {
		return ""
	}
	var s string
	if len(p.Exports) > 0 && json.Unmarshal(p.Exports, &s) == nil {
		return s
	}
	return p.Main
}

// nodeTarget finds file names in a package's exports and imports.
var nodeTarget = lazyregexp.New(`"\./([^"]+\.(?:js|cjs|mjs|node|\*))"|"\./[^"]*\*[^"]*"`)

// nodeMapped judges all that a package.json's exports and imports lead to: which
// of it a name means depends on conditions.
func (w *walker) nodeMapped(ctx context.Context, from *unit, dir string) error {
	b, err := w.ws.ReadFile(ctx, path.Join(dir, "package.json"), mostFile)
	if err != nil {
		return ctx.Err() // it has none
	}
	var p struct{ Exports, Imports json.RawMessage }
	if json.Unmarshal(b, &p) != nil {
		return nil // Node refuses it too
	}
	defer func(outer string) { w.spec = outer }(w.spec)
	w.spec = "" // any of them may be meant
	for _, raw := range []json.RawMessage{p.Exports, p.Imports} {
		for _, m := range nodeTarget().FindAllSubmatch(raw, -1) {
			if strings.Contains(string(m[0]), "*") {
				w.cannot(path.Join(dir, "package.json"), "it maps names by patterns")
				continue
			}
			if err := w.nodeFile(ctx, from, path.Join(dir, string(m[1]))); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *walker) nodePackage(ctx context.Context, from *unit, modules, name string) (bool, error) {
	top, _, _ := strings.Cut(name, "/")
	if strings.HasPrefix(name, "@") {
		if parts := strings.SplitN(name, "/", 3); len(parts) > 1 {
			top = parts[0] + "/" + parts[1]
		}
	}
	entries, err := w.list(ctx, path.Join(modules, path.Dir(top)))
	if err != nil || entries[path.Base(top)] == "" && entries[path.Base(top)+".js"] == "" {
		return false, err
	}
	if err := w.nodeMapped(ctx, from, path.Join(modules, top)); err != nil {
		return true, err
	}
	return true, w.nodeFile(ctx, from, path.Join(modules, name))
}

func nodeBuiltin(name string) bool {
	if strings.HasPrefix(name, "node:") {
		return true
	}
	switch top, _, _ := strings.Cut(name, "/"); top {
	case "assert", "async_hooks", "buffer", "child_process", "cluster", "console", "constants", "crypto", "dgram", "diagnostics_channel", "dns",
		"domain", "events", "fs", "http", "http2", "https", "inspector", "module", "net", "os", "path", "perf_hooks", "process", "punycode",
		"querystring", "readline", "repl", "stream", "string_decoder", "sys", "timers", "tls", "trace_events", "tty", "url", "util", "v8", "vm",
		"wasi", "worker_threads", "zlib":
		return true
	}
	return false
}

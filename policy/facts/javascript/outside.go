package javascript

import (
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// global is a name that the program does not declare.
func (w *walk) global(name string) *val {
	switch {
	case globalAliases[name]:
		return &val{name: globalName, page: name == "window" && w.notThere(name)}
	case name == "NaN":
		return numeric(nan)
	case name == "undefined":
		return undefined
	}
	switch name {
	case "__dirname":
		return w.here("")
	case "__filename":
		return w.here("file")
	case "exports":
		return w.exports
	case "arguments":
		if w.act != nil && w.act.args != nil {
			return w.act.args
		}
		return unknown
	}
	v := named(name, "")
	w.read[name] = true
	if argv := w.argv(name); argv != nil {
		return argv
	}
	if from := sourceOf[name]; from != "" {
		v.Value = facts.Opaque(from)
	}
	return v
}

// argv are the words that the program is started with, where whoever asks about
// it told them; nil where they are not known.
func (w *walk) argv(name string) *val {
	start := w.b.Start()
	if name == "process.execArgv" { // Node is started without options of its own
		return list(nil)
	}
	if name != "process.argv" && name != "Bun.argv" && name != "Deno.args" || !start.Known || len(start.Args) == 0 {
		return nil
	}
	items := []*val{text("/usr/local/bin/node")}
	if start.Name != "" {
		items = append(items, text(start.Name))
	}
	if name == "Deno.args" {
		items = nil
	}
	for _, a := range start.Args {
		if len(a.Alts) == 0 { // what comes then could not be told
			return nil
		}
		items = append(items, of(a.WithFrom("argv")))
	}
	return list(items)
}

// variable is what an environment variable was set to before the program began.
func (w *walk) variable(name string) *val {
	v, ok := w.b.Start().Env[name]
	if !ok || len(v.Alts) == 0 {
		return nil
	}
	return of(v.WithFrom("env:" + name))
}

// here is the program's own folder, or its own file.
func (w *walk) here(what string) *val {
	cwd := w.b.Cwd()
	if what == "file" {
		return of(facts.Partial(cwd+"/", "").WithFrom("self"))
	}
	if cwd == "" {
		return of(facts.Partial("/", ""))
	}
	if w.own == nil {
		w.own = text(cwd)
	}
	return w.own
}

// ordinary are the extensions that Node loads by itself; a loader for another
// sees no file but those.
var ordinary = []string{".js", ".json", ".node", ".mjs", ".cjs", "constructor", "__proto__"}

// setForeign assigns to a member of what is not the program's own.
func (w *walk) setForeign(o *val, key string, known bool, v *val, n id) {
	switch {
	case o.name == envName:
		name := unknown
		if known {
			name = text(key)
		}
		w.env("write", name, v, n)
	case o.name == "module" && (key == "_load" || key == "_resolveFilename" || key == "_compile"),
		strings.HasPrefix(o.name, "module._extensions") && (!known || slices.Contains(ordinary, key)) && !v.isNone(), o.name == "module.prototype":
		w.dynamic(facts.DynReflection, "the module loader is replaced: "+o.name+"."+key, n)
	}
	w.inherited(o, key, n)
	if !known {
		w.disguises(o)
	}
	if o.name == "Object.prototype" { // which the global object has its members from
		w.setsGlobals(o)
	}
	if !w.withheld(o.name+o.Type, v) {
		w.giveFunction(v, nil, 2)
		w.giveFunction(v, o.From, 1)
	}
	w.keepExtra(o, key, known, v)
	if o.name == "" && callsBackLater(key) && v.name != "" && !pureName(v.name) {
		w.apply(v, &site{n: n, args: []*val{opaque(o.From)}, open: true, how: "value"})
	}
}

// keepExtra remembers a member that the program gives to what is not its own.
func (w *walk) keepExtra(o *val, key string, ok bool, v *val) {
	if !ok || len(w.extra)+len(w.extraOf) > maxProps || v.ref == nil && v.name == "" && v.alts == nil && !v.Known() {
		return
	}
	if o.foreign() {
		if w.extraOf[o] == nil {
			w.extraOf[o] = &object{role: plain}
		}
		w.extraOf[o].set(key, v)
		return
	}
	if name, _ := canonical(o.name, key); name != "" && (natives[name] == nil && !w.known(name) || v.name != "" && w.known(v.name)) {
		w.extra[name] = union(w.extra[name], v)
	}
}

// callsBackLater reports whether a member is where a function is put to be called.
func callsBackLater(key string) bool { return strings.HasPrefix(key, "on") && len(key) > 3 }

// shapes looks at what a call means for the shape of the program.
func (w *walk) shapes(s *site) {
	api, ok := w.b.API(s.name)
	if !ok {
		w.pipes(s)
		return
	}
	spawns := false
	for i := range api.Effects {
		switch e := &api.Effects[i]; e.Do {
		case "argv", "execv", "shell", "shell_join":
			spawns = true
		case "action":
			spawns = spawns || e.Op == "fork"
		case "file":
			spawns = spawns || e.Op == facts.OpExec
		}
	}
	w.scans(s)
	if spawns {
		w.spawned++
		w.spawn(s)
		w.bombs(s)
	}
	w.pipes(s)
}

// connects are calls that try a port.
var connects = map[string]bool{"net.connect": true, "net.createConnection": true, "net.Socket.connect": true}

// scans notices a connection in a loop whose port the loop gives.
func (w *walk) scans(s *site) {
	if !connects[s.name] || w.loops == 0 || len(s.args) == 0 || w.quiet > 0 || w.idle {
		return
	}
	port, host := s.args[0], unknown
	if len(s.args) > 1 {
		host = s.args[1]
	}
	if port.ref != nil {
		host = port.ref.props["host"]
		if port = port.ref.props["port"]; port == nil {
			return
		}
	}
	if port.Known() || port.name != "" || port.ref != nil || len(port.From) > 0 || host == nil {
		return
	}
	w.b.Net(facts.Use{Pos: w.pos(s.n), Op: facts.OpScan, What: host.Value, By: s.name})
}

// bombs looks for a program that starts itself with no condition in between.
func (w *walk) bombs(s *site) {
	if w.cond > 0 {
		return
	}
	for _, a := range s.args {
		for _, f := range a.origins() {
			if f == "self" {
				w.structure(facts.StructForkBomb, "the program starts itself", s.n)
				return
			}
		}
	}
}

// pipes looks for a connection joined to a process: a shell for whoever is at the other end.
func (w *walk) pipes(s *site) {
	process := func(name string) bool { return strings.HasPrefix(name, "child_process.") }
	remote := func(v *val) bool {
		if networked(v.name) || networked(v.Type) {
			return true
		}
		for _, f := range v.origins() {
			if f == "net" || strings.HasPrefix(f, "net:") {
				return true
			}
		}
		return false
	}
	joined := false
	if last(s.name) == "pipe" || last(s.name) == "pipeline" {
		w.flows(s)
	}
	switch {
	case last(s.name) == "pipe" && process(s.name):
		joined = remote(s.arg(0))
	case last(s.name) == "pipe":
		joined = networked(s.name) && process(s.arg(0).name) && strings.HasSuffix(s.arg(0).name, ".stdin")
	case process(s.name) && strings.HasSuffix(s.name, ".stdin.write"):
		joined = remote(s.arg(0))
	case process(s.name) && len(s.args) > 0:
		opts := s.args[len(s.args)-1]
		if opts.ref != nil && opts.ref.props["stdio"] != nil {
			items, _ := elements(opts.ref.props["stdio"])
			for _, it := range items {
				joined = joined || it.foreign() && remote(it)
			}
		}
	}
	if joined {
		w.structure(facts.StructRecvExec, "a connection is joined to a process", s.n)
	}
}

// flows follows what is piped: into a request it is sent, into a file it is written.
func (w *walk) flows(s *site) {
	ends := s.args
	if s.this != nil && last(s.name) == "pipe" {
		ends = append([]*val{s.this}, s.args...)
	}
	var from []string
	for i, to := range ends {
		if i > 0 && to.foreign() && len(from) > 0 {
			data := opaque(from)
			if name := to.Type + ".write"; w.known(name) {
				w.emit(&site{n: s.n, name: name, args: []*val{data}, recv: recvOf(to), how: "value"})
			}
			if to.Type == "fs.createWriteStream" && len(to.Recv) > 0 && w.quiet == 0 {
				w.b.File(facts.Use{Pos: w.pos(s.n), Op: facts.OpWrite, What: to.Recv[0], By: s.name, Data: data.Value})
			}
		}
		from = merge(from, to.origins())
	}
}

// known reports that the tables say something of a name.
func (w *walk) known(name string) bool {
	_, ok := w.b.API(name)
	return ok
}

func networked(name string) bool {
	head, _, _ := strings.Cut(name, ".")
	switch head {
	case "net", "tls", "http", "https", "http2", "WebSocket", "dgram":
		return true
	}
	return false
}

package facts

import (
	"slices"
	"strings"
)

// args finds what an effect's references stand for: in a call, or in an argv.
type args interface {
	find(ref string) (Value, bool)
	has(cond string) bool
	not(cond string) bool
}

// effects applies the effects of one call or command, and gathers where its
// result comes from.
type effects struct {
	b     *Builder
	args  args
	pos   Pos
	by    string
	via   string
	hosts []string
	paths []string
	// depth of apply within apply
	applied int
}

// all applies effects: files first, so that what is sent can say where it
// comes from.
func (x *effects) all(list []Effect) {
	for i := range list {
		if list[i].Do == "file" {
			x.apply(&list[i])
		}
	}
	for i := range list {
		if list[i].Do != "file" {
			x.apply(&list[i])
		}
	}
}

func (x *effects) holds(when []string) bool {
	for _, w := range when {
		if c, neg := strings.CutPrefix(w, "!"); neg {
			if !x.args.not(c) {
				return false
			}
		} else if !x.args.has(w) {
			return false
		}
	}
	return true
}

func (x *effects) first(refs []string) (Value, bool) {
	for _, r := range refs {
		if v, ok := x.args.find(r); ok {
			return v, true
		}
	}
	return Value{}, false
}

func (x *effects) apply(e *Effect) {
	if !x.holds(e.When) {
		return
	}
	v, ok := x.first(e.Arg)
	if !ok && len(e.Arg) > 0 && (e.Do != "action" || e.Arg[0] != "*") {
		return
	}
	switch e.Do {
	case "argv", "execv", "shell", "shell_join":
		if dir, ok := x.elsewhere(); ok {
			saved := x.b.cwd
			x.b.Chdir(dir)
			defer func() { x.b.cwd = saved }()
		}
	}
	switch e.Do {
	case "file":
		x.file(e, v)
	case "net":
		x.net(e, v, ok)
	case "net_remote":
		x.netRemote(e, v)
	case "argv":
		x.argv(e, v)
	case "execv":
		x.execv(e, v)
	case "shell":
		x.b.Nested(Shell, firstItem(v), NestedOpts{Pos: x.pos, Via: []string{x.via}})
	case "code":
		x.code(e, v)
	case "env":
		value, _ := x.first(e.Data)
		x.b.Env(e.Op, v, value, x.pos)
	case "action":
		x.action(e, v)
	case "dynamic":
		x.b.Dynamic(e.Op, detail(e, v, x.by), x.pos, v.From...)
	case "apply":
		x.call(e, v)
	case "import":
		x.load(v)
	case "file_or_net":
		x.fileOrNet(e, v)
	case "code_text":
		if v.Type == "str" || len(v.Alts) > 0 {
			x.code(e, v)
		}
	case "shell_join":
		x.shellJoin(e, v)
	case "chdir":
		x.b.Chdir(v)
	case "template":
		x.template(v)
	}
}

func firstItem(v Value) Value {
	if len(v.Items) > 0 {
		return v.Items[0]
	}
	return v
}

func detail(e *Effect, v Value, by string) string {
	if e.Detail != "" {
		return e.Detail
	}
	if h := v.Head(); h != "" {
		return h
	}
	return by
}

func (x *effects) file(e *Effect, v Value) {
	data, _ := x.first(e.Data)
	if len(v.Alts) > 0 && v.Type == "int" {
		if slices.Contains(v.Alts, "0") {
			x.paths = append(x.paths, "stdin")
		}
		return // a file descriptor
	}
	if len(v.Recv) > 0 && v.Items == nil && len(v.Alts) == 0 {
		v = v.Recv[0]
	}
	for _, op := range x.ops(e) {
		x.b.File(Use{Pos: x.pos, Op: op, What: v, By: x.by, Data: data, Recursive: e.Recursive, Mode: e.Default})
		switch {
		case op == OpExec:
			x.b.written(v, x.pos)
		case (op == OpWrite || op == OpAppend) && !data.IsOpaque() && len(e.Data) > 0:
			x.b.Store(v, data, op == OpAppend, x.pos)
		}
	}
	if e.Op == "read" || e.Op == "open" || e.Op == "copy_src" {
		for _, w := range append([]Value{v}, v.Items...) {
			for _, p := range w.Alts {
				x.paths = append(x.paths, "file:"+x.b.abs(p))
			}
		}
		if len(x.paths) == 0 {
			x.paths = append(x.paths, besideOwn(v))
		}
		if x.b.ownSource(v) {
			x.paths = append(x.paths, FromOwnText)
		}
	}
}

// ops are the operations of a file effect: "open" reads its mode, which is
// text ("rb+") or the names of flags ("O_WRONLY|O_CREAT").
func (x *effects) ops(e *Effect) []string {
	if e.Op != "open" {
		return []string{e.Op}
	}
	mode, ok := x.first(e.Mode)
	if !ok {
		mode = Text(e.Default)
	}
	if !mode.Known() {
		return []string{OpRead, OpWrite}
	}
	var ops []string
	add := func(op string) {
		for _, o := range ops {
			if o == op {
				return
			}
		}
		ops = append(ops, op)
	}
	for _, m := range mode.Alts {
		if strings.Contains(m, "O_") {
			openFlags(m, add)
			continue
		}
		switch {
		case strings.ContainsAny(m, "wx"):
			add(OpWrite)
		case strings.Contains(m, "a"):
			add(OpAppend)
		case strings.Contains(m, "+"):
			add(OpRead)
			add(OpWrite)
		default:
			add(OpRead)
		}
	}
	return ops
}

func openFlags(m string, add func(string)) {
	switch {
	case strings.Contains(m, "APPEND"):
		add(OpAppend)
	case strings.Contains(m, "WRONLY"), strings.Contains(m, "RDWR"), strings.Contains(m, "CREAT"), strings.Contains(m, "TRUNC"):
		add(OpWrite)
	default:
		add(OpRead)
	}
}

func (x *effects) net(e *Effect, v Value, ok bool) {
	if !ok {
		return
	}
	if len(v.Recv) > 0 && len(v.Alts) == 0 && v.Items == nil {
		v = v.Recv[0] // urllib.request.Request(url)
	}
	u := Use{Pos: x.pos, Op: e.Op, What: v, By: x.by, Method: strings.ToUpper(e.Method), Scheme: e.Scheme}
	if m, isRef := strings.CutPrefix(e.Method, "$"); isRef {
		mv, _ := x.args.find(m)
		one, _ := mv.One()
		u.Method = strings.ToUpper(one)
	}
	u.Port, _ = x.first(e.Port)
	for _, ref := range e.Data {
		if d, found := x.args.find(ref); found {
			u.Data = Value{Alts: d.Alts, Open: d.Open, From: clip(append(u.Data.From, origins(d, 3)...))}
		}
	}
	if e.Op == OpUpload || e.Op == OpSendUDP {
		u.Data.From = clip(append(u.Data.From, x.paths...))
	}
	x.b.Net(u)
	for _, a := range slices.Concat(v.Alts, itemTexts(v)) {
		if h := ParseTarget(a).Host; h != "" {
			x.hosts = append(x.hosts, "net:"+h)
		}
	}
	if len(x.hosts) == 0 {
		x.hosts = append(x.hosts, "net")
	}
}

// netRemote is for programs that take paths of this machine and of others
// (rsync, scp): HOST:PATH, HOST::MODULE, or a URL.
func (x *effects) netRemote(e *Effect, v Value) {
	for _, it := range asItems(v) {
		for _, s := range it.Alts {
			if host, ok := remote(s); ok {
				x.net(e, Text(host).WithFrom(it.From...), true)
			}
		}
		if host, ok := remote(it.Head()); ok && len(it.Alts) == 0 {
			x.net(e, Text(host).WithFrom(it.From...), true)
		}
	}
}

// remote is the host that a path of rsync or scp names.
func remote(s string) (string, bool) {
	if strings.Contains(s, "://") {
		return s, true
	}
	host, _, ok := strings.Cut(s, ":")
	if !ok || host == "" || strings.ContainsAny(host, "/ ") || strings.HasPrefix(host, ".") {
		return "", false
	}
	return host, true
}

func itemTexts(v Value) []string {
	var out []string
	for _, it := range v.Items {
		out = append(out, it.Alts...)
	}
	return out
}

// origins are where a value and all its parts come from.
func origins(v Value, deep int) []string {
	out := append([]string(nil), v.From...)
	if deep == 0 {
		return out
	}
	for _, it := range v.Items {
		out = append(out, origins(it, deep-1)...)
	}
	for _, f := range v.Fields {
		out = append(out, origins(f, deep-1)...)
	}
	for _, r := range v.Recv {
		out = append(out, origins(r, deep-1)...)
	}
	return clip(out)
}

// execv starts a program that stands apart from its words; the first of these
// is no more than what it is called.
func (x *effects) execv(e *Effect, program Value) {
	words := []Value{program}
	list, _ := x.first(e.With)
	if len(list.Items) > 0 {
		words = append(words, list.Items[1:]...)
	}
	if list.Open || list.Items == nil { // more words that are not known
		words = append(words, Opaque(list.From...))
	}
	x.b.Command(words, CommandOpts{Pos: x.pos, Via: []string{x.via}})
}

// argv starts a program: a list, a program and a list, or a text that is one
// program's name.
func (x *effects) argv(e *Effect, v Value) {
	words := []Value{v}
	if v.Items != nil {
		words = v.Items
		if len(words) > 0 && words[0].Items != nil {
			words = append(append([]Value(nil), words[0].Items...), words[1:]...)
		}
	}
	if v.Items != nil && v.Open { // more words that are not known
		words = append(slices.Clone(words), Opaque(v.From...))
	}
	for _, ref := range e.With {
		more, ok := x.args.find(ref)
		switch {
		case !ok:
		case more.Items != nil:
			words = append(append([]Value(nil), words...), more.Items...)
		case more.Type != "dict" && more.Type != "callable":
			words = append(append([]Value(nil), words...), more)
		}
	}
	stdin, has := x.first(e.Data)
	o := CommandOpts{Pos: x.pos, Via: []string{x.via}, Stdin: stdin}
	if has {
		o.StdinKind = "const"
	}
	if env, ok := x.args.find("env"); ok && env.Fields != nil {
		o.Env = env.Fields
	}
	x.b.Command(words, o)
}

func (x *effects) code(e *Effect, v Value) {
	lang := e.Lang
	if lang == "" {
		lang = x.b.lang
	}
	for range 3 {
		if v.Type != "code" || len(v.Recv) == 0 {
			break
		}
		v = v.Recv[0].WithFrom(v.From...)
	}
	if v.Type == "callable" {
		if len(v.From) == 0 {
			return
		}
		v = Opaque(v.From...) // an attribute of something that came from elsewhere
	}
	at := -1
	if e.Op != "" {
		at = len(x.b.s.doc.Dynamic)
		x.b.Dynamic(e.Op, detail(e, v, x.by), x.pos, v.From...)
	}
	before := x.b.s.weight()
	x.b.Nested(lang, v, NestedOpts{Pos: x.pos, Via: []string{x.via}, Expr: x.by == "eval"})
	if at >= 0 && at < len(x.b.s.doc.Dynamic) && v.Known() && !slices.ContainsFunc(v.From, altered) && x.namesOnly() {
		imports := len(v.Alts) > 0 && lang == Python && !slices.ContainsFunc(v.Alts, func(s string) bool { return !x.b.importsPlain(s) })
		x.b.s.doc.Dynamic[at].Inert = imports || x.b.s.weight() == before && !slices.ContainsFunc(v.Alts, func(s string) bool {
			return named(s) && !findsGlobal(s) && !x.b.plain(lang, s, x.parameters(), x.ownNames())
		})
	}
}

// altered are origins of a text that is none of those which stand in the program.
// Where one of several is picked from outside, each of them is known.
func altered(from string) bool {
	switch from {
	case "stdin", "input", "param", "argv", "env", "module", "command", "file":
		return false
	}
	return !strings.HasPrefix(from, "env:")
}

func (x *effects) action(e *Effect, v Value) {
	b := x.b
	if !b.room() {
		return
	}
	a := Action{At: b.at(x.pos), Op: e.Op, Detail: short(detail(e, v, "")), By: x.by}
	if e.Op == "bind_shell" && b.ownSource(v) {
		a.Op = "bind_self"
	}
	for _, it := range append([]Value{v}, v.Items...) {
		if len(a.Args) < keptItems && len(e.Arg) > 0 {
			one, _ := it.One()
			a.Args = append(a.Args, cut(one))
			a.From = clip(append(a.From, it.From...))
		}
	}
	b.s.doc.Actions = append(b.s.doc.Actions, a)
}

func (x *effects) load(v Value) {
	if !v.Known() {
		x.b.Dynamic(DynImport, v.Head(), x.pos, v.From...)
	}
	for _, m := range v.Alts {
		x.b.Import(Import{At: At{Pos: x.pos}, Module: m, How: x.by})
	}
}

// fileOrNet is for functions that take a path or a URL (pandas.read_csv).
func (x *effects) fileOrNet(e *Effect, v Value) {
	if strings.Contains(v.Head(), "://") && !strings.HasPrefix(v.Head(), "file:") {
		n := *e
		n.Op = OpDownload
		x.net(&n, v, true)
		return
	}
	x.file(e, v)
}

// shellJoin is for a program and a list that a shell gets as one line (spawn
// with shell: true).
func (x *effects) shellJoin(e *Effect, v Value) {
	parts := []Value{v}
	for _, ref := range e.With {
		if more, ok := x.args.find(ref); ok && more.Items != nil {
			parts = append(parts, more.Items...)
		}
	}
	x.b.Action("shell_call", x.by, x.by, x.pos)
	x.b.Nested(Shell, Join(Text(" "), parts), NestedOpts{Pos: x.pos, Via: []string{x.via}})
}

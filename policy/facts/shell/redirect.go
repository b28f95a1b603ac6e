package shell

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/caisson-dev/caisson/policy/facts"
)

// stream is what a command may read. Lines that were read are gone for who
// reads next.
type stream struct {
	t    text
	kind string // "", const, pipe, file, net
	from []string
	to   []string // programs that read what this command prints
	pos  facts.Pos
	used bool // a part was read
}

// rest takes what is left.
func (s *stream) rest() text {
	if s.kind == "" {
		return opaque("stdin")
	}
	return s.t
}

// line takes the next line; ok says whether there is one.
func (s *stream) line() (line text, ok tri) {
	if s.kind == "" {
		return opaque("stdin"), unsure
	}
	whole, isOne := s.t.one()
	if !isOne {
		s.used = true
		return s.t.each(func(t string) (string, bool) {
			first, _, _ := strings.Cut(t, "\n")
			return first, true
		}), unsure
	}
	if whole == "" {
		return text{}, fails
	}
	s.used = true
	first, rest, _ := strings.Cut(whole, "\n")
	s.t = text{[]string{rest}, s.t.from}
	return text{[]string{first}, s.t.from}, succeeds
}

// redirection is what the redirections of a command come to.
type redirection struct {
	list []facts.Redir
	in   *stream
	outs []target // where standard output goes, if not on
	fds  map[string]text
}

// target is one place that standard output goes to. Without a path it is lost.
type target struct {
	path   text
	append bool
}

// redirect expands redirections.
func (w *walker) redirect(list []*syntax.Redirect) *redirection {
	rd := &redirection{}
	for _, r := range list {
		w.redirectOne(rd, r)
	}
	return rd
}

func (w *walker) redirectOne(rd *redirection, r *syntax.Redirect) {
	fd, name := descriptor(r)
	out := facts.Redir{Op: r.Op.String(), FD: fd}
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		t := w.document(r)
		rd.in = &stream{t: t, kind: "const"}
		if r.Hdoc != nil && quotedDelimiter(r.Word) && r.Op == syntax.Hdoc {
			rd.in.pos = w.pos(r.Hdoc)
		}
		out.Target = t.value()
	case syntax.WordHdoc:
		t := concat(w.single(r.Word), lit("\n"))
		rd.in = &stream{t: t, kind: "const"}
		out.Target = t.value()
	default:
		t := w.sheltered(w.single(r.Word))
		out.Target = t.value()
		if file, ok := w.duplicate(r, t); ok { // as good as naming the file again
			out.Target = file.value()
			out.Op = map[bool]string{true: "<", false: ">>"}[r.Op == syntax.DplIn]
		}
		w.opened(rd, r, t, fd, name)
	}
	rd.list = append(rd.list, out)
}

// duplicate finds the file behind <&N or >&N, where exec opened it.
func (w *walker) duplicate(r *syntax.Redirect, t text) (text, bool) {
	number, ok := t.one()
	if !ok || r.Op != syntax.DplIn && r.Op != syntax.DplOut {
		return text{}, false
	}
	file, ok := w.fds[strings.TrimSuffix(number, "-")]
	return file, ok
}

// descriptor is the number that a redirection is of, and its name as written.
func descriptor(r *syntax.Redirect) (int, string) {
	if r.N != nil {
		if n, err := strconv.Atoi(r.N.Value); err == nil {
			return n, r.N.Value
		}
		return -1, strings.Trim(r.N.Value, "{}")
	}
	switch r.Op {
	case syntax.RdrIn, syntax.RdrInOut, syntax.DplIn, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return 0, "0"
	default: // output, below
	}
	return 1, "1"
}

// opened notes what a redirection to a file or a descriptor does to the
// streams.
func (w *walker) opened(rd *redirection, r *syntax.Redirect, t text, fd int, name string) {
	appending := r.Op == syntax.AppOut || r.Op == syntax.AppAll || r.Op == syntax.AppClob || r.Op == syntax.AppAllClob
	switch r.Op {
	case syntax.RdrIn, syntax.RdrInOut:
		if fd == 0 {
			rd.in = w.openFile(t)
		} else {
			rd.keep(name, t)
		}
	case syntax.DplIn:
		if src, ok := t.one(); ok && fd == 0 {
			if file, ok := w.fds[src]; ok {
				rd.in = w.openFile(file)
			}
		}
	case syntax.DplOut:
		w.duplicated(rd, t, fd)
	case syntax.RdrAll, syntax.AppAll, syntax.RdrAllClob, syntax.AppAllClob:
		rd.outs = append(rd.outs, target{t, appending})
	default:
		if fd == 1 {
			rd.outs = append(rd.outs[:0:0], target{t, appending})
		} else {
			rd.keep(name, t)
		}
	}
}

func (rd *redirection) keep(name string, t text) {
	if rd.fds == nil {
		rd.fds = map[string]text{}
	}
	rd.fds[name] = t
}

// duplicated is >&N, and >&FILE.
func (w *walker) duplicated(rd *redirection, t text, fd int) {
	s, ok := t.one()
	if !ok {
		rd.outs = append(rd.outs, target{t, false})
		return
	}
	number := strings.TrimSuffix(s, "-")
	switch {
	case s == "-" || fd != 1:
	case digits(number, len(number), 10) < len(number):
		rd.outs = append(rd.outs, target{t, false})
	case w.fds[number].alts != nil:
		rd.outs = append(rd.outs, target{w.fds[number], true})
	case number != "1":
		rd.outs = append(rd.outs, target{})
	}
}

// openFile is a file as a stream: what the script wrote to it, if it did.
func (w *walker) openFile(path text) *stream {
	w.guessed = true
	if t, ok := w.load(path); ok {
		return &stream{t: t, kind: "const"}
	}
	s := &stream{t: opaque(), kind: "file"}
	if w.isSelf(path) {
		s.t = s.t.tainted(facts.FromOwnText)
	}
	for _, p := range path.all() {
		switch {
		case strings.HasPrefix(p, "/dev/tcp/") || strings.HasPrefix(p, "/dev/udp/"):
			s.kind = "net"
			s.t = s.t.tainted("net:" + hostOf(p))
		case known(p) && p != "/dev/null":
			s.t = s.t.tainted("file:" + w.absolute(p))
		}
	}
	if path.is("/dev/null") {
		return &stream{kind: "const"}
	}
	return s
}

func hostOf(p string) string {
	host, _, _ := strings.Cut(p[len("/dev/tcp/"):], "/")
	return host
}

// absolute joins a path to the working directory, where that is known.
func (w *walker) absolute(p string) string {
	if strings.HasPrefix(p, "/") || strings.HasPrefix(p, "~") || w.st.cwd == "" {
		return p
	}
	return strings.TrimSuffix(w.st.cwd, "/") + "/" + strings.TrimPrefix(p, "./")
}

// redirFacts records the files of redirections around what is not a command of
// its own.
func (w *walker) redirFacts(rd *redirection, pos facts.Pos) {
	if len(rd.list) > 0 && w.once("redirections", pos, targets(rd.list)) {
		w.b.Redirections(rd.list, facts.Value{}, pos)
	}
}

func targets(list []facts.Redir) string {
	var b strings.Builder
	for _, r := range list {
		b.WriteString(r.Op + strings.Join(r.Target.Alts, "\x00") + r.Target.Prefix + "\n")
	}
	return b.String()
}

// deliver sends what a command printed to where its output goes, and returns
// what goes on.
func (w *walker) deliver(rd *redirection, out text) text {
	if len(rd.outs) == 0 {
		return out
	}
	for _, o := range rd.outs {
		if o.path.alts != nil {
			w.store(o.path, out, o.append)
		}
	}
	return text{}
}

// store notes what is written to a file.
func (w *walker) store(path, content text, appending bool) {
	for _, p := range path.all() {
		if strings.HasPrefix(p, "/dev/") {
			return
		}
	}
	path = placeOf(path)
	v := content.value()
	if w.maybe > 0 || len(path.alts) > 1 {
		if old, ok := w.b.Load(path.value()); ok {
			if appending {
				v = facts.Concat(old, v)
			}
			v, appending = facts.Union(old, v), false
		}
	}
	w.b.Store(path.value(), v, appending, w.here)
}

// placeOf gives a file a name that is not known but for the variables of the
// environment in it, so that what the script writes there is found again.
func placeOf(path text) text {
	if len(path.alts) != 1 || !strings.Contains(path.alts[0], unset) || strings.Contains(path.alts[0], hole) {
		return path
	}
	name := "/proc/self/environ"
	for _, f := range path.from {
		if !strings.HasPrefix(f, "env:") && f != facts.FromSourced {
			return path
		}
		name += "/" + f
	}
	if len(path.from) == 0 {
		return path
	}
	return lit(name + "/" + strings.ReplaceAll(path.alts[0], unset, "$"))
}

// load gives what the script wrote to a file.
func (w *walker) load(path text) (text, bool) {
	w.guessed = true
	if name, ok := path.one(); ok && strings.HasPrefix(name, pipePrefix) {
		if file, open := w.fds[name[len(pipePrefix):]]; open && !file.equal(path) {
			path = file // exec N< FILE; . /dev/fd/N
		}
	}
	path = placeOf(path)
	v, ok := w.b.Load(path.value())
	if !ok {
		return text{}, false
	}
	return folded(v), true
}

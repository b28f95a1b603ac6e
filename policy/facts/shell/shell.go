package shell

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/caisson-dev/caisson/policy/facts"
)

// Extractor reads shell scripts. It holds nothing of a scan and may be used by
// many goroutines.
type Extractor struct {
	tables   *facts.Tables
	builtins map[string]func(*walker, *invocation) text
	specials map[string]func(*walker, *invocation) (text, bool)
}

var _ facts.Extractor = (*Extractor)(nil)

// New returns the extractor of shell scripts. The tables are read only.
func New(tables *facts.Tables) *Extractor {
	return &Extractor{tables: tables, builtins: builtins(), specials: specials()}
}

// walker is the abstract interpreter of one text and of those that it evaluates
// itself.
type walker struct {
	b      *facts.Builder
	x      *Extractor
	tables *facts.Tables
	st     *state
	in     *stream
	fds    map[string]text // files that exec opened, by descriptor
	calls  []frame
	inside []string // never changed in place: if, while, function:NAME, outermost first
	status tri
	last   text // the last argument of the last command, $_

	traps    []pending
	reported map[string]bool
	memo     map[string]facts.Value
	declared []*function
	aliasing map[string]bool
	asked    map[*syntax.Stmt]emptiness
	renamed  map[string]string // copies of programs, by path

	here             facts.Pos // the statement whose output is delivered
	forks            int       // pipelines and background jobs around this place
	maybe            int       // branches around this place
	repeat           int       // loops and calls around this place: facts may come twice
	unrolled         int
	plainRedirection redirection // none
	depth            int         // of the text itself
	steps            int
	exhausted        bool
	told             bool
	placed           bool              // it is known how the script is called
	enders           map[string]*ender // words by which the text ends, as its arguments
	following        *syntax.Stmt      // what comes after the statement, in its list
	asides           int               // subshells around this place
	heir             facts.Lang        // whose the text is from here on, see handOver
	heirs            []facts.Lang      // whose the text may be
	optional         bool              // options of the shell were changed by shopt
	capture          int               // whether what commands print is of use
	files            int               // temporary files made
	arithDepth       int
	substs           int
	started          map[string]bool // variables that hold what the script started, and nothing else
	temps            []string        // folders that mktemp -d made
	perhaps          bool            // there may be fewer functions than are known
	strange          bool            // code that is not known may have changed anything
	guessed          bool            // what was evaluated rests on more than constants of the text
	stages           []bool          // for each pipeline around: a stage called a running function
}

// pending is code that runs later.
type pending struct {
	code text
	via  string
	pos  facts.Pos
}

// tri is an exit status as far as it is known.
type tri int8

const (
	unsure tri = iota
	succeeds
	fails
)

func sure(ok bool) tri {
	if ok {
		return succeeds
	}
	return fails
}

// errUnparsable says that a text is no shell script of any dialect.
var errUnparsable = errors.New("not a shell script")

// Extract implements [facts.Extractor]. Text that no dialect can parse is
// walked as far as it parses.
func (e *Extractor) Extract(ctx context.Context, src []byte, b *facts.Builder) error {
	w := &walker{
		b: b, x: e, tables: e.tables, st: newState(), in: &stream{}, fds: map[string]text{},
		reported: map[string]bool{}, memo: map[string]facts.Value{}, aliasing: map[string]bool{}, renamed: map[string]string{}, asked: map[*syntax.Stmt]emptiness{},
	}
	w.st.cwd, w.depth = b.Cwd(), b.Depth()
	w.st.arg0 = concat(concat(w.cwd(), lit("/")), opaque(fromSelf))
	w.begin(b.Start())
	err := w.script(src)
	w.finish()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// begin takes over what is known of how the script is started. From an argument
// on that could not be told there may be more of them.
func (w *walker) begin(start facts.Start) {
	if !start.Known {
		return
	}
	if start.Name != "" {
		w.st.arg0, w.placed = lit(clean(start.Name)).tainted(fromSelf), true
	}
	if start.Zero != nil {
		w.st.arg0 = folded(*start.Zero).tainted("argv")
	}
	w.st.more, w.st.rest, w.st.sealed = false, text{}, start.Sealed
	for _, v := range start.Args {
		t := folded(v).tainted("argv")
		if len(v.Alts) == 0 && v.Prefix == "" && v.Suffix == "" {
			w.st.more, w.st.rest = true, opaque(v.From...)
			break
		}
		w.st.args = append(w.st.args, t)
	}
	if len(start.Env) > 0 {
		w.st.env = make(map[string]text, len(start.Env))
		for name, v := range start.Env {
			maybe := v.Open && len(v.Alts) > 0
			v.Open = v.Open && !maybe
			t := folded(v).tainted("env:" + name)
			if maybe {
				t = union(t, unassigned)
			}
			w.st.env[name] = t
		}
	}
}

// script walks a whole text in the current state.
func (w *walker) script(src []byte) error {
	stmts, err := parse(src)
	if err == nil && len(stmts) == 0 {
		w.b.Node() // nothing but comments
	}
	w.started = startedOnly(stmts)
	w.enders = endersOf(stmts)
	for i := range stmts {
		w.heir = ""
		w.stmts(stmts[i : i+1])
		if w.heir != "" && w.isExec(stmts[i]) && !bytes.Contains(src, []byte("execfail")) {
			w.b.Nested(w.heir, facts.Text(string(src)), facts.NestedOpts{Pos: facts.Pos{Line: 1, Col: 1}, Verbatim: true, Via: []string{"exec"}})
			return nil
		}
		if len(w.heirs) > 0 && w.ends(stmts[i]) {
			err = nil // what follows is another language's
			break
		}
	}
	for _, lang := range w.heirs {
		w.b.Nested(lang, facts.Text(string(src)), facts.NestedOpts{Pos: facts.Pos{Line: 1, Col: 1}, Verbatim: true, Via: []string{"exec"}})
	}
	if err != nil {
		w.b.SyntaxErrors(1)
	}
	return err
}

// ends reports exec of a program that is named, as a statement of its own and
// with nothing that makes the shell go on where it fails.
func (w *walker) ends(s *syntax.Stmt) bool {
	if !w.isExec(s) || w.strange || w.optional || w.b.Depth() > 0 || len(w.st.funcs.get("exec")) > 0 || w.st.aliases.get("exec") != nil {
		return false
	}
	_, changed := w.st.env["BASHOPTS"]
	name := w.constant(s.Cmd.(*syntax.CallExpr).Args[1])
	return !changed && name != "" && name[0] != '-'
}

// isExec reports exec with a program, as a statement of its own.
func (w *walker) isExec(s *syntax.Stmt) bool {
	c, ok := s.Cmd.(*syntax.CallExpr)
	return ok && !s.Background && !s.Negated && !s.Coprocess && len(c.Args) > 1 && w.constant(c.Args[0]) == "exec"
}

// finish runs what waits for the end, and reads the functions that nothing
// called.
func (w *walker) finish() {
	for len(w.traps) > 0 {
		traps := w.traps
		w.traps = nil
		for _, p := range traps {
			w.aside(func() { w.evalText(p.via, p.code, p.pos, false) })
		}
		if len(w.reported) > maxWords {
			return
		}
	}
	for i := 0; i < len(w.declared); i++ {
		if f := w.declared[i]; !f.called {
			w.aside(func() {
				w.st.dead = false
				w.callFunction(f, nil, opaque("param"), true)
			})
		}
	}
}

// aside runs f in a copy of the state, as a subshell would.
func (w *walker) aside(f func()) {
	old, in := w.st, w.in
	w.st = old.clone()
	w.asides++
	f()
	w.asides--
	w.enter(old)
	w.in = in
}

// enter makes st the current state.
func (w *walker) enter(st *state) {
	w.st = st
	w.b.SetCwd(st.cwd, st.or)
}

// use makes b the builder that facts go to.
func (w *walker) use(b *facts.Builder) {
	w.b = b
	b.SetCwd(w.st.cwd, w.st.or)
}

// fromFolder is the origin of a working directory that is not known.
const fromFolder = "cwd"

func (w *walker) cwd() text {
	if w.st.cwd == "" {
		return opaque(fromFolder)
	}
	if w.st.or != "" {
		return lit(w.st.cwd).tainted(ownFolder, facts.FromAbove)
	}
	if w.st.own {
		return lit(w.st.cwd).tainted(ownFolder)
	}
	return lit(w.st.cwd)
}

func (w *walker) pos(n syntax.Node) facts.Pos {
	p, q := n.Pos(), n.End()
	return facts.Pos{Line: int(p.Line()), Col: int(p.Col()), EndLine: int(q.Line()), EndCol: int(q.Col())}
}

// readEnv reports the use of a variable that the script did not set, once.
func (w *walker) readEnv(name string, pos facts.Pos) {
	if !w.reported["env "+name] {
		w.reported["env "+name] = true
		w.b.Env("read", facts.Text(name), facts.Value{}, pos)
	}
}

// base is the last element of a path.
func base(s string) string { return s[strings.LastIndexByte(s, '/')+1:] }

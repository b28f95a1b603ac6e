package gate

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/policy"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// mostStdin bounds a program that comes on standard input: more is not scanned.
const mostStdin = 1 << 20

// stdinName is what interpreters call a program that comes on standard input.
const stdinName = "<stdin>"

// exec judges one run.
func (g *Gate) exec(ctx context.Context, p Policy, q *manager.ExecQuestion) (manager.Answer, error) {
	var about map[string]any
	if p.LooksAtPlan() {
		plan, err := q.Plan(ctx)
		if err != nil {
			return manager.Answer{}, err
		}
		about = map[string]any{"plan": surroundingsOf(q, plan)}
	}
	e, d, err := g.decide(ctx, p, q, roomOf(sandbox.Image{}), about, nil)
	if err != nil {
		return manager.Answer{}, err
	}
	if d.Verdict == sandbox.Deny && q.Run.Session == "" {
		return manager.Answer{Decision: d}, nil
	}
	// Nobody waited for the image so far, and few declare volumes or have a link to the
	// workspace. Where it does, the run is judged again: what its programs put there is
	// not the image's, and what is below the link is in the workspace.
	plan, err := q.Plan(ctx)
	if err != nil {
		return manager.Answer{Decision: d}, err
	}
	if img := plan.Spec.Image; img.Link != "" || len(img.Volumes) > 0 && d.Verdict != sandbox.Deny {
		again := *q
		if e.stdin != nil {
			again.Stdin = e.stdin
		}
		q = &again
		if e, d, err = g.decide(ctx, p, q, roomOf(img), about, nil); err != nil {
			return manager.Answer{}, err
		}
	}
	if d.Verdict == sandbox.Deny {
		return manager.Answer{Decision: d}, nil
	}
	if d = p.Contain(ctx, d, wallsOf(q, plan)); d.Verdict == sandbox.Ask {
		a := e.question(ctx, d, plan.Spec.Image.ID)
		if d, err = g.settle(ctx, d, q.Run.Approve, q.Ask, a); err != nil {
			return manager.Answer{Decision: d}, err
		}
	}
	if !d.Permits() {
		return manager.Answer{Decision: d}, nil
	}
	return manager.Answer{Decision: d, Program: e.program()}, nil
}

// wallsOf are the walls around an exec: those of its sandbox, and an environment
// that has nothing of the caller's.
func wallsOf(q *manager.ExecQuestion, plan runtimes.Plan) []sandbox.Wall {
	if len(q.Run.Env) > 0 || q.Shell != nil && q.Shell.Env {
		return plan.Walls
	}
	return append(slices.Clone(plan.Walls), sandbox.WallEnvironment)
}

// surroundingsOf is what rules may ask about the sandbox.
func surroundingsOf(q *manager.ExecQuestion, plan runtimes.Plan) sandbox.Surroundings {
	return sandbox.Surroundings{
		Network: q.Network, Walls: wallsOf(q, plan), Writable: sandbox.Writable(plan.Spec.Image.Volumes), Workspace: plan.Spec.Workspace.Kind,
		Session: q.Run.Session, Limits: q.Limits,
	}
}

// decide judges all that one run executes, with the places that programs can write,
// and what stands around it. about is what rules see beside each text; before, where
// there is one, tells more.
func (g *Gate) decide(ctx context.Context, p Policy, q *manager.ExecQuestion, at room, about map[string]any, before func(*walker) error) (*execution, sandbox.Decision, error) {
	e := &execution{q: q, ours: g.c.Own, shipped: g.c.Shipped, keeping: &g.keeping, begins: before != nil, f: formOf(q, at), w: newWalker(p, q, ownerOf(q), at)}
	e.w.about, e.w.begins = about, e.begins
	defer e.w.wait()
	if before != nil {
		if err := before(e.w); err != nil {
			return nil, sandbox.Decision{}, err
		}
	}
	if err := e.examine(ctx); err != nil {
		return nil, sandbox.Decision{}, err
	}
	d := e.w.decision
	if about := e.surroundings(g.c.UnknownLanguage); about != nil {
		d = merge(d, p.DecideContext(ctx, "", map[string]any{"gate": about}))
		if ctx.Err() != nil {
			return nil, d, context.Cause(ctx)
		}
		if err := p.Err(); err != nil {
			return nil, d, err
		}
	}
	d.PolicyRevision = p.Revision()
	return e, d, nil
}

// ownerOf keeps the texts of different sessions out of one scanner.
func ownerOf(q *manager.ExecQuestion) string {
	if q.Run.Session != "" {
		return q.User
	}
	return string(q.ID)
}

// execution is one run that is being judged.
type execution struct {
	q *manager.ExecQuestion
	f form
	w *walker

	ours    []string // texts of caisson's own
	shipped []string // and those that need not be judged: see [Config]
	keeping *keeping
	begins  bool // it is a start of a running exec: its interpreter reads the files itself
	main    *unit
	stdin   io.Reader // in place of the question's; nil is that
	// input says of the standard input, for the digest, what is known of it.
	input    string
	envFound []envFinding
}

// lookThrough looks at what variables name: an archive to import from is not judged, and
// a folder without files has no bytecode.
func (e *execution) lookThrough(ctx context.Context) error {
	for _, name := range e.w.search {
		infos, err := e.w.ws.List(ctx, path.Dir(name), 1)
		if errors.Is(err, sandbox.Unavailable) {
			return err
		}
		if slices.ContainsFunc(infos, func(i sandbox.FileInfo) bool { return path.Base(i.Path) == path.Base(name) && i.Type == "file" }) {
			e.w.cannot(name, "Python imports out of archives that it is told to look in")
		}
	}
	i := slices.IndexFunc(e.envFound, func(f envFinding) bool { return f["name"] == "PYTHONPYCACHEPREFIX" })
	if i < 0 {
		return nil
	}
	dir, _ := e.envFound[i]["value"].(string)
	name, in := inWorkspace(dir)
	if !in {
		if name = dir; !isBeside(dir) {
			return nil
		}
	}
	e.w.loads = true
	infos, err := e.w.ws.List(ctx, name, 0)
	switch {
	case errors.Is(err, sandbox.Unavailable):
		return err
	case errors.Is(err, sandbox.NotFound), err == nil && !slices.ContainsFunc(infos, func(i sandbox.FileInfo) bool { return i.Type != "dir" }):
		e.envFound = slices.Delete(e.envFound, i, i+1)
	}
	return nil
}

// examine judges the first text and all that it leads to.
func (e *execution) examine(ctx context.Context) error {
	q := e.q
	e.envFound, e.w.search = e.w.judgeEnv(q.Run.Env)
	if err := e.lookThrough(ctx); err != nil {
		return err
	}
	if slices.Contains(q.Env, "PYTHONPATH="+sandbox.WorkspaceDir) {
		e.w.search = append(e.w.search, ".")
	}
	e.input = "none"
	if q.Stdin != nil {
		e.input = "stream"
	}
	if q.Terminal {
		e.input = "terminal"
	}
	if e.own() { // it reads the input itself, and looks nowhere else
		e.w.search, e.w.input, e.input = nil, false, "our own"
	}
	if err := e.examineStaged(ctx); err != nil || e.own() {
		return err
	}
	switch {
	case e.f.code:
		e.main = &unit{lang: e.f.lang, code: []byte(q.Run.Code), staged: !e.begins, roots: e.here(), start: e.w.begun("", e.f.args)}
		if e.begins { // it is a script elsewhere
			e.main.name, e.main.roots = e.f.file, e.w.rootsOf(path.Dir(e.f.file))
		}
		if e.isShipped(e.main.lang, q.Run.Code) {
			e.w.ship(e.main) // what it loads lies beside it, and was judged
		} else if err := e.w.examine(ctx, e.main); err != nil {
			return err
		}
		return e.inShell(ctx)
	case e.f.file != "":
		staged := e.stageable() && (path.Ext(e.f.file) != ".js" || !e.w.esModule(ctx, e.f.file))
		if err := e.w.addFileStarted(ctx, e.f.file, e.f.lang, staged, e.w.rootsOf(path.Dir(e.f.file)), e.w.begun(e.f.file, e.f.args)); err != nil {
			return err
		}
		e.main = e.w.units[e.f.file]
		if !staged {
			return e.customize(ctx)
		}
		return nil
	case e.f.stdin:
		return e.stdinProgram(ctx)
	}
	return e.command(ctx)
}

// here is where Python looks for the modules of a program that lies in no file.
func (e *execution) here() []string {
	dir, in := inWorkspace(e.w.dir)
	switch {
	case in:
		return e.w.rootsOf(dir)
	case e.begins && isBeside(e.w.dir):
		return e.w.rootsOf(e.w.dir)
	}
	return e.w.search
}

// stdinProgram reads the whole of a program that comes on standard input.
// Nothing of it runs before it is all there.
func (e *execution) stdinProgram(ctx context.Context) error {
	if e.q.Stdin == nil {
		return nil // there is no program
	}
	b, rest, err := readProgram(ctx, e.q.Stdin, mostStdin)
	if err != nil {
		return err
	}
	e.stdin, e.input = rest, sum(b)
	if len(b) > mostStdin {
		e.w.cannot("standard input", "it is a program of more than 1 MiB, or one without an end")
	}
	e.main = &unit{name: stdinName, lang: e.f.lang, code: b[:min(len(b), mostStdin)], roots: e.here(), start: e.w.begun("", e.f.args)}
	if e.f.odd {
		e.main.start.Args = []policy.Given{policy.Passed()}
	}
	e.w.units[e.main.name] = e.main
	return e.w.examine(ctx, e.main)
}

// readProgram reads up to most bytes and one more, or gives up with ctx. rest
// gives everything again.
func readProgram(ctx context.Context, r io.Reader, most int64) (b []byte, rest io.Reader, err error) {
	type read struct {
		b   []byte
		err error
	}
	done := make(chan read, 1)
	go func() { // it ends with its reader, as os/exec's do
		b, err := io.ReadAll(io.LimitReader(r, most+1))
		done <- read{b, err}
	}()
	select {
	case got := <-done:
		if got.err != nil {
			return nil, nil, sandbox.Errorf(sandbox.Invalid, "read the program from standard input: %w", got.err)
		}
		rest = bytes.NewReader(got.b)
		if int64(len(got.b)) > most {
			rest = io.MultiReader(rest, r)
		}
		return got.b, rest, nil
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
}

// command judges an argv as a shell would read it.
func (e *execution) command(ctx context.Context) error {
	words := make([]string, len(e.q.Argv))
	for i, a := range e.q.Argv {
		words[i] = quote(a)
	}
	e.main = &unit{lang: "bash", code: []byte(strings.Join(words, " ")), shown: true, command: true, roots: e.here(), start: e.w.begun("", nil)}
	if err := e.w.examine(ctx, e.main); err != nil {
		return err
	}
	return e.customize(ctx)
}

// customize judges what Python loads by itself at its start, where it is told
// to look in the workspace.
func (e *execution) customize(ctx context.Context) error {
	python := slices.ContainsFunc(e.w.order, func(u *unit) bool { return u.lang == "python" }) || e.f.lang == "python"
	if !python && !strings.Contains(strings.Join(e.q.Argv, " "), "py") {
		return nil
	}
	for _, root := range e.here() {
		entries, err := e.w.list(ctx, root)
		if err != nil {
			return err
		}
		for _, name := range []string{"sitecustomize", "usercustomize"} {
			if entries[name+".py"] == "" && entries[name] == "" {
				continue
			}
			if _, err := e.w.pythonIn(ctx, &unit{roots: []string{root}}, root, "", []string{name}, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// surroundings are what the rules are told beside texts, and what the operator
// says of texts in languages that cannot be judged; nil is nothing.
func (e *execution) surroundings(unknownLanguage sandbox.Verdict) map[string]any {
	later := []string{}
	if e.q.Background && !e.q.Run.Guard {
		for name := range e.w.watched() {
			later = append(later, name)
		}
		slices.Sort(later)
	}
	found := slices.Concat(e.envFound, e.w.moved)
	if len(found) == 0 && len(e.w.unjudged)+len(e.w.unknown) == 0 && len(later) == 0 && !e.q.Terminal {
		return nil
	}
	env := []any{}
	for _, f := range found {
		env = append(env, f)
	}
	unjudged := []any{}
	for _, u := range e.w.unjudged {
		unjudged = append(unjudged, u)
	}
	unknown := append([]any{}, e.w.unknown...)
	return map[string]any{
		"env": env, "unjudged": unjudged, "unknown": unknown, "unknown_language": string(unknownLanguage), "later": later, "background": e.q.Background, "terminal": e.q.Terminal,
	}
}

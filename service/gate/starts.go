package gate

import (
	"context"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/policy"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// What a running exec starts is judged by itself, as an exec of that command would be.
// So only what a program does in its own process has to be known of it: what it starts
// in turn is asked about in its turn.

// loadsAny reports whether a loader is given a program by a name that says nothing of it.
func loadsAny(t manager.Start) bool {
	name := path.Base(t.File)
	return strings.HasPrefix(name, "ld") && strings.Contains(name, ".so") && slices.ContainsFunc(t.Argv, func(a string) bool {
		return strings.HasPrefix(a, "/proc/") || strings.HasPrefix(a, "/dev/")
	})
}

// several are programs that are what they are called.
var several = []string{"busybox", "toybox", "coreutils"}

// start judges a program that a running exec is about to start.
func (g *Gate) start(ctx context.Context, p Policy, q *manager.StartQuestion) (manager.Answer, error) {
	plan, err := q.Exec.Plan(ctx)
	if err != nil {
		return manager.Answer{}, err
	}
	at := roomOf(plan.Spec.Image)
	command := commandOf(q.Start, at.places)
	if !q.Start.Own && len(q.Start.Env) == 0 && g.plain(ctx, path.Base(command[0])) {
		return manager.Answer{Decision: allowed(p), Any: true}, nil
	}
	if q.Start.CallsTools() {
		return manager.Answer{Decision: allowed(p), Any: true}, nil
	}
	if q.Start.Native && contains(plan) {
		return manager.Answer{Decision: allowed(p), Same: true}, nil
	}
	asked, functions := questionOf(q, command)
	e, d, err := g.decideStart(ctx, p, asked, q, functions, at)
	if err != nil {
		return manager.Answer{}, err
	}
	if d = approvedBefore(p.Contain(ctx, d, wallsOf(q.Exec, plan)), q.Decision); !d.Permits() && d.Verdict == sandbox.Ask {
		q.Hold()
		a := e.question(ctx, d, plan.Spec.Image.ID)
		if d, err = g.settle(ctx, d, asked.Run.Approve, asked.Ask, a); err != nil {
			return manager.Answer{Decision: d}, err
		}
	}
	// What depends on files of the workspace may be another thing the next time, as its
	// number is another's, and what a person let pass was this once.
	same := slices.Equal(ownProc(q.Start), wordsOf(q.Start)) && d.Verdict == sandbox.Allow && !e.w.loads && len(e.w.lists) == 0 && len(e.w.order) == 1+len(functions)
	return manager.Answer{Decision: d, Same: same}, nil
}

// approvedBefore lets a start pass of which nothing is asked about but what was when its
// exec was approved: the same is found by the same rules.
func approvedBefore(d, exec sandbox.Decision) sandbox.Decision {
	if d.Verdict != sandbox.Ask || exec.Approval == nil {
		return d
	}
	asks := false
	for _, f := range d.Findings {
		if f.Verdict != sandbox.Ask {
			continue
		}
		if asks = slices.ContainsFunc(exec.Findings, func(e sandbox.Finding) bool {
			return e.ID == f.ID && e.Message == f.Message && e.Verdict == sandbox.Ask
		}); !asks {
			return d
		}
	}
	if asks {
		d.Approval = exec.Approval
	}
	return d
}

func allowed(p Policy) sandbox.Decision {
	return sandbox.Decision{Verdict: sandbox.Allow, Level: sandbox.Safe, Findings: []sandbox.Finding{}, PolicyRevision: p.Revision()}
}

// plain reports whether no rule knows anything of a program by its name.
func (g *Gate) plain(ctx context.Context, name string) bool {
	if g.c.Plain == nil {
		return false
	}
	g.programs.Do(func() { g.isPlain, g.plainErr = g.c.Plain(context.WithoutCancel(ctx)) })
	return g.plainErr == nil && g.isPlain(name)
}

// contains reports whether a sandbox holds machine code, which nothing can read, to
// what is in it.
func contains(plan runtimes.Plan) bool {
	has := func(w sandbox.Wall) bool { return slices.Contains(plan.Walls, w) }
	return has(sandbox.WallRoot) && has(sandbox.WallPrivileges) && has(sandbox.WallLimits) && (has(sandbox.WallNetwork) || has(sandbox.WallEgress))
}

// commandOf is a start as a command: the program by the name that tells what it does,
// and its words.
func commandOf(t manager.Start, at places) []string {
	name := t.Path
	if !t.Own && at.writable(path.Dir(name)) {
		name = t.File // whatever the link to it is called
	}
	words := ownProc(t)
	if len(t.Argv) > 0 && slices.Contains(several, path.Base(t.File)) {
		name = path.Join(path.Dir(t.File), path.Base(t.Argv[0]))
	}
	if t.Own && !t.Native {
		return slices.Concat(shebang(t.Script), []string{name}, words)
	}
	return slices.Concat([]string{name}, words)
}

func wordsOf(t manager.Start) []string { return t.Argv[min(1, len(t.Argv)):] }

// ownProc are a start's words, where its own number and that of the process that made it,
// which the first of a sandbox did not, are as it calls itself in /proc.
func ownProc(t manager.Start) []string {
	words := slices.Clone(wordsOf(t))
	for i, word := range words {
		number, rest, _ := strings.Cut(strings.TrimPrefix(word, "/proc/"), "/")
		if n, err := strconv.Atoi(number); err == nil && n > 1 && (n == t.PID || n == t.Parent) && strings.HasPrefix(word, "/proc/") {
			words[i] = "/proc/self/" + rest
		}
	}
	return words
}

// shebang is the interpreter that a script names, as the kernel reads it: from the
// folder that it is started in. A text that names none is for a shell.
func shebang(script []byte) []string {
	line, _, _ := strings.Cut(string(script[:min(len(script), 256)]), "\n")
	line, named := strings.CutPrefix(line, "#!")
	if !named {
		return []string{"/bin/sh"}
	}
	line, _, _ = strings.Cut(line, "\x00")
	name, arg := strings.Trim(line, " \t"), ""
	if i := strings.IndexAny(name, " \t"); i >= 0 {
		name, arg = name[:i], strings.Trim(name[i:], " \t")
	}
	if !strings.Contains(name, "/") {
		name = "./" + name
	}
	if arg == "" {
		return []string{name}
	}
	if path.Base(name) == "env" && !strings.HasPrefix(arg, "-") {
		return []string{"/usr/bin/" + arg} // found by PATH, where it is started in turn
	}
	return []string{name, arg}
}

// questionOf asks about a command as about an exec beside the one that starts it.
// Functions of bash that it gets are texts, and not variables.
func questionOf(q *manager.StartQuestion, command []string) (asked *manager.ExecQuestion, functions []string) {
	e := *q.Exec
	var env []string
	for _, kv := range q.Start.Env {
		if name, body, _ := strings.Cut(kv, "="); strings.HasPrefix(name, functionPrefix) {
			functions = append(functions, strings.TrimSuffix(strings.TrimPrefix(name, functionPrefix), "%%")+" "+body)
			continue
		}
		env = append(env, kv)
	}
	e.Run = sandbox.Run{Session: e.Run.Session, Labels: e.Run.Labels, Approve: e.Run.Approve, Role: e.Run.Role, Network: e.Run.Network, Command: command, Env: env, Dir: q.Start.Dir}
	e.Argv, e.Env, e.Dir = command, slices.Concat(e.Env, env), q.Start.Dir
	e.Stage, e.Staged, e.Stdin, e.Shell, e.Making, e.Terminal, e.Background = nil, nil, nil, nil, false, false, false
	if name, in := inWorkspace(q.Start.Path); q.Start.Own && !q.Start.Native && (!in || name == ".") {
		// It cannot be read from here: these are the bytes.
		lang, _ := policy.ShebangLanguage(q.Start.Script)
		if lang == "" {
			lang = "bash"
		}
		e.Language = sandbox.Language{Name: lang}
		e.Run.Command, e.Run.File, e.Run.Code, e.Run.Args = nil, q.Start.File, string(q.Start.Script), command[len(shebang(q.Start.Script))+1:]
	}
	return &e, functions
}

// decideStart judges a start, with what is known of it beside its command.
func (g *Gate) decideStart(ctx context.Context, p Policy, asked *manager.ExecQuestion, q *manager.StartQuestion, functions []string, at room) (*execution, sandbox.Decision, error) {
	var about map[string]any
	if p.LooksAtPlan() {
		plan, err := asked.Plan(ctx)
		if err != nil {
			return nil, sandbox.Decision{}, err
		}
		about = map[string]any{"plan": surroundingsOf(q.Exec, plan)}
	}
	return g.decide(ctx, p, asked, at, about, func(w *walker) error {
		switch t := q.Start; {
		case t.Native:
			w.cannot(t.Path, "it is machine code, and the sandbox does not contain it")
		case t.Own && t.Script == nil:
			w.cannot(t.Path, "it is too large to be judged")
		case loadsAny(t):
			w.cannot(t.Path, "what it loads is named by a descriptor")
		}
		if q.Start.Cut {
			w.cannot(q.Start.Path, "its arguments and variables are too long to be told whole")
		}
		for _, text := range functions {
			if err := w.examine(ctx, &unit{lang: "bash", code: []byte(text), shown: true}); err != nil {
				return err
			}
		}
		return nil
	})
}

package gate_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/functions"
	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/policy/approval"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/bubblewrap"
	"github.com/caisson-dev/caisson/runtimes/docker"
	"github.com/caisson-dev/caisson/runtimes/process"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/service/gate"
	"github.com/caisson-dev/caisson/store/sqlite"
	"github.com/caisson-dev/caisson/testloop"
)

// place is a manager behind a real gate, on a real engine.
type place struct {
	*manager.Manager
	store *sqlite.Store
	cfg   manager.Config
}

func newPlace(t *testing.T, langs ...string) *place {
	t.Helper()
	kit := enginetest.New(t)
	return newPlaceOn(t, kit, kit.Runtimes(t), langs...)
}

func newPlaceOn(t *testing.T, kit *enginetest.Kit, all *runtimes.Registry, langs ...string) *place {
	t.Helper()
	for _, l := range langs {
		kit.Image(t, l)
	}
	dir := t.TempDir()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	desk, err := approval.New(approval.Config{Store: s, Poll: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	p := newPolicy(t)
	g, err := gate.New(gate.Config{Policy: func(context.Context) (gate.Policy, error) { return p, nil }, Desk: desk, Actor: "test", Own: slices.Concat(testloop.Own(), functions.Own())})
	if err != nil {
		t.Fatal(err)
	}
	cfg := manager.Config{
		Patience: enginetest.Patience, Runtimes: all, Images: kit.Images, Gate: g.Judge, Store: s, StateID: s.ID(), LockDir: filepath.Join(dir, "locks"), Actor: "test",
	}
	m, err := manager.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(m.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
	return &place{m, s, cfg}
}

// another is a second manager of the same place, as another process has it.
func (p *place) another(t *testing.T) *manager.Manager {
	t.Helper()
	m, err := manager.New(p.cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func (p *place) session(t *testing.T, name, lang string) *manager.Files {
	t.Helper()
	if _, err := p.CreateSession(t.Context(), sandbox.SessionOptions{Name: name, Language: lang}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.RemoveSession(context.WithoutCancel(t.Context()), name, true); err != nil {
			t.Error(err)
		}
	})
	f, err := p.Files(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func write(t *testing.T, f *manager.Files, name, text string) {
	t.Helper()
	if _, err := f.Write(t.Context(), name, 0, strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
}

// asksThen approves a question after something else was done.
func asksThen(do func()) sandbox.Asker {
	return func(context.Context, sandbox.Approval) (sandbox.ApprovalAnswer, error) {
		do()
		return sandbox.ApprovalAnswer{Approve: true, By: "me", Via: "terminal"}, nil
	}
}

const asked = "import os\nif os.path.exists('/none'): open('/etc/shadow')\n"

// What was swapped between judgement and run does not run.
func TestSwapped(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "python")
	f := p.session(t, "swap", "python")
	const evil = "print('EVIL')\n"
	for name, tt := range map[string]struct {
		run     sandbox.Run
		swapped string
		want    string // "" is a Conflict before it begins
	}{
		"the program":        {sandbox.Run{File: "main.py"}, "main.py", "good 1\n"},
		"by a command":       {sandbox.Run{Command: []string{"python3", "main.py"}}, "main.py", "good 1\n"},
		"its module":         {sandbox.Run{File: "main.py"}, "mod.py", "good 1\n"},
		"a module of code":   {sandbox.Run{Code: asked + "import mod\nprint('good', mod.x)\n"}, "mod.py", "good 1\n"},
		"a module in front":  {sandbox.Run{File: "main.py"}, "os.py", "good 1\n"},
		"bytecode":           {sandbox.Run{File: "main.py"}, "mod.pyc", "good 1\n"},
		"a start-up file":    {sandbox.Run{File: "main.py"}, "sitecustomize.py", "good 1\n"},
		"what a shell loads": {sandbox.Run{Command: []string{"sh", "-c", "env >/dev/null; python3 main.py"}}, "main.py", ""},
		"what that imports":  {sandbox.Run{Command: []string{"sh", "-c", "env >/dev/null; python3 main.py"}}, "mod.py", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, gone := range []string{"os.py", "mod.pyc", "sitecustomize.py"} {
				if err := f.Remove(t.Context(), gone, false); err != nil && !errors.Is(err, sandbox.NotFound) {
					t.Fatal(err)
				}
			}
			write(t, f, "main.py", asked+"import mod\nprint('good', mod.x)\n")
			write(t, f, "mod.py", "x = 1\n")
			ask := asksThen(func() { write(t, f, tt.swapped, evil) })
			res, err := p.ExecIn(t.Context(), "swap", tt.run, sandbox.Streams{Local: sandbox.Local{Ask: ask}})
			if tt.want == "" {
				if !errors.Is(err, sandbox.Conflict) || !strings.Contains(err.Error(), tt.swapped) {
					t.Errorf("%v, %q", err, res.Stdout)
				}
				return
			}
			if err != nil || string(res.Stdout) != tt.want || res.Decision.Approval == nil {
				t.Errorf("%v, %q %q, %+v", err, res.Stdout, res.Stderr, res.Decision)
			}
		})
	}
}

// A loop that was approved ends once what it runs is another.
func TestLoopEndsWhenItsFileChanges(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "python")
	f := p.session(t, "loop", "python")
	write(t, f, "job.py", "print('good')\n")
	var once bool
	swapped := make(chan error, 1)
	out := writerFunc(func(b []byte) (int, error) {
		if !once {
			once = true
			go func() {
				_, err := f.Write(t.Context(), "job.py", 0, strings.NewReader("print('EVIL')\n"))
				swapped <- err
			}()
		}
		return len(b), nil
	})
	run := sandbox.Run{Command: []string{"sh", "-c", "while true; do python3 job.py; sleep 1; done"}, ExecLimits: sandbox.ExecLimits{Timeout: sandbox.Duration(30 * time.Second)}}
	res, err := p.ExecIn(t.Context(), "loop", run, sandbox.Streams{Stdout: out})
	if err != nil || res.Reason != sandbox.ReasonCanceled || !strings.Contains(res.Cause, "job.py") || bytes.Contains(res.Stdout, []byte("EVIL")) {
		t.Errorf("%v, %s %q, %q", err, res.Reason, res.Cause, res.Stdout)
	}
	if err := <-swapped; err != nil {
		t.Error(err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// An answer for always holds for that very run: not for another session,
// folder or byte.
func TestApprovalIsNotReplayed(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "shell")
	f := p.session(t, "one", "shell")
	p.session(t, "two", "shell")
	if err := f.Mkdir(t.Context(), "sub", 0o755); err != nil {
		t.Fatal(err)
	}
	run := sandbox.Run{Command: []string{"env"}, Env: []string{"SEEN=1"}}
	always := func(context.Context, sandbox.Approval) (sandbox.ApprovalAnswer, error) {
		return sandbox.ApprovalAnswer{Approve: true, Always: true, By: "me"}, nil
	}
	first, err := p.ExecIn(t.Context(), "one", run, sandbox.Streams{Local: sandbox.Local{Ask: always}})
	if err != nil {
		t.Fatal(err)
	}
	if res, err := p.ExecIn(t.Context(), "one", run, sandbox.Streams{}); err != nil || res.Decision.Approval.ID != first.Decision.Approval.ID {
		t.Errorf("the same run: %v", err)
	}
	for name, change := range map[string]func() (string, sandbox.Run){
		"another session": func() (string, sandbox.Run) { return "two", run },
		"another folder":  func() (string, sandbox.Run) { r := run; r.Dir = "sub"; return "one", r },
		"another byte":    func() (string, sandbox.Run) { r := run; r.Command = []string{"env", "-0"}; return "one", r },
		"another limit":   func() (string, sandbox.Run) { r := run; r.Timeout = sandbox.Duration(7 * time.Second); return "one", r },
	} {
		session, r := change()
		var denied *sandbox.DeniedError
		if res, err := p.ExecIn(t.Context(), session, r, sandbox.Streams{}); !errors.As(err, &denied) || denied.Decision.Verdict != sandbox.Ask || res.Code != 126 {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The run's own event names its rules and who approved it.
	for e, err := range p.store.Events(t.Context(), sandbox.EventFilter{Exec: first.ExecID, Kinds: []string{sandbox.EventExecStarted}}) {
		if err != nil || !strings.Contains(string(e.Data), `"approver":"me"`) || !strings.Contains(string(e.Data), `"SBX-CRED-0004"`) {
			t.Errorf("%v, %s", err, e.Data)
		}
	}
}

// Every public way to run something is behind the gate.
func TestEveryWayIn(t *testing.T) {
	t.Parallel()
	// A method of the service that takes a run, and is not here, has no test.
	var ways []string
	service := reflect.TypeFor[api.Service]()
	for i := range service.NumMethod() {
		m := service.Method(i)
		for j := range m.Type.NumIn() {
			if in := m.Type.In(j); in == reflect.TypeFor[sandbox.Run]() || in == reflect.TypeFor[sandbox.ShellRun]() {
				ways = append(ways, m.Name)
			}
		}
	}
	if !slices.Equal(ways, []string{"Exec", "Run", "RunShell", "StartExec"}) {
		t.Fatalf("the service runs things by %v", ways)
	}
	for _, name := range []string{docker.Name, bubblewrap.Name, process.Name} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kit := enginetest.New(t)
			all := kit.Runtimes(t)
			switch name {
			case bubblewrap.Name:
				all = runtimes.Only(name, kit.Jail(t))
			case process.Name:
				all = runtimes.Only(name, kit.Unwalled(t))
			}
			everyWayIn(t, newPlaceOn(t, kit, all, "shell", "python"))
		})
	}
}

func everyWayIn(t *testing.T, p *place) {
	t.Helper()
	p.session(t, "s", "shell")
	box, err := p.Open(t.Context(), manager.OpenOptions{Language: "shell"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := box.Close(); err != nil {
			t.Error(err)
		}
	})
	evil := []sandbox.File{{Path: "x.sh", Data: []byte("rm -rf /\n")}}
	for name, run := range map[string]sandbox.Run{
		"code":    {Language: "shell", Code: "rm -rf /"},
		"a file":  {Language: "shell", File: "x.sh", Files: evil},
		"command": {Language: "shell", Command: []string{"rm", "-rf", "/"}},
		"a script": {Language: "shell", Command: []string{"./x.sh"}, Files: []sandbox.File{
			{Path: "x.sh", Mode: 0o755, Data: []byte("#!/bin/sh\nrm -rf /\n")}}},
		"a link":    {Language: "shell", File: "l.sh", Files: append([]sandbox.File{{Path: "l.sh", Link: "x.sh"}}, evil...)},
		"the input": {Language: "shell", Command: []string{"sh"}},
		"staged":    {Language: "shell", Code: "true", Stage: evil},
	} {
		streams := func() sandbox.Streams {
			if name == "the input" {
				return sandbox.Streams{Stdin: strings.NewReader("rm -rf /\n")}
			}
			return sandbox.Streams{}
		}
		for way, do := range map[string]func() error{
			"run":   func() error { _, err := p.Run(t.Context(), run, streams()); return err },
			"exec":  func() error { _, err := p.ExecIn(t.Context(), "s", run, streams()); return err },
			"open":  func() error { _, err := box.Exec(t.Context(), run, streams()); return err },
			"start": func() error { _, err := p.StartIn(t.Context(), "s", run, sandbox.Local{}); return err },
			"terminal": func() error {
				run := run
				run.Terminal = &sandbox.TerminalSize{}
				_, err := p.StartIn(t.Context(), "s", run, sandbox.Local{})
				return err
			},
		} {
			if name == "the input" && (way == "start" || way == "terminal") {
				continue // it has none
			}
			var denied *sandbox.DeniedError
			if err := do(); !errors.As(err, &denied) || denied.Decision.Verdict != sandbox.Deny || !errors.Is(err, sandbox.Denied) {
				t.Errorf("%s by %s: %v", name, way, err)
			}
		}
	}
	// A terminal is one question, and its record says what was not asked.
	typed, err := p.StartIn(t.Context(), "s", sandbox.Run{Language: "shell", Command: []string{"true"}, Terminal: &sandbox.TerminalSize{}}, sandbox.Local{})
	if err != nil || typed.Decision == nil || !slices.ContainsFunc(typed.Decision.Findings, func(f sandbox.Finding) bool { return f.ID == "SBX-GATE-0007" }) {
		t.Errorf("a terminal: %v %+v", err, typed.Decision)
	}
	// A shell: its environment, a text, and what others have left in it.
	var denied *sandbox.DeniedError
	if _, err := p.OpenShell(t.Context(), "s", "env", sandbox.ShellOptions{Env: []string{"LD_PRELOAD=/workspace/x.so"}}, sandbox.Local{}); !errors.As(err, &denied) {
		t.Errorf("a shell with a bad environment: %v", err)
	}
	if _, err := p.OpenShell(t.Context(), "s", "sh", sandbox.ShellOptions{}, sandbox.Local{}); err != nil {
		t.Fatal(err)
	}
	for _, texts := range [][]string{{"rm -rf /"}, {"wipe() { rm -rf \"$1\"; }", "wipe /"}, {"target=/", "rm -rf \"$target\""}, {"alias ll='rm -rf'", "ll /"}, {"echo /etc >d", "cd \"$(<d)\"", "cat shadow"}} {
		for i, text := range texts {
			_, err := p.RunShell(t.Context(), "s", "sh", sandbox.ShellRun{Text: text}, sandbox.Streams{})
			if last := i == len(texts)-1; last != errors.As(err, &denied) {
				t.Errorf("%q in a shell: %v", texts[:i+1], err)
			}
		}
	}
	// Test loops run their own text, and what it finds.
	inSession := func(ctx context.Context, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error) {
		return p.ExecIn(ctx, "s", run, streams)
	}
	file := func(name, text string) []sandbox.File { return []sandbox.File{{Path: name, Data: []byte(text)}} }
	for name, s := range map[string]testloop.Suite{
		"a solution":     {Solution: file("solution.py", evilPython), Tests: file("test_x.py", "import solution\n")},
		"tests":          {Tests: file("test_x.py", evilPython)},
		"a conftest":     {Tests: file("sub/conftest.py", evilPython)},
		"another module": {Solution: file("pkg/mod.py", evilPython), Tests: file("test_x.py", "")},
	} {
		if _, err := testloop.Pytest(t.Context(), inSession, s); !errors.Is(err, sandbox.Denied) {
			t.Errorf("%s by pytest: %v", name, err)
		}
	}
	functionsIn(t, p, file)
	wiresIn(t, p)
	started := 0
	for e, err := range p.store.Events(t.Context(), sandbox.EventFilter{Kinds: []string{sandbox.EventExecStarted}}) {
		if started++; err != nil || started > 9 { // a terminal, the shells, and the beginnings in them
			t.Errorf("%v, it started: %s", err, e.Data)
		}
	}
}

// functionsIn calls functions whose code, or what it imports, is denied.
func functionsIn(t *testing.T, p *place, file func(name, text string) []sandbox.File) {
	t.Helper()
	fs, err := functions.New(functions.Config{Sandboxes: functionSandboxes{p.Manager}, Store: p.store, LockDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := fs.Close(); err != nil {
			t.Error(err)
		}
	})
	for name, files := range map[string][]sandbox.File{
		"handler": file("main.py", evilPython), "module": append(file("main.py", "import lib.mod\n"), file("lib/mod.py", evilPython)...),
	} {
		if _, err := fs.PutFunction(t.Context(), sandbox.FunctionOptions{Name: name, Language: "python", Handler: "main.handler", Files: files}, sandbox.Local{}); err != nil {
			t.Fatal(err)
		}
		if _, err := fs.InvokeFunction(t.Context(), sandbox.Invocation{Function: name}, sandbox.Local{}); !errors.Is(err, sandbox.Denied) {
			t.Errorf("%s of a function: %v", name, err)
		}
		if err := fs.RemoveFunction(t.Context(), name); err != nil {
			t.Error(err)
		}
	}
}

// functionSandboxes are what functions run in here.
type functionSandboxes struct{ *manager.Manager }

func (s functionSandboxes) CreateSession(ctx context.Context, o sandbox.SessionOptions, _ sandbox.Local) (sandbox.Session, error) {
	return s.Manager.CreateSession(ctx, o)
}

func (s functionSandboxes) Exec(ctx context.Context, session string, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error) {
	return s.ExecIn(ctx, session, run, streams)
}

// leavesBehind is what a run can leave that later ones would pick up.
const leavesBehind = `
import os, pathlib, py_compile
evil = "print('EVIL')\n"
mod = pathlib.Path('mod.py')
mod.write_text(evil + 'x = 1\n')
py_compile.compile('mod.py', invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
mod.write_text('x = 1\n')
site = pathlib.Path(os.path.expanduser('~/.local/lib/python3.11/site-packages'))
site.mkdir(parents=True)
for name in ('usercustomize.py', 'sitecustomize.py', 'mod.py'):
    (site / name).write_text(evil)
(site / 'x.pth').write_text("import sys; print('EVIL')\n")
for name in ('.bashrc', '.profile', '.bash_profile', '.bash_login', '.shrc', '.pythonrc', '.pythonrc.py'):
    pathlib.Path(os.path.expanduser('~/' + name)).write_text("echo EVIL\n")
`

// What an approved run left in the caches of the workspace and in the home
// folder does not get into those that come after it.
func TestLeftBehind(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "python")
	f := p.session(t, "left", "python")
	write(t, f, "main.py", "import mod\nprint('good', mod.x)\n")
	write(t, f, "run.sh", "python3 -c 'print(\"good\", 1)'\n")
	leave := sandbox.Run{Code: leavesBehind, Approve: sandbox.ApproveAlways}
	if res, err := p.ExecIn(t.Context(), "left", leave, sandbox.Streams{}); err != nil || res.Code != 0 {
		t.Fatalf("%v, %d %s", err, res.Code, res.Stderr)
	}
	for name, run := range map[string]sandbox.Run{
		"a file":      {File: "main.py"},
		"code":        {Code: "import mod\nprint('good', mod.x)\n"},
		"a command":   {Command: []string{"python3", "main.py"}},
		"by a script": {Command: []string{"bash", "run.sh"}},
		"by a shell":  {Command: []string{"sh", "-c", "python3 -c 'print(\"good\", 1)'"}},
	} {
		if res, err := p.ExecIn(t.Context(), "left", run, sandbox.Streams{}); err != nil || string(res.Stdout) != "good 1\n" {
			t.Errorf("%s: %v, %q %s", name, err, res.Stdout, res.Stderr)
		}
	}
	for name, run := range map[string]sandbox.Run{
		"bytecode":       {Command: []string{"sh", "-c", "python3 main.py"}},
		"a login shell":  {Command: []string{"bash", "-lc", "true"}},
		"a shell for me": {Command: []string{"bash", "-ic", "true"}},
	} {
		if res, err := p.ExecIn(t.Context(), "left", run, sandbox.Streams{}); !errors.Is(err, sandbox.Denied) {
			t.Errorf("%s: %v, %q", name, err, res.Stdout)
		}
	}
}

// The same for what Node loads.
func TestSwappedModuleOfNode(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "node")
	f := p.session(t, "node", "node")
	for name, swapped := range map[string]string{"the program": "main.js", "its module": "mod.js", "a package": "node_modules/lib/index.js"} {
		write(t, f, "main.js", "if (0 > 1) require('fs').readFileSync('/etc/shadow')\nconsole.log('good', require('./mod').x, require('lib').y)\n")
		write(t, f, "mod.js", "exports.x = 1\n")
		if err := f.Mkdir(t.Context(), "node_modules/lib", 0o755); err != nil && !errors.Is(err, sandbox.Conflict) {
			t.Fatal(err)
		}
		write(t, f, "node_modules/lib/index.js", "exports.y = 2\n")
		ask := asksThen(func() { write(t, f, swapped, "console.log('EVIL')\n") })
		res, err := p.ExecIn(t.Context(), "node", sandbox.Run{File: "main.js"}, sandbox.Streams{Local: sandbox.Local{Ask: ask}})
		if err != nil || string(res.Stdout) != "good 1 2\n" || res.Decision.Approval == nil {
			t.Errorf("%s: %v, %q %q, %+v", name, err, res.Stdout, res.Stderr, res.Decision)
		}
	}
}

// Modules of both kinds run as they are, and by their own names.
func TestModulesOfNode(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "node")
	f := p.session(t, "kinds", "node")
	for name, text := range map[string]string{
		"a.cjs": "const {x} = require('./c.cjs')\nimport('./b.mjs').then(b => console.log('good', x, b.y, __filename))\n", "c.cjs": "exports.x = 1\n",
		"a.mjs": "import {y} from './b.mjs'\nconsole.log('good', 1, y, import.meta.url.slice(7))\n", "b.mjs": "export const y = 2\n",
	} {
		write(t, f, name, text)
	}
	if err := f.Mkdir(t.Context(), "es", 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, f, "es/package.json", `{"type": "module"}`)
	write(t, f, "es/a.js", "import {y} from '../b.mjs'\nconsole.log('good', 1, y, import.meta.url.slice(7))\n")
	for _, name := range []string{"a.cjs", "a.mjs", "es/a.js"} {
		res, err := p.ExecIn(t.Context(), "kinds", sandbox.Run{File: name}, sandbox.Streams{})
		if want := "good 1 2 /workspace/" + name + "\n"; err != nil || string(res.Stdout) != want {
			t.Errorf("%s: %v, %q %s", name, err, res.Stdout, res.Stderr)
		}
	}
}

package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/sandbox"
)

// tmuxPane is a real terminal.
type tmuxPane struct {
	socket string
	env    []string
}

// newPane is one with a shell in it, whose prompt is "host> ", for caisson at base.
func newPane(t *testing.T, kit *enginetest.Kit, base, cols, rows string) *tmuxPane {
	t.Helper()
	p := &tmuxPane{socket: base + "/tmux", env: append(os.Environ(), "CAISSON_AGENT="+kit.Agent, "CAISSON_SCAN="+enginetest.Scanner(t),
		"CAISSON_RUNTIME_DIR="+base+"/s", "CAISSON_STATE_DIR="+base+"/state", "TMUX=", "LC_ALL=C.UTF-8")}
	p.tmux(t, "new-session", "-d", "-x", cols, "-y", rows, "sh")
	t.Cleanup(func() { p.tmux(t, "kill-server") })
	p.types(t, "PS1='host> '; alias caisson="+enginetest.Command(t)+"; clear", "Enter")
	p.shows(t, `(?m)^host> ?$`)
	return p
}

func (p *tmuxPane) tmux(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "tmux", append([]string{"-S", p.socket, "-f", "/dev/null"}, args...)...)
	cmd.Env = p.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("tmux %q: %v\n%s", args, err, out)
	}
	return string(out)
}

func (p *tmuxPane) types(t *testing.T, keys ...string) {
	t.Helper()
	p.tmux(t, append([]string{"send-keys"}, keys...)...)
}

// shows waits until the screen matches what, and returns what the first group is.
func (p *tmuxPane) shows(t *testing.T, what string) string {
	t.Helper()
	screen := ""
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		screen = p.tmux(t, "capture-pane", "-p", "-J")
		if m := regexp.MustCompile(what).FindStringSubmatch(screen); m != nil {
			return m[len(m)-1]
		}
	}
	t.Fatalf("it never shows %s:\n%s", what, screen)
	return ""
}

// TestExecInATerminal is a person's: a shell of a session in a real terminal, its
// size, Ctrl-C, leaving it, coming back, the exit code; and a run of its own.
func TestExecInATerminal(t *testing.T) {
	t.Parallel()
	enginetest.Tool(t, "tmux", "tmux")
	kit, base := place(t)
	kit.Image(t, "shell")
	p := newPane(t, kit, base, "110", "30")
	p.types(t, "caisson session create work", "Enter")
	p.shows(t, `(?m)^work$`)
	cast := base + "/x.cast"
	p.types(t, "clear; caisson exec -it work --record "+cast+" -- bash --norc", "Enter")
	p.shows(t, `(?m)^bash-[0-9.]+\$ ?$`)
	p.types(t, "stty size", "Enter")
	p.shows(t, `(?m)^30 110$`)
	p.tmux(t, "resize-window", "-x", "90", "-y", "25")
	p.types(t, "until test \"$(stty size)\" = '25 90'; do :; done; echo now $(stty size)", "Enter")
	p.shows(t, `(?m)^now 25 90$`)
	p.types(t, "echo waits; sleep 600", "Enter")
	p.shows(t, `(?m)^waits$`)
	p.types(t, "C-c", "")
	p.types(t, "echo code $?; left=behind", "Enter")
	p.shows(t, `(?m)^code 130$`)
	p.types(t, "C-p", "C-q")
	id := p.shows(t, `it goes on; come back with: caisson attach work ([0-9a-f]+)`)
	p.types(t, "clear; caisson attach work "+id, "Enter")
	p.shows(t, `(?m)^code 130$`) // as it was left
	p.types(t, "echo $left; exit 7", "Enter")
	p.shows(t, `(?m)^behind$`)
	p.shows(t, `(?m)^exit\nhost> ?$`)
	p.types(t, "echo ended with $?", "Enter")
	p.shows(t, `(?m)^ended with 7$`)
	p.types(t, "clear; caisson run -it -- sh -c 'echo say; read x; echo got $x; exit 5'; echo then $?; caisson session list", "Enter")
	p.shows(t, `(?m)^say$`)
	p.types(t, "typed", "Enter")
	p.shows(t, `(?m)^got typed$`)
	if list := p.shows(t, `(?ms)^then 5$(.*work.*)host>`); strings.Contains(list, "run-") {
		t.Errorf("its session stays:\n%s", list)
	}
	p.types(t, "clear; caisson run -it -- sh -c 'echo stays; sleep 600'", "Enter")
	p.shows(t, `(?m)^stays$`)
	p.types(t, "C-p", "C-q")
	own := p.shows(t, `it goes on; come back with: caisson attach (run-\S+)`)
	p.types(t, "clear; caisson run -- echo another; caisson ps", "Enter")
	p.shows(t, `(?ms)^another$.*^`+own+` .* running `)
	p.types(t, "clear; caisson session rm --force "+own+" work && echo removed", "Enter")
	p.shows(t, `(?m)^removed$`)
	b, err := os.ReadFile(cast)
	if err != nil {
		t.Fatal(err)
	}
	head, events, _ := strings.Cut(string(b), "\n")
	if !json.Valid([]byte(head)) || !strings.Contains(head, `"height":30`) || !strings.Contains(events, `now 25 90`) || !strings.Contains(events, `"r","90x25"]`) {
		t.Errorf("the recording: %s\n%s", head, events)
	}
}

// TestJudgeBehindTheTerminal leaves a terminal in which starts are judged: a process
// stays behind that judges on, until what runs there ends.
func TestJudgeBehindTheTerminal(t *testing.T) {
	t.Parallel()
	enginetest.Tool(t, "tmux", "tmux")
	kit, base := place(t)
	p := newPane(t, kit, base, "110", "30")
	p.types(t, "export CAISSON_STARTS=judge CAISSON_ON_DENIED_START=fail; caisson session create work", "Enter")
	p.shows(t, `(?m)^work$`)
	p.types(t, "clear; caisson exec -it work -- bash --norc", "Enter")
	p.shows(t, `(?m)^bash-[0-9.]+\$ ?$`)
	p.types(t, "/usr/bin/env -u A echo judged", "Enter")
	p.shows(t, `(?m)^judged$`)
	p.types(t, "C-p", "C-q")
	id := p.shows(t, `it goes on; come back with: caisson attach work ([0-9a-f]+)`)
	if !behind(base) {
		t.Error("nobody stays behind")
	}
	p.types(t, "clear; caisson attach work "+id, "Enter")
	p.shows(t, `(?m)^judged$`) // as it was left
	p.types(t, "/usr/bin/env -u B echo judged again; /bin/rm -rf --no-preserve-root /; echo code $?; exit 7", "Enter")
	p.shows(t, `(?m)^judged again$`)
	p.shows(t, `(?m)^code 126$`)
	p.shows(t, `(?m)^exit\nhost> ?$`)
	until(t, "nobody stays", func() bool { return !behind(base) })
	var v sandbox.SessionView
	if err := json.Unmarshal([]byte(said(t, kit, base, "session", "show", "work", "--json")), &v); err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, s := range v.Execs[0].Starts {
		told = append(told, path.Base(s.Path)+" "+string(s.Verdict))
	}
	if got := strings.Join(told, ", "); v.Execs[0].StartsUnjudged != 0 || got != "env allow, echo allow, env allow, echo allow, rm deny" {
		t.Errorf("told %s", got)
	}
	said(t, kit, base, "session", "rm", "work", "--force")
}

// TestJudgeBehindAClosedTerminal closes one: what runs there goes on, and so does judging.
func TestJudgeBehindAClosedTerminal(t *testing.T) {
	t.Parallel()
	enginetest.Tool(t, "tmux", "tmux")
	kit, base := place(t)
	p := newPane(t, kit, base, "110", "30")
	p.types(t, "export CAISSON_STARTS=judge; caisson session create work", "Enter")
	p.shows(t, `(?m)^work$`)
	const text = "trap : HUP; echo in; echo side; while [ ! -e go ]; do read -t 0.1 x <> /dev/zero; done; until /usr/bin/env -u A true; do read -t 0.1 x <> /dev/zero; done; exit 7"
	p.types(t, "clear; caisson exec -it work -- bash -c '"+text+"'", "Enter")
	p.shows(t, `(?m)^side$`)
	p.tmux(t, "new-window")
	p.tmux(t, "kill-window", "-t", "0")
	until(t, "a process stays behind", func() bool { return behind(base) })
	said(t, kit, base, "exec", "work", "--", "touch", "go")
	until(t, "nobody stays", func() bool { return !behind(base) })
	var v sandbox.SessionView
	if err := json.Unmarshal([]byte(said(t, kit, base, "session", "show", "work", "--json")), &v); err != nil {
		t.Fatal(err)
	}
	if e := v.Execs[0]; e.Exit.Code != 7 || len(e.Starts) < 2 || e.Starts[len(e.Starts)-1].Verdict != sandbox.Allow {
		t.Errorf("%+v, told %+v", e.Exit, e.Starts)
	}
	said(t, kit, base, "session", "rm", "work", "--force")
}

// TestTerminalElsewhere leaves a terminal here and comes back to it through a server, as
// from another machine: it goes on as it was, another watches, and only one types.
func TestTerminalElsewhere(t *testing.T) {
	t.Parallel()
	enginetest.Tool(t, "tmux", "tmux")
	kit, base := place(t)
	kit.Image(t, "shell")
	local := "unix://" + base + "/srv.sock"
	server := start(t, kit, base, "serve", "--listen", local)
	server.await(t, local)
	p := newPane(t, kit, base, "100", "30")
	p.types(t, "caisson session create work && caisson exec -it work -- bash --norc", "Enter")
	p.shows(t, `(?m)^bash-[0-9.]+\$ ?$`)
	p.types(t, "left=behind; echo waits", "Enter")
	p.shows(t, `(?m)^waits$`)
	p.types(t, "C-p", "C-q")
	id := p.shows(t, `come back with: caisson attach work ([0-9a-f]+)`)
	p.types(t, "clear; export CAISSON_HOST="+local+"; caisson attach work "+id, "Enter")
	p.shows(t, `(?m)^waits$`) // as it was left
	p.types(t, "echo $left here", "Enter")
	p.shows(t, `(?m)^behind here$`)

	watcher := start(t, kit, base, "--host", local, "attach", "work", id, "--watch")
	for line := ""; !strings.Contains(line, "behind here"); {
		var err error
		if line, err = watcher.out.ReadString('\n'); err != nil {
			t.Fatalf("who watches: %v", err)
		}
	}
	second := start(t, kit, base, "--host", local, "attach", "work", id, "--input")
	if code := second.code(t); code != 122 || !strings.Contains(second.errs.String(), "somebody else types") || !strings.Contains(second.errs.String(), "--watch") {
		t.Errorf("a second who types: code %d, %s", code, second.errs)
	}
	p.tmux(t, "resize-window", "-x", "90", "-y", "25")
	p.types(t, "until test \"$(stty size)\" = '25 90'; do :; done; echo now $(stty size); exit 7", "Enter")
	p.shows(t, `(?m)^now 25 90$`)
	p.shows(t, `(?m)^exit\nhost> ?$`)
	p.types(t, "echo ended with $?", "Enter")
	p.shows(t, `(?m)^ended with 7$`)
	if rest, err := io.ReadAll(watcher.out); err != nil || !strings.Contains(string(rest), "now 25 90") {
		t.Errorf("who watches sees %q, %v", rest, err)
	}
	if code := watcher.code(t); code != 7 {
		t.Errorf("who watches ends with %d", code)
	}
	p.types(t, "clear; caisson exec -it work -- sh -c 'stty size; exit 3'; echo then $?", "Enter")
	p.shows(t, `(?ms)^25 90$.*^then 3$`)
	said(t, kit, base, "session", "rm", "work", "--force")
	if err := server.Process.Signal(syscall.SIGTERM); err != nil || server.code(t) != 0 {
		t.Errorf("the server: %v, %s", err, server.errs)
	}
}

// TestTerminalClosed closes the terminal that a run of its own is in: its session goes.
func TestTerminalClosed(t *testing.T) {
	t.Parallel()
	enginetest.Tool(t, "tmux", "tmux")
	kit, base := place(t)
	p := &tmuxPane{socket: base + "/tmux", env: append(os.Environ(), "CAISSON_AGENT="+kit.Agent, "CAISSON_SCAN="+enginetest.Scanner(t),
		"CAISSON_RUNTIME_DIR="+base+"/s", "CAISSON_STATE_DIR="+base+"/state", "TMUX=", "LC_ALL=C.UTF-8")}
	p.tmux(t, "new-session", "-d", "-x", "110", "-y", "30", "sh")
	t.Cleanup(func() { p.tmux(t, "kill-server") })
	p.types(t, enginetest.Command(t)+" run -it -- sh -c 'echo in; echo side; read x'", "Enter")
	p.shows(t, `(?m)^side$`)
	if list := said(t, kit, base, "session", "list"); !strings.Contains(list, "run-") {
		t.Fatalf("it has no session: %s", list)
	}
	p.tmux(t, "new-window")
	p.tmux(t, "kill-window", "-t", "0")
	until(t, "its session is gone", func() bool {
		return !strings.Contains(said(t, kit, base, "session", "list"), "run-") && len(sandboxes(base)) == 0
	})
}

// TestTerminalsDenied has a setting forbid terminals, wherever one is asked for.
func TestTerminalsDenied(t *testing.T) {
	t.Parallel()
	kit, base := place(t)
	settings, err := os.ReadFile("../../policies/data/settings.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(base+"/policy", 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		base + "/policy/settings.yaml": strings.Replace(string(settings), "terminals: allow", "terminals: deny", 1),
		base + "/caisson.yaml":         "version: 1\ndefaults:\n  policy-data: " + base + "/policy\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	said(t, kit, base, "session", "create", "work")
	with := []string{"--config", base + "/caisson.yaml"}
	for _, args := range [][]string{{"exec", "--tty", "work", "--", "echo", "shown"}, {"run", "--tty", "--approve", "always", "--", "echo", "shown"}} {
		p := start(t, kit, base, append(with, args...)...)
		if code := p.code(t); code != 126 || !strings.Contains(p.errs.String(), "SBX-GATE-0008") {
			t.Errorf("%q: code %d, %s", args, code, p.errs)
		}
	}
	if out := said(t, kit, base, append(with, "exec", "work", "--", "echo", "without one")...); out != "without one" {
		t.Errorf("without a terminal: %q", out)
	}
	if out := said(t, kit, base, "exec", "--tty", "work", "--", "echo", "shown"); !strings.Contains(out, "shown") {
		t.Errorf("where it is not forbidden: %q", out)
	}
	if list := said(t, kit, base, "session", "list"); strings.Contains(list, "run-") {
		t.Errorf("the session of a refused run stays: %s", list)
	}
	said(t, kit, base, "session", "rm", "work")
}

// TestBatchInATerminal shows how far a batch is, and takes that away at its end.
func TestBatchInATerminal(t *testing.T) {
	t.Parallel()
	enginetest.Tool(t, "tmux", "tmux")
	kit, base := place(t)
	if err := os.WriteFile(base+"/runs.jsonl", []byte(`{"code": "true"}`+"\n"+`{"code": "sleep 600"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := newPane(t, kit, base, "100", "30")
	p.types(t, "caisson run --batch "+base+"/runs.jsonl -l shell --workers 1 --timeout 10m --output "+base+"/out", "Enter")
	p.shows(t, `1 of 2`)
	p.types(t, "C-c")
	p.shows(t, `(?m)^caisson: canceled\s+^host> ?$`)
	if screen := p.tmux(t, "capture-pane", "-p", "-J"); strings.Contains(screen, "of 2") {
		t.Errorf("the bar is left:\n%s", screen)
	}
}

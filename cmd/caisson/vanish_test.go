package main

import (
	"archive/tar"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/coder/websocket"

	"github.com/caisson-dev/caisson/api/wire"
	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/sandbox"
)

// left is a server that its clients leave. Ann may have five execs at once, four of
// which go on for as long as it is tested, and one sandbox beside her session's.
type left struct {
	kit           *enginetest.Kit
	base, address string
	ann, bob      string // tokens
	server        *process
	local         string                // its address where everybody is the local user
	stay          []sandbox.ID          // execs that go on: one that prints, a terminal, one that listens, a shell
	executions    map[string]sandbox.ID // by label
}

const work, shell = "/v1/sessions/work", "/v1/sessions/work/shells/sh"

// listens answers on a port for as long as it is heard, and notes who left.
const listens = `use IO::Socket::INET; $SIG{CHLD} = $SIG{PIPE} = "IGNORE";
my $all = IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => 8000, Listen => 9) or die $!;
open my $left, ">>", "left" or die $!;
syswrite $left, "it listens\n";
while (my $one = $all->accept) {
	next if fork;
	my $asked = <$one>;
	while (<$one>) { last if $_ eq "\r\n" }
	syswrite $one, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
	while (syswrite $one, "data: line\n\n") { select undef, undef, undef, 0.1 }
	syswrite $left, $asked;
	exit;
}`

func leave(t *testing.T) *left {
	t.Helper()
	kit, base := place(t)
	kit.Image(t, "python")
	config := base + "/caisson.yaml"
	if err := os.WriteFile(config, []byte("version: 1\nquotas:\n  wait: 1m\n  default: {execs: 5, sandboxes: 2}\n  owners:\n    bob: {execs: 1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &left{kit: kit, base: base, local: "unix://" + base + "/srv.sock", executions: map[string]sandbox.ID{}}
	s.server = start(t, kit, base, "--config", config, "serve", "--listen", s.local, "--listen", "127.0.0.1:0")
	s.server.await(t, s.local)
	line, err := s.server.out.ReadString('\n')
	if err != nil {
		t.Fatalf("%v; %s", err, s.server.errs)
	}
	s.address = strings.TrimSpace(line)
	for owner, token := range map[string]*string{"ann": &s.ann, "bob": &s.bob} {
		all := said(t, kit, base, "token", "create", "--owner", owner)
		*token = all[strings.LastIndex(all, "\n")+1:]
	}
	s.asks(t, "POST", "/v1/sessions", map[string]any{"name": "work", "language": "shell"}, nil)
	for _, run := range []map[string]any{
		{"command": []string{"sh", "-c", "while :; do echo line; sleep 0.2; done"}},
		{"command": []string{"sh"}, "terminal": map[string]int{"rows": 24, "cols": 80}},
		{"command": []string{"perl", "-e", listens}, "approve": "always"},
	} {
		var e sandbox.ExecRecord
		s.asks(t, "POST", work+"/execs/background", run, &e)
		s.stay = append(s.stay, e.ID)
	}
	var sh sandbox.Shell
	s.asks(t, "POST", work+"/shells", map[string]any{"name": "sh"}, &sh)
	s.stay = append(s.stay, sh.ExecID)
	s.asks(t, "POST", work+"/execs", map[string]any{"command": []string{"sh", "-c", "echo as it was > kept; truncate -s 200M large"}}, nil)
	until(t, "a program listens", func() bool { return s.content(t, "left") != "" })
	return s
}

// asks makes a call in ann's name that goes well.
func (s *left) asks(t *testing.T, method, path string, in, out any) {
	t.Helper()
	if code := ask(t, s.address, method, path, s.ann, in, out); code < 200 || code > 299 {
		t.Fatalf("%s %s: %d; %s", method, path, code, s.server.errs)
	}
}

// events are those of one kind about runs with a label.
func (s *left) events(t *testing.T, kind, label string) []sandbox.Event {
	t.Helper()
	var list struct{ Items []sandbox.Event }
	if code := ask(t, s.local, "GET", "/v1/audit?kind="+kind+"&label="+url.QueryEscape("vanish="+label), "", nil, &list); code != http.StatusOK {
		t.Fatal(code)
	}
	return list.Items
}

func (s *left) begun(t *testing.T, label string) {
	t.Helper()
	until(t, label+" begins", func() bool { return len(s.events(t, sandbox.EventExecStarted, label)) > 0 })
}

// ended waits for the end of a run, which was given up.
func (s *left) ended(t *testing.T, label string) {
	t.Helper()
	var ends []sandbox.Event
	until(t, label+" ends", func() bool { ends = s.events(t, sandbox.EventExecEnded, label); return len(ends) > 0 })
	var exit sandbox.Exit
	if err := json.Unmarshal(ends[0].Data, &exit); err != nil || exit.Reason != sandbox.ReasonCanceled || len(ends) != 1 {
		t.Errorf("%d ends, %s, %v", len(ends), ends[0].Data, err)
	}
}

// questions is how many ann is asked.
func (s *left) questions(t *testing.T) int {
	t.Helper()
	var list struct{ Items []sandbox.Approval }
	s.asks(t, "GET", "/v1/approvals?state=pending", nil, &list)
	return len(list.Items)
}

// content is that of a file in the session, "" where there is none.
func (s *left) content(t *testing.T, name string) string {
	t.Helper()
	var res sandbox.Result
	s.asks(t, "POST", work+"/execs", map[string]any{"command": []string{"sh", "-c", "if test -e \"$1\"; then cat \"$1\"; fi", "sh", name}}, &res)
	return string(res.Stdout)
}

// goesOn sees that what is not a client's alone goes on, that no sandbox is left, and
// that ann has her last place.
func (s *left) goesOn(t *testing.T) {
	t.Helper()
	until(t, "no sandbox is left but the session's", func() bool { return len(sandboxes(s.base)) == 1 })
	s.asks(t, "POST", "/v1/runs", map[string]any{"command": []string{"true"}}, nil)
	var list struct{ Items []sandbox.ExecRecord }
	s.asks(t, "GET", "/v1/execs?running=true", nil, &list)
	var running []sandbox.ID
	for _, e := range list.Items {
		running = append(running, e.ID)
	}
	slices.Sort(running)
	if stay := slices.Sorted(slices.Values(s.stay)); !slices.Equal(running, stay) {
		t.Errorf("%v run, not %v", running, stay)
	}
}

// sockets are those that the server has open, and of them the connections to its own
// addresses.
func (s *left) sockets(t *testing.T) (all, clients []string) {
	t.Helper()
	proc := fmt.Sprintf("/proc/%d/", s.server.Process.Pid)
	table := func(name string) []string {
		b, err := os.ReadFile(proc + "net/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(string(b), "\n")[1:]
	}
	_, port, _ := strings.Cut(s.address[strings.Index(s.address, "//")+2:], ":")
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	ours := map[string]bool{}
	for _, line := range table("tcp") {
		if f := strings.Fields(line); len(f) > 9 && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", number)) && f[3] != "0A" { // 0A listens
			ours["socket:["+f[9]+"]"] = true
		}
	}
	for _, line := range table("unix") {
		if f := strings.Fields(line); len(f) > 7 && f[7] == strings.TrimPrefix(s.local, "unix://") && f[5] == "03" { // 03 is connected
			ours["socket:["+f[6]+"]"] = true
		}
	}
	list, err := os.ReadDir(proc + "fd/")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		name, err := os.Readlink(proc + "fd/" + f.Name())
		if err != nil || !strings.HasPrefix(name, "socket:") { // it may be closed by now
			continue
		}
		if all = append(all, name); ours[name] {
			clients = append(clients, name)
		}
	}
	return all, clients
}

// noneLeft ends the server by a signal at which it tells what its goroutines do.
func (s *left) noneLeft(t *testing.T) {
	t.Helper()
	if err := s.server.Process.Signal(syscall.SIGABRT); err != nil {
		t.Fatal(err)
	}
	s.server.code(t)
	all := s.server.errs.String()
	if !strings.Contains(all, "api/listen.(*Sockets).Serve") {
		t.Fatalf("it does not tell: %s", all)
	}
	for goroutine := range strings.SplitSeq(all, "\n\n") {
		if head, _, _ := strings.Cut(goroutine, "\n"); strings.Contains(head, "[runnable]") || strings.Contains(head, "[running]") {
			continue // who is left behind waits; this one is on its way out
		}
		if strings.Contains(goroutine, "/api/server.") || strings.Contains(goroutine, "net/http.(*conn)") {
			t.Errorf("somebody is still answered:\n%s", goroutine)
		}
	}
}

// lasting is a run that goes on until it is ended, in JSON; more changes it.
func lasting(t *testing.T, label string, more map[string]any) io.Reader {
	run := map[string]any{"language": "shell", "code": "echo begun; sleep 600", "labels": map[string]string{"vanish": label}, "timeout_ms": 600000}
	maps.Copy(run, more)
	return encoded(t, run)
}

// departure is one state in which a client leaves.
type departure struct {
	// comes brings a client into the state.
	comes func(t *testing.T, s *left, l *leaver, label string)
	// then looks at what became of it; nil where nothing was to end.
	then func(t *testing.T, s *left, label string)
}

// TestVanish has clients vanish in every state: what runs for them alone ends, all
// else goes on, and nothing is left of them.
func TestVanish(t *testing.T) {
	t.Parallel()
	s := leave(t)
	all := map[string]departure{}
	for _, some := range []map[string]departure{runsLeft(), streamsLeft(), filesLeft()} {
		maps.Copy(all, some)
	}
	var open int
	rounds := 2
	if enginetest.Soaking() {
		rounds = 20
	}
	for round := range rounds {
		if round == 1 { // what a server opens once is open by now
			all, _ := s.sockets(t)
			open = len(all)
		}
		for _, name := range slices.Sorted(maps.Keys(all)) {
			label := fmt.Sprintf("%s-%d", strings.ReplaceAll(name, " ", "-"), round)
			l := newLeaver(s.address, s.ann)
			all[name].comes(t, s, l, label)
			l.cut(round%2 == 1) // in their order, or by a reset
			if then := all[name].then; then != nil {
				then(t, s, label)
			}
			if s.goesOn(t); t.Failed() {
				t.Fatalf("this was %s", label)
			}
		}
	}
	until(t, "the connections are closed", func() bool {
		all, clients := s.sockets(t)
		return len(clients) == 0 && len(all) <= open
	})
	s.noneLeft(t)
	said(t, s.kit, s.base, "session", "rm", "--force", "ann~work")
}

const inEvents = "text/event-stream"

// runsLeft are those who wait for what runs for them.
func runsLeft() map[string]departure {
	ends := func(t *testing.T, s *left, label string) { t.Helper(); s.ended(t, label) }
	waits := func(path string, more map[string]any) func(*testing.T, *left, *leaver, string) {
		return func(t *testing.T, s *left, l *leaver, label string) {
			l.waitsFor(t, "POST", path, lasting(t, label, more))
			s.begun(t, label)
		}
	}
	first := &leaver{}
	return map[string]departure{
		"one run": {waits("/v1/runs", nil), ends},
		"an exec": {waits(work+"/execs", nil), ends},
		"a shell's run": {func(t *testing.T, s *left, l *leaver, label string) {
			l.waitsFor(t, "POST", shell+"/run", encoded(t, map[string]any{"text": "echo begun; sleep 600", "labels": map[string]string{"vanish": label}, "timeout_ms": 600000}))
			s.begun(t, label)
		}, ends},
		"a shell's prompt": {func(t *testing.T, s *left, l *leaver, label string) {
			l.waitsFor(t, "POST", shell+"/run", encoded(t, map[string]any{"text": "read x", "until": []string{"never"}, "labels": map[string]string{"vanish": label}, "timeout_ms": 600000}))
			s.begun(t, label)
		}, ends},
		"output of one run": {func(t *testing.T, _ *left, l *leaver, label string) {
			l.reads(t, "POST", "/v1/runs", inEvents, lasting(t, label, nil), "begun")
		}, ends},
		"output that nobody reads": {func(t *testing.T, _ *left, l *leaver, label string) {
			l.reads(t, "POST", "/v1/runs", inEvents, lasting(t, label, map[string]any{"code": "echo begun; yes", "output_max_bytes": 1 << 40}), "begun")
		}, ends},
		"a question": {func(t *testing.T, s *left, l *leaver, label string) {
			l.waitsFor(t, "POST", "/v1/runs", lasting(t, label, map[string]any{"code": "", "command": []string{"env"}, "env": []string{"SEEN=" + label}, "approve": "ask"}))
			until(t, label+" is asked about", func() bool { return s.questions(t) == 1 })
		}, func(t *testing.T, s *left, label string) {
			until(t, "nobody is asked any more", func() bool { return s.questions(t) == 0 })
			if n := len(s.events(t, sandbox.EventExecStarted, label)); n > 0 {
				t.Error("it began")
			}
		}},
		"a batch": {func(t *testing.T, _ *left, l *leaver, label string) {
			l.reads(t, "POST", "/v1/batches?workers=1", "", io.MultiReader(lasting(t, label, map[string]any{"code": "echo first"}), strings.NewReader("\n"), lasting(t, label+"-next", nil)), "first")
		}, func(t *testing.T, s *left, label string) {
			if n := len(s.events(t, sandbox.EventExecStarted, label+"-next")); n > 0 {
				s.ended(t, label+"-next")
			}
		}},
		"tests": {func(t *testing.T, s *left, l *leaver, _ string) {
			l.waitsFor(t, "POST", "/v1/tests", strings.NewReader(`{"language": "shell", "solution": "sleep 600", "cases": [{"input": "1", "expected": "2"}]}`))
			until(t, "it has a sandbox", func() bool { return len(sandboxes(s.base)) == 2 })
		}, nil},
		"a line": {func(t *testing.T, s *left, l *leaver, label string) {
			first.cut(false) // that of the round before
			first, l.token = newLeaver(s.address, s.bob), s.bob
			first.waitsFor(t, "POST", "/v1/runs", lasting(t, label+"-first", nil))
			s.begun(t, label+"-first")
			l.waitsFor(t, "POST", "/v1/runs", lasting(t, label, nil))
		}, func(t *testing.T, s *left, label string) {
			first.cut(true)
			if code := ask(t, s.address, "POST", "/v1/runs", s.bob, map[string]any{"command": []string{"true"}}, nil); code != http.StatusOK {
				t.Errorf("the next in line: %d", code)
			}
			s.ended(t, label+"-first")
			if n := len(s.events(t, sandbox.EventExecStarted, label)); n > 0 {
				t.Error("it began")
			}
		}},
		"a function": {func(t *testing.T, s *left, l *leaver, _ string) {
			s.asks(t, "POST", "/v1/functions", map[string]any{"name": "slow", "handler": "main.handler", "language": "python", "timeout_ms": 600000, "files": []map[string]string{
				{"path": "main.py", "data_base64": base64.StdEncoding.EncodeToString([]byte("import time\ndef handler(event, context):\n    open('/workspace/begun', 'w')\n    time.sleep(600)\n"))},
			}}, nil)
			l.waitsFor(t, "POST", "/v1/functions/invoke", encoded(t, map[string]any{"function": "slow"}))
			until(t, "it has a sandbox", func() bool { return len(sandboxes(s.base)) == 2 })
		}, func(t *testing.T, s *left, _ string) { s.asks(t, "DELETE", "/v1/functions/slow", nil, nil) }},
	}
}

// streamsLeft are those who follow what goes on without them.
func streamsLeft() map[string]departure {
	follows := func(path, text string) departure {
		return departure{comes: func(t *testing.T, s *left, l *leaver, _ string) {
			l.reads(t, "GET", strings.Replace(path, "EXEC", string(s.stay[0]), 1), inEvents, nil, text)
		}}
	}
	told := func(t *testing.T, s *left, label string) {
		t.Helper()
		until(t, "the program inside is told", func() bool { return strings.Contains(s.content(t, "left"), "GET /"+label+" ") })
	}
	return map[string]departure{
		"output":  follows(work+"/execs/EXEC/output?follow=true", "line"),
		"events":  follows("/v1/events", ""),
		"changes": follows("/v1/changes", ""),
		"a watch": follows(work+"/files/watch?recursive=true", ""),
		"an execution": {func(t *testing.T, s *left, l *leaver, label string) {
			run := map[string]any{"session": "work", "command": []string{"sh", "-c", "until test -e $0; do sleep 0.1; done; echo done", label}, "labels": map[string]string{"vanish": label}}
			var e sandbox.Execution
			s.asks(t, "POST", "/v1/executions", map[string]any{"run": run}, &e)
			s.executions[label] = e.ID
			l.waitsFor(t, "GET", "/v1/executions/"+string(e.ID)+"?wait=10m", nil)
			s.begun(t, label)
		}, func(t *testing.T, s *left, label string) {
			s.asks(t, "POST", work+"/files/mkdir?path="+label, nil, nil)
			var e sandbox.Execution
			s.asks(t, "GET", "/v1/executions/"+string(s.executions[label])+"?wait=10m", nil, &e)
			if e.State != sandbox.ExecutionSucceeded || string(e.Result.Stdout) != "done\n" {
				t.Errorf("%+v", e)
			}
		}},
		"a preview": {func(t *testing.T, _ *left, l *leaver, label string) {
			l.reads(t, "GET", work+"/ports/8000/"+label, inEvents, nil, "data: line")
		}, told},
		"a port": {func(t *testing.T, _ *left, l *leaver, label string) {
			ws, err := l.joins(t, work+"/ports/8000", nil, "")
			if err == nil {
				err = ws.Write(t.Context(), websocket.MessageBinary, []byte("GET /"+label+" HTTP/1.1\r\n\r\n"))
			}
			if err == nil {
				err = hears(t.Context(), ws, "data: line")
			}
			if err != nil {
				t.Fatal(err)
			}
		}, told},
		"input": {func(t *testing.T, _ *left, l *leaver, label string) {
			run := sandbox.Run{Language: "shell", Code: "echo begun; cat", Labels: sandbox.Labels{"vanish": label}}
			if _, err := l.joins(t, wire.ConnectPath, &wire.Begin{Session: "work", Run: &run, Stdin: true, Stdout: true}, "begun"); err != nil {
				t.Fatal(err)
			}
		}, func(t *testing.T, s *left, label string) { s.ended(t, label) }},
		"a terminal": {func(t *testing.T, s *left, l *leaver, label string) {
			if err := s.types(t, l, label); err != nil {
				t.Fatal(err)
			}
		}, func(t *testing.T, s *left, label string) {
			l := newLeaver(s.address, s.ann)
			until(t, "somebody else may type", func() bool { return s.types(t, l, label+"-again") == nil })
			l.cut(true)
		}},
	}
}

// types joins the terminal, and types a text that it shows.
func (s *left) types(t *testing.T, l *leaver, text string) error {
	t.Helper()
	ws, err := l.joins(t, work+"/execs/"+string(s.stay[1])+"/terminal", nil, `"want"`)
	if err == nil {
		err = ws.Write(t.Context(), websocket.MessageBinary, wire.Piece(wire.StreamStdin, []byte("echo "+text+"\n")))
	}
	if err == nil {
		err = hears(t.Context(), ws, text)
	}
	return err
}

// filesLeft are those who copy something in or out.
func filesLeft() map[string]departure {
	const much = 8 << 20 // more than there is room for on the way
	sends := func(path string, begin func(w io.Writer, label string) error) func(*testing.T, *left, *leaver, string) {
		return func(t *testing.T, _ *left, l *leaver, label string) {
			r, w := io.Pipe()
			l.sends = append(l.sends, w)
			l.waitsFor(t, "PUT", path, r)
			if err := begin(w, label); err != nil {
				t.Error(err)
			}
			if _, err := w.Write(make([]byte, much)); err != nil {
				t.Error(err)
			}
		}
	}
	asItWas := func(t *testing.T, s *left, _ string) {
		t.Helper()
		if text := s.content(t, "kept"); text != "as it was\n" {
			t.Errorf("the file that was there: %d bytes", len(text))
		}
	}
	reads := func(path string) departure {
		return departure{comes: func(t *testing.T, _ *left, l *leaver, _ string) { l.reads(t, "GET", work+path, "", nil, "") }}
	}
	return map[string]departure{
		"a download": reads("/files/content?path=large"),
		"a tar down": reads("/files/tar"),
		"an upload":  {sends(work+"/files/content?path=kept", func(io.Writer, string) error { return nil }), asItWas},
		"a tar up": {sends(work+"/files/tar", func(w io.Writer, _ string) error {
			return tar.NewWriter(w).WriteHeader(&tar.Header{Name: "kept", Mode: 0o644, Size: 2 * much})
		}), asItWas},
	}
}

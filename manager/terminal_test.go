package manager_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/bubblewrap"
	"github.com/caisson-dev/caisson/runtimes/docker"
	"github.com/caisson-dev/caisson/sandbox"
)

// screen keeps what a terminal has shown.
type screen struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// seat is somebody at a terminal.
type seat struct {
	screen
	keys  *io.PipeWriter
	leave func()
	over  chan sandbox.Attached
	err   error // set before over
}

func sit(t *testing.T, m *manager.Manager, id sandbox.ID, types bool) *seat {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	s := &seat{leave: leave, over: make(chan sandbox.Attached, 1)}
	streams := sandbox.Streams{Stdout: s}
	if types {
		var r *io.PipeReader
		r, s.keys = io.Pipe()
		streams.Stdin = r
		t.Cleanup(func() { _ = s.keys.Close() })
	}
	go func() {
		a, err := m.AttachTerminal(ctx, "work", id, streams)
		s.err = err
		s.over <- a
	}()
	t.Cleanup(leave)
	return s
}

func (s *seat) types(t *testing.T, text string) {
	t.Helper()
	if _, err := io.WriteString(s.keys, text); err != nil {
		t.Fatal(err)
	}
}

func (s *seat) shows(t *testing.T, text string) {
	t.Helper()
	until(t, strconv.Quote(text)+" is shown", func() bool { return strings.Contains(s.text(), text) })
}

// TestTerminal is a shell in a terminal on each runtime: job control, sizes, keys that
// are signals, who may type, leaving and coming back, and the end.
func TestTerminal(t *testing.T) {
	t.Parallel()
	for _, name := range []string{docker.Name, bubblewrap.Name} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kit := enginetest.New(t)
			all := kit.Runtimes(t)
			if name == bubblewrap.Name {
				all = runtimes.Only(name, kit.Jail(t))
			}
			p := newPlaceWith(t, kit, all, "shell")
			p.create(t, sandbox.SessionOptions{Name: "work", Language: "shell", Runtime: name})
			inTerminal(t, p)
		})
	}
}

func inTerminal(t *testing.T, p *place) {
	t.Helper()
	e, err := p.StartIn(t.Context(), "work", sandbox.Run{
		Command: []string{"bash", "--norc", "-i"}, Terminal: &sandbox.TerminalSize{Rows: 31, Cols: 97}, Env: []string{"PS1=ready> "},
	}, sandbox.Local{})
	if err != nil || !e.Terminal || e.Decision == nil {
		t.Fatalf("%+v, %v", e, err)
	}
	s := sit(t, p.Manager, e.ID, true)
	s.shows(t, "ready> ")
	s.types(t, "tty; test -t 2 && stty size; ps -o stat= -p $$ | head -c 3; echo \"$TERM\" >/dev/tty\r")
	s.shows(t, "\n31 97\r\n")
	s.shows(t, "xterm\r\n")
	if strings.Contains(s.text(), "no job control") || strings.Contains(s.text(), "not a tty") {
		t.Errorf("it is no controlling terminal: %q", s.text())
	}
	if err := p.ResizeExec(t.Context(), "work", e.ID, 40, 120); err != nil {
		t.Fatal(err)
	}
	s.types(t, "stty size\r")
	s.shows(t, "40 120\r\n")
	// A key that is a signal, to a program in the foreground.
	s.types(t, "trap 'echo hit' INT; sh -c 'echo wait; exec sleep 600'\r")
	s.shows(t, "wait\r\n")
	s.types(t, "\x03")
	s.shows(t, "^C")
	s.types(t, "echo code $?\r")
	s.shows(t, "code 130\r\n")
	// One types, others watch.
	if second := sit(t, p.Manager, e.ID, true); (<-second.over).Ended || !errors.Is(second.err, sandbox.Conflict) {
		t.Errorf("a second who types: %v", second.err)
	}
	if _, err := p.InputExec(t.Context(), "work", e.ID, []byte("x"), false); !errors.Is(err, sandbox.Conflict) {
		t.Errorf("input beside who types: %v", err)
	}
	watchers := []*seat{sit(t, p.Manager, e.ID, false), sit(t, p.manager(t), e.ID, false)}
	for _, w := range watchers {
		w.shows(t, "code 130\r\n")
	}
	s.types(t, "x=kept; printf 'who\\033[c\\033[6n are you\\n'\r")
	for _, w := range watchers {
		w.shows(t, "who\x1b[c\x1b[6n are you")
	}
	s.leave()
	if a := <-s.over; a.Ended || !errors.Is(s.err, context.Canceled) {
		t.Errorf("who left: %+v, %v", a, s.err)
	}
	// Another process comes back, once the seat is free, and is asked nothing again.
	other := p.manager(t)
	back := sit(t, other, e.ID, true)
	until(t, "the seat is taken again", func() bool {
		select {
		case <-back.over:
			if !errors.Is(back.err, sandbox.Conflict) {
				t.Fatal(back.err)
			}
			back = sit(t, other, e.ID, true)
		default:
		}
		return strings.Contains(back.text(), "who are you")
	})
	back.types(t, "echo $x\r")
	back.shows(t, "kept\r\n")
	watchers[0].shows(t, "kept\r\n")
	back.types(t, "exit 7\r")
	for _, who := range append(watchers, back) {
		if a := <-who.over; who.err != nil || !a.Ended || a.Exit.Code != 7 {
			t.Errorf("%+v, %v", a, who.err)
		}
	}
	if err := p.ResizeExec(t.Context(), "work", e.ID, 1, 1); !errors.Is(err, sandbox.Conflict) {
		t.Errorf("its size after its end: %v", err)
	}
	if a := sit(t, p.Manager, e.ID, true); !(<-a.over).Ended || !strings.Contains(a.text(), "kept") {
		t.Errorf("after its end: %q, %v", a.text(), a.err)
	}
}

// TestTerminalEnds: all that a program has shown comes, however soon it ends, and a
// flood holds up neither the program nor who resizes and comes late.
func TestTerminalEnds(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "shell")
	p.create(t, sandbox.SessionOptions{Name: "work", Language: "shell"})
	start := func(script string) sandbox.ExecRecord {
		t.Helper()
		e, err := p.StartIn(t.Context(), "work", sandbox.Run{Command: []string{"bash", "-c", script}, Terminal: &sandbox.TerminalSize{}}, sandbox.Local{})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	for range 20 {
		e := start("stty -opost; seq 1 2000; echo the end >&2; exit 3")
		s := sit(t, p.Manager, e.ID, false)
		if a := <-s.over; a.Exit.Code != 3 || !strings.HasSuffix(s.text(), "1999\n2000\nthe end\n") || !strings.HasPrefix(s.text(), "1\n2\n") {
			t.Fatalf("%+v, %v, %d bytes: …%q", a.Exit, s.err, len(s.text()), s.text()[max(0, len(s.text())-40):])
		}
	}
	e := start("sizes=0; trap 'sizes=$((sizes + 1))' WINCH; seq 1 3000000; echo over; read line; echo $((sizes > 0)); stty size")
	slow, release := io.Pipe()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	go func() {
		_, _ = p.AttachTerminal(ctx, "work", e.ID, sandbox.Streams{Stdout: release}) // it is ended by its reader
	}()
	for i := range 300 {
		if err := p.ResizeExec(t.Context(), "work", e.ID, uint16(20+i%7), uint16(60+i%11)); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.ResizeExec(t.Context(), "work", e.ID, 33, 111); err != nil {
		t.Fatal(err)
	}
	s := sit(t, p.Manager, e.ID, true)
	s.shows(t, "over\r\n")
	s.types(t, "\r")
	if a := <-s.over; a.Exit.Code != 0 || !strings.HasSuffix(s.text(), "over\r\n\r\n1\r\n33 111\r\n") {
		t.Errorf("%+v, %v: …%q", a, s.err, s.text()[max(0, len(s.text())-80):])
	}
	if err := slow.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.ExecIn(t.Context(), "work", sandbox.Run{Command: []string{"true"}, Terminal: &sandbox.TerminalSize{}}, sandbox.Streams{}); !errors.Is(err, sandbox.Invalid) {
		t.Errorf("a terminal where nobody can join it: %v", err)
	}
	plain, err := p.StartIn(t.Context(), "work", sandbox.Run{Command: []string{"true"}}, sandbox.Local{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.AttachTerminal(t.Context(), "work", plain.ID, sandbox.Streams{}); !errors.Is(err, sandbox.Conflict) {
		t.Errorf("one without a terminal: %v", err)
	}
	if err := p.ResizeExec(t.Context(), "work", plain.ID, 1, 1); !errors.Is(err, sandbox.Conflict) {
		t.Errorf("its size: %v", err)
	}
}

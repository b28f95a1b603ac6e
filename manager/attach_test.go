package manager_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// TestInput writes to an exec from several managers, one after the other, and
// closes its input. What each of them reads, from an offset, is there for all.
func TestInput(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.create(t, sandbox.SessionOptions{Name: "work"})
	e, err := p.StartIn(t.Context(), "work", sandbox.Run{
		Command: []string{"sh", "-c", `while read x; do echo "got $x"; echo "heard $x" >&2; done; echo over; exit 7`}, Input: true,
	}, sandbox.Local{})
	if err != nil {
		t.Fatal(err)
	}
	write := func(m *manager.Manager, text string, end bool) {
		t.Helper()
		if n, err := m.InputExec(t.Context(), "work", e.ID, []byte(text), end); err != nil || n != len(text) {
			t.Fatalf("%d of %d bytes, %v", n, len(text), err)
		}
	}
	read := func(m *manager.Manager, from sandbox.AttachOptions) (out, errs bytes.Buffer, a sandbox.Attached) {
		t.Helper()
		a, err := m.AttachExec(t.Context(), "work", e.ID, from, &out, &errs)
		if err != nil {
			t.Fatal(err)
		}
		return out, errs, a
	}
	write(p.Manager, "one\n", false)
	second := p.manager(t)
	write(second, "tw", false)
	write(p.Manager, "o\n", false)
	until(t, "both lines are answered", func() bool {
		out, errs, a := read(second, sandbox.AttachOptions{})
		return out.String() == "got one\ngot two\n" && errs.String() == "heard one\nheard two\n" && !a.Ended
	})
	at := sandbox.AttachOptions{Stdout: int64(len("got one\n")), Stderr: int64(len("heard one\nheard "))}
	if out, errs, a := read(p.manager(t), at); out.String() != "got two\n" || errs.String() != "two\n" || a.Stdout != 16 || a.Stderr != 20 {
		t.Errorf("from %+v: %q, %q, %+v", at, out.String(), errs.String(), a)
	}
	write(second, "", true)
	for range 2 { // what one has read, the next reads
		at.Follow = true
		out, errs, a := read(p.manager(t), at)
		if out.String() != "got two\nover\n" || errs.String() != "two\n" || !a.Ended || a.Exit.Code != 7 || a.Exit.Reason != sandbox.ReasonExited || a.Usage.Wall <= 0 {
			t.Errorf("to the end: %q, %q, %+v", out.String(), errs.String(), a)
		}
	}
	if _, err := p.InputExec(t.Context(), "work", e.ID, []byte("x"), false); !errors.Is(err, sandbox.Conflict) {
		t.Errorf("a closed input: %v", err)
	}
	if _, err := p.AttachExec(t.Context(), "work", e.ID, sandbox.AttachOptions{Stderr: -1}, nil, nil); !errors.Is(err, sandbox.Invalid) {
		t.Errorf("an offset below zero: %v", err)
	}
}

// TestInputWaits writes more than a process that does not read can be given. Who
// gives up knows how much was, and the rest arrives by another call.
func TestInputWaits(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.create(t, sandbox.SessionOptions{Name: "work"})
	e, err := p.StartIn(t.Context(), "work", sandbox.Run{Command: []string{"sh", "-c", "until [ -e go ]; do sleep 0.05; done; exec sha256sum"}, Input: true}, sandbox.Local{})
	if err != nil {
		t.Fatal(err)
	}
	much := bytes.Repeat([]byte("0123456789abcdef"), 20<<10)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	n, err := p.InputExec(ctx, "work", e.ID, much, true)
	if !errors.Is(err, context.DeadlineExceeded) || n >= len(much) {
		t.Fatalf("%d bytes were taken of %d, and nobody reads: %v", n, len(much), err)
	}
	if res, err := p.ExecIn(t.Context(), "work", sandbox.Run{Command: []string{"touch", "go"}}, sandbox.Streams{}); err != nil || res.Code != 0 {
		t.Fatalf("%+v, %v", res.Exit, err)
	}
	if rest, err := p.InputExec(t.Context(), "work", e.ID, much[n:], true); err != nil || n+rest != len(much) {
		t.Fatalf("%d and %d bytes of %d, %v", n, rest, len(much), err)
	}
	sum := sha256.Sum256(much)
	var out bytes.Buffer
	if a, err := p.AttachExec(t.Context(), "work", e.ID, sandbox.AttachOptions{Follow: true}, &out, io.Discard); err != nil || !a.Ended || a.Exit.Code != 0 {
		t.Errorf("%+v, %v", a, err)
	}
	if !strings.HasPrefix(out.String(), hex.EncodeToString(sum[:])) {
		t.Errorf("it read %q", out.String())
	}
}

// TestInputOfOthers finds an exec whose input is not open to others, and a
// resize of what has no terminal.
func TestInputOfOthers(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.create(t, sandbox.SessionOptions{Name: "work"})
	e, err := p.StartIn(t.Context(), "work", sandbox.Run{Command: []string{"sleep", "1000"}}, sandbox.Local{})
	if err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"input":  second(p.InputExec(t.Context(), "work", e.ID, []byte("x"), false)),
		"close":  second(p.InputExec(t.Context(), "work", e.ID, nil, true)),
		"resize": p.ResizeExec(t.Context(), "work", e.ID, 24, 80),
	} {
		if !errors.Is(err, sandbox.Conflict) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := p.ResizeExec(t.Context(), "work", sandbox.NewID(), 24, 80); !errors.Is(err, sandbox.NotFound) {
		t.Errorf("an exec that is not there: %v", err)
	}
	for what, run := range map[string]func() error{
		"a session": func() error {
			return second(p.ExecIn(t.Context(), "work", sandbox.Run{Command: []string{"true"}, Input: true}, sandbox.Streams{}))
		},
		"a run": func() error {
			return second(p.Run(t.Context(), sandbox.Run{Command: []string{"true"}, Input: true}, sandbox.Streams{}))
		},
	} {
		if err := run(); !errors.Is(err, sandbox.Invalid) {
			t.Errorf("input for an exec that is waited for, in %s: %v", what, err)
		}
	}
	if err := p.KillExec(t.Context(), "work", e.ID); err != nil {
		t.Error(err)
	}
}

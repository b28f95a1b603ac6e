package cli

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

func aQuestion() sandbox.Approval {
	return sandbox.Approval{ID: sandbox.NewID(), Digest: "d1", Expires: time.Now(), Question: sandbox.ApprovalQuestion{Kind: "exec", Command: []string{"env"}}}
}

func TestAnswers(t *testing.T) {
	for typed, want := range map[string]sandbox.ApprovalAnswer{
		"o\n": {Approve: true}, "once\n": {Approve: true}, "what?\n\nyes\n": {Approve: true}, "a\n": {Approve: true, Always: true},
		"Always\n": {Approve: true, Always: true}, "n\n": {}, "no\n": {},
	} {
		var out strings.Builder
		got, err := answerFrom(t.Context(), t.Context(), strings.NewReader(typed), &out, aQuestion())
		if err != nil || got.Approve != want.Approve || got.Always != want.Always || got.Via != "terminal" || got.By == "" {
			t.Errorf("%q: %+v, %v", typed, got, err)
		}
	}
	for _, typed := range []string{"", "perhaps\n", "\n\n"} {
		if got, err := answerFrom(t.Context(), t.Context(), strings.NewReader(typed), io.Discard, aQuestion()); err == nil || got.Approve {
			t.Errorf("%q: %+v", typed, got)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	elsewhere := errors.New("answered elsewhere")
	cancel(elsewhere)
	r, w := io.Pipe()
	defer w.Close()
	var out strings.Builder
	if _, err := answerFrom(ctx, t.Context(), r, &out, aQuestion()); !errors.Is(err, elsewhere) || !strings.Contains(out.String(), "answered elsewhere") {
		t.Errorf("%v, %q", err, out.String())
	}
	over, stop := context.WithCancel(t.Context())
	stop()
	out.Reset()
	if got, err := answerFrom(over, over, r, &out, aQuestion()); err != nil || got.Approve || !strings.Contains(out.String(), "no: it does not run") {
		t.Errorf("interrupted: %+v, %v, %q", got, err, out.String())
	}
}

// lineByLine gives one line at a time, as a terminal does.
type lineByLine struct{ lines []string }

func (l *lineByLine) Read(p []byte) (int, error) {
	n := copy(p, l.lines[0])
	l.lines = l.lines[1:]
	return n, nil
}

// Nothing is read behind the answer: it is for the program.
func TestNothingBehindTheAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in := &lineByLine{lines: []string{"what?\n", "yes\n", "for the program\n", "too\n"}}
		got, err := answerFrom(t.Context(), t.Context(), in, io.Discard, aQuestion())
		synctest.Wait() // for whoever still reads
		if err != nil || !got.Approve || len(in.lines) != 2 {
			t.Errorf("%+v, %v, left: %q", got, err, in.lines)
		}
	})
}

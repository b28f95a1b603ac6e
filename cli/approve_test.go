package cli

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

func hostileQuestion() sandbox.Approval {
	const evil = "a\x1b[2J\x1b]0;t\a\r\b\u202e\u2066\u200b\u00a0\u2028\u3164\ufe0f\x9b1m\xff"
	long := strings.Repeat("x = 1\n", 5000) + "the end"
	return sandbox.Approval{
		ID: sandbox.NewID(), Digest: "d1", Expires: time.Now(), Session: evil,
		Question: sandbox.ApprovalQuestion{
			Kind: "exec", Language: evil, Command: []string{evil, "b c"}, Dir: evil, Env: []string{evil}, User: evil, Image: evil, Stdin: evil,
			Network: sandbox.Network(evil), Limits: sandbox.DefaultLimits, Timeout: 1500, Plan: []byte(evil),
			Texts: []sandbox.ApprovalText{{Name: evil, Language: evil, Size: 9, Text: evil}, {Name: "long", Size: len(long), Text: long}, {Name: "raw", Size: 3}},
		},
		Decision: sandbox.Decision{Verdict: sandbox.Ask, Level: sandbox.High, Findings: []sandbox.Finding{{
			ID: "X-1", Title: evil, Severity: sandbox.High, Verdict: sandbox.Ask, File: evil, Line: 7, Column: 3, Message: evil, Remediation: evil, Via: []string{evil},
		}}},
	}
}

// What a person is shown has no character that acts on a terminal or does not
// show, and is whole.
func TestQuestionIsShownAsItIs(t *testing.T) {
	text := questionText(hostileQuestion())
	for _, r := range strings.ReplaceAll(text, "\n", "") {
		if r != ' ' && (r < 0x20 || r > 0x7e) && r != '→' {
			t.Fatalf("%q is shown: %q", r, text)
		}
	}
	for _, want := range []string{
		"X-1", ":7:3", "limits    memory 512m, 0.5 CPUs, 100 processes", "1.5s", " 5001 | the end", "(no text)", "digest d1", `a\x1b[2J\x1b]0;t\a\r\b\u202e\u2066\u200b\u00a0\u2028\u3164\ufe0f\x9b1m\xff`, "command   'a\\x1b",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not shown", want)
		}
	}
	if got := strings.Count(text, "x = 1"); got != 5000 {
		t.Errorf("%d of 5000 lines are shown", got)
	}
}

func TestAnswers(t *testing.T) {
	for typed, want := range map[string]sandbox.ApprovalAnswer{
		"o\n": {Approve: true}, "once\n": {Approve: true}, "what?\n\nyes\n": {Approve: true}, "a\n": {Approve: true, Always: true},
		"Always\n": {Approve: true, Always: true}, "n\n": {}, "no\n": {},
	} {
		var out strings.Builder
		got, err := answerFrom(t.Context(), strings.NewReader(typed), &out, hostileQuestion())
		if err != nil || got.Approve != want.Approve || got.Always != want.Always || got.Via != "terminal" || got.By == "" {
			t.Errorf("%q: %+v, %v", typed, got, err)
		}
	}
	for _, typed := range []string{"", "perhaps\n", "\n\n"} {
		if got, err := answerFrom(t.Context(), strings.NewReader(typed), io.Discard, hostileQuestion()); err == nil || got.Approve {
			t.Errorf("%q: %+v", typed, got)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	elsewhere := errors.New("answered elsewhere")
	cancel(elsewhere)
	r, w := io.Pipe()
	defer w.Close()
	var out strings.Builder
	if _, err := answerFrom(ctx, r, &out, hostileQuestion()); !errors.Is(err, elsewhere) || !strings.Contains(out.String(), "answered elsewhere") {
		t.Errorf("%v, %q", err, out.String())
	}
}

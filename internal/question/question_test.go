package question

import (
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
			Network: sandbox.Network{Mode: evil, Allow: []string{evil}}, Limits: sandbox.DefaultLimits, ExecLimits: sandbox.ExecLimits{Timeout: sandbox.Duration(1500 * time.Millisecond)}, Plan: []byte(evil),
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
	text := Text(hostileQuestion())
	for _, r := range strings.ReplaceAll(text, "\n", "") {
		if r != ' ' && (r < 0x20 || r > 0x7e) && r != '→' {
			t.Fatalf("%q is shown: %q", r, text)
		}
	}
	for _, want := range []string{
		"X-1", ":7:3", "limits    memory 512m, 0.5 CPUs, 100 processes", "1.5s", " 5001 | the end", "(no text)", "digest d1", `a\x1b[2J\x1b]0;t\x07\x0d\x08\u202e\u2066\u200b\u00a0\u2028\u3164\ufe0f\x9b1m\xff`, "command   'a\\x1b",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not shown", want)
		}
	}
	endless := hostileQuestion()
	endless.Question.Timeout = 0
	if text := Text(endless); !strings.Contains(text, "workspace 256m, no time limit\n") {
		t.Errorf("without a time limit: %s", text[:1000])
	}
	spelled := hostileQuestion()
	spelled.Question.Texts[0].Text = `a\x1b[2J`
	if text := Text(spelled); !strings.Contains(text, "1 | a\\\\x1b[2J\n") {
		t.Errorf("an escape that is spelled out: %s", text[:2000])
	}
	if got := strings.Count(text, "x = 1"); got != 5000 {
		t.Errorf("%d of 5000 lines are shown", got)
	}
}

// A person is not shown ten thousand bytes that are the same each time.
func TestShortPlan(t *testing.T) {
	t.Parallel()
	plan := `{"SecurityOpt":["no-new-privileges","seccomp={\"defaultAction\":\"SCMP_ACT_ERRNO\",\"x\":\"}\"}"],"Memory":1}`
	got := shortPlan([]byte(plan))
	if !strings.HasPrefix(got, `{"SecurityOpt":["no-new-privileges","seccomp=(`) || !strings.HasSuffix(got, `)"],"Memory":1}`) || strings.Contains(got, "SCMP") {
		t.Error(got)
	}
	if weak := `["seccomp=unconfined"]`; shortPlan([]byte(weak)) != weak {
		t.Error("what is no profile is shown as it is")
	}
}

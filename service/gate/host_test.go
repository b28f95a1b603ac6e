package gate_test

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// TestHosts asks about a host that no list has, in words and under a digest of its
// own, and has the rules judge those that are listed too.
func TestHosts(t *testing.T) {
	t.Parallel()
	p := newPolicyOf(t, map[string]fs.FS{"ours": fstest.MapFS{"a.rego": {Data: []byte(`package caisson.user.ours

findings contains {"id": "OURS-1", "severity": "high", "msg": "no shell talks to it"} if {
	input.ctx.connection.host == "db.test"
	input.ctx.connection.port == 5432
	input.ctx.connection.exec.language == "shell"
}
`)}}})
	exec := func(session, language string) *manager.ExecQuestion {
		q := question(sandbox.Run{Language: language, Code: "x", Session: session, Approve: sandbox.ApproveLater}, nil, "")
		q.Network = sandbox.Network{Mode: sandbox.NetworkAllow, Allow: []string{"a.test"}}
		return q
	}
	digests := map[string]bool{}
	for _, tt := range []struct {
		exec    *manager.ExecQuestion
		host    string
		port    int
		listed  bool
		verdict sandbox.Verdict
		rule    string
	}{
		{exec("", "python"), "a.test", 443, true, sandbox.Allow, ""},
		{exec("", "python"), "b.test", 443, false, sandbox.Ask, "SBX-NET-0010"},
		{exec("", "python"), "b.test", 443, false, sandbox.Ask, "SBX-NET-0010"}, // of another run
		{exec("work", "python"), "b.test", 443, false, sandbox.Ask, "SBX-NET-0010"},
		{exec("work", "python"), "b.test", 80, false, sandbox.Ask, "SBX-NET-0010"},
		{exec("work", "python"), "c.test", 443, false, sandbox.Ask, "SBX-NET-0010"},
		{exec("other", "python"), "b.test", 443, false, sandbox.Ask, "SBX-NET-0010"},
		{exec("", "shell"), "db.test", 5432, true, sandbox.Ask, "user/ours/OURS-1"},
		{exec("", "python"), "db.test", 5432, true, sandbox.Allow, ""},
	} {
		d := &desk{yes: true}
		a, err := newGate(t, p, d).Judge(t.Context(), manager.Question{Host: &manager.HostQuestion{Exec: tt.exec, Host: tt.host, Port: tt.port, Listed: tt.listed}})
		rule := ""
		if len(a.Decision.Findings) > 0 {
			rule = a.Decision.Findings[0].ID
		}
		if err != nil || a.Decision.Verdict != tt.verdict || rule != tt.rule || len(d.asked) > 0 != (tt.verdict == sandbox.Ask) {
			t.Errorf("%s:%d: %+v, %v", tt.host, tt.port, a.Decision, err)
			continue
		}
		if tt.verdict != sandbox.Ask {
			continue
		}
		q := d.asked[0]
		if q.Question.Kind != sandbox.QuestionConnection || q.Question.Host != tt.host || q.Question.Port != tt.port || q.Question.Listed != tt.listed ||
			q.Exec != tt.exec.ID || q.Session != tt.exec.Run.Session || len(q.Question.Texts) != 1 || q.Question.Texts[0].Text != "x" || a.Decision.Approval == nil {
			t.Errorf("%s:%d was asked as %+v", tt.host, tt.port, q)
		}
		if q.Digest == "" || digests[q.Digest] {
			t.Errorf("%s:%d has the digest of another question", tt.host, tt.port)
		}
		digests[q.Digest] = true
	}
	again := exec("work", "python")
	d := &desk{yes: true}
	if _, err := newGate(t, p, d).Judge(t.Context(), manager.Question{Host: &manager.HostQuestion{Exec: again, Host: "b.test", Port: 443}}); err != nil || len(d.asked) != 1 || !digests[d.asked[0].Digest] {
		t.Errorf("an exec of the same session: %v, %+v", err, d.asked)
	}
}

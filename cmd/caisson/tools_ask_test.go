package main

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/sandbox"
)

// TestToolApprovalOverHTTP has a call of a tool that policy asks about wait for a
// person, who is shown the tool and its arguments, and approves it, denies it, or lets
// its time go by.
func TestToolApprovalOverHTTP(t *testing.T) {
	t.Parallel()
	kit, base := place(t)
	config := base + "/caisson.yaml"
	if err := os.WriteFile(config, []byte("version: 1\ntools:\n  - {name: pay, command: [cat], verdict: ask}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var tokens [2]string
	for i, owner := range []string{"ann", "bob"} {
		all := said(t, kit, base, "token", "create", "--owner", owner)
		tokens[i] = all[strings.LastIndex(all, "\n")+1:]
	}
	ann, bob := tokens[0], tokens[1]
	pending := func(address, token string) []sandbox.Approval {
		var list struct{ Items []sandbox.Approval }
		if code := ask(t, address, "GET", "/v1/approvals?state=pending", token, nil, &list); code != http.StatusOK {
			t.Errorf("the list of questions: %d", code)
		}
		return list.Items
	}
	for _, tt := range []struct {
		name, patience    string
		answer            map[string]any // nil is none
		state             sandbox.ApprovalState
		stdout, kind, why string
	}{
		{"approve", "5m", map[string]any{"approve": true}, sandbox.ApprovalUsed, `{"amount":7}` + "\n", "", ""},
		{"deny", "5m", map[string]any{"approve": false, "note": "too much"}, sandbox.ApprovalDenied, "", "denied", "too much"},
		{"expire", "1s", nil, sandbox.ApprovalExpired, "", "denied", "nobody approved it in time"},
	} {
		srv := startWith(t, kit, base, []string{"CAISSON_APPROVE_TIMEOUT=" + tt.patience}, "--config", config, "serve", "--listen", "127.0.0.1:0")
		line, err := srv.out.ReadString('\n')
		if err != nil {
			t.Fatalf("%v; %s", err, srv.errs)
		}
		address := strings.TrimSpace(line)
		var res sandbox.Result
		over := make(chan int, 1)
		go func() {
			over <- ask(t, address, "POST", "/v1/runs", ann, map[string]any{"language": "shell", "code": "tool pay --amount 7; true", "approve": "ask"}, &res)
		}()
		if tt.answer != nil {
			until(t, "the call is asked about", func() bool { return len(pending(address, ann)) == 1 })
			q := pending(address, ann)[0]
			if q.Question.Kind != "tool" || q.Question.Tool != "pay" || string(q.Question.Arguments) != `{"amount":7}` || !q.Exec.Valid() {
				t.Errorf("%s: a person is shown %+v", tt.name, q)
			}
			if others := pending(address, bob); len(others) != 0 {
				t.Errorf("bob sees %+v", others)
			}
			path := "/v1/approvals/" + string(q.ID) + "/answer"
			if code := ask(t, address, "POST", path, bob, map[string]any{"approve": true}, nil); code != http.StatusNotFound {
				t.Errorf("bob answers: %d", code)
			}
			if code := ask(t, address, "POST", path, ann, tt.answer, nil); code != http.StatusOK {
				t.Errorf("%s: %d", tt.name, code)
			}
		}
		if code := <-over; code != http.StatusOK || string(res.Stdout) != tt.stdout || len(res.Calls) != 1 {
			t.Fatalf("%s: %d %+v; %s", tt.name, code, res, srv.errs)
		}
		c := res.Calls[0]
		if c.Verdict != sandbox.Ask || c.Kind != tt.kind || !strings.Contains(c.Error, tt.why) || (c.Approver != "") != (tt.kind == "") {
			t.Errorf("%s: the Result tells %+v", tt.name, c)
		}
		var list struct{ Items []sandbox.Approval }
		if code := ask(t, address, "GET", "/v1/approvals", ann, nil, &list); code != http.StatusOK || len(list.Items) == 0 || list.Items[0].State != tt.state {
			t.Errorf("%s: %d %+v", tt.name, code, list.Items)
		}
		if err := srv.Process.Signal(os.Interrupt); err != nil || srv.code(t) != 0 {
			t.Errorf("%v, %s", err, srv.errs)
		}
	}
}

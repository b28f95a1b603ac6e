package approval_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/policy/approval"
	"github.com/caisson-dev/caisson/sandbox"
)

func TestCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, tt := range map[string]struct {
		script string
		yes    bool
		failed bool
	}{
		"yes":           {`grep -q '"digest":"d1"' && echo '{"approve":true,"by":"robot","note":"n"}'`, true, false},
		"no":            {`cat >/dev/null; echo '{"approve":false}'`, false, false},
		"nothing":       {`cat >/dev/null`, false, true},
		"not an answer": {`cat >/dev/null; echo '{"approved":true}'`, false, true},
		"no verdict":    {`cat >/dev/null; echo '{}'`, false, true},
		"two answers":   {`cat >/dev/null; echo '{"approve":true} {"approve":false}'`, false, true},
		"a failure":     {`cat >/dev/null; echo '{"approve":true}'; exit 1`, false, true},
		"too much":      {`cat >/dev/null; head -c 100000 /dev/zero`, false, true},
		"too slow":      {`exec sleep 60`, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
			if err := os.WriteFile(file, []byte("#!/bin/sh\n"+tt.script+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			ask, err := approval.Command(approval.CommandConfig{Line: file, Timeout: 3 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			a := question("d1")
			ans, err := ask(t.Context(), a)
			if (err != nil) != tt.failed || ans.Approve != tt.yes {
				t.Errorf("%+v, %v", ans, err)
			}
			if tt.yes && (ans.By != "robot" || ans.Note != "n" || ans.Via != "command") {
				t.Errorf("%+v", ans)
			}
		})
	}
	for _, line := range []string{"", "/no/such/program"} {
		if _, err := approval.Command(approval.CommandConfig{Line: line}); !errors.Is(err, sandbox.Invalid) {
			t.Errorf("%q: %v", line, err)
		}
	}
}

// An approver that fails refuses at once.
func TestAskerThatFails(t *testing.T) {
	t.Parallel()
	d := newPlace(t).desk(t, func(c *approval.Config) {
		c.Approver = func(context.Context, sandbox.Approval) (sandbox.ApprovalAnswer, error) {
			return sandbox.ApprovalAnswer{}, errors.New("out of order")
		}
	})
	if by, why := settle(t, d, question("d"), sandbox.ApproveDefault, nil); by != nil || !strings.Contains(why, "out of order") {
		t.Errorf("%+v %q", by, why)
	}
}

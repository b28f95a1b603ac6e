package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/internal/enginetest"
)

// An operator's own rules and data are found by their variables, and add to the
// shipped ones.
func TestPolicyOfTheOperator(t *testing.T) {
	scan := enginetest.Scanner(t)
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("rules/team/a.rego", "package caisson.user.team\n\nfindings contains {\"id\": \"TEAM-1\", \"title\": \"No loops\", \"severity\": \"high\", "+
		"\"category\": \"team\", \"msg\": \"json is imported\"} if input.imports.json\n")
	hosts, err := os.ReadFile(filepath.Join("..", "..", "policies", "data", "hosts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	write("data/hosts.yaml", string(hosts))
	check := func(code string, env map[string]string) (int, string) {
		t.Helper()
		var out, errs bytes.Buffer
		env["CAISSON_SCAN"] = scan
		a := newApp(func(k string) string { return env[k] }, strings.NewReader(""), &out, &errs)
		return a.run(t.Context(), []string{"policy", "check", "-l", "python", "-c", code}), out.String() + errs.String()
	}
	if code, out := check("import json", map[string]string{}); code != 0 {
		t.Errorf("shipped rules alone: %d, %s", code, out)
	}
	rules := filepath.Join(dir, "rules")
	if code, out := check("import json", map[string]string{"CAISSON_POLICY_RULES": rules}); code != 1 || !strings.Contains(out, "TEAM-1") {
		t.Errorf("with a rule of the team's: %d, %s", code, out)
	}
	if code, out := check("import json", map[string]string{"CAISSON_POLICY_DATA": filepath.Join(dir, "data")}); code != 0 {
		t.Errorf("with data of the operator's: %d, %s", code, out)
	}
	if code, out := check("import json", map[string]string{"CAISSON_POLICY_DATA": filepath.Join(dir, "none")}); code != 2 || !strings.Contains(out, "is not a folder") {
		t.Errorf("with a folder that is not there: %d, %s", code, out)
	}
}

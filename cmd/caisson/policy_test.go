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
		a := newApp(func(k string) (string, bool) { v, set := env[k]; return v, set }, strings.NewReader(""), &out, &errs)
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

// What lies where rules and data are read from, and would not be read, is
// refused; a bundle may be a link.
func TestPolicyOfTheOperatorIsReadWhole(t *testing.T) {
	t.Parallel()
	scan := enginetest.Scanner(t)
	const rule = "package caisson.user.team\n\nfindings contains {\"id\": \"T\", \"severity\": \"high\", \"msg\": \"m\"} if input.imports.json\n"
	for _, tt := range []struct {
		name, variable, file, text, link string // link is to the file's folder
		code                             int
		want                             string
	}{
		{"a link", "CAISSON_POLICY_RULES", "elsewhere/a.rego", rule, "rules/team", 1, "user/team/T"},
		{"a link within", "CAISSON_POLICY_RULES", "elsewhere/a.rego", rule, "rules/team/sub", 2, "sub is a link that is not followed"},
		{"beside the bundles", "CAISSON_POLICY_RULES", "rules/a.rego", rule, "", 2, "a.rego is in no bundle"},
		{"no rules", "CAISSON_POLICY_RULES", "rules/team/a.reg", rule, "", 2, "no .rego file is in it"},
		{"a hidden folder", "CAISSON_POLICY_RULES", "rules/.git/a.rego", rule, "", 0, ""},
		{"misnamed data", "CAISSON_POLICY_DATA", "rules/setings.yaml", "", "", 2, "nothing reads setings.yaml"},
		{"data with another ending", "CAISSON_POLICY_DATA", "rules/settings.yml", "", "", 2, "nothing reads settings.yml"},
		{"data in a folder", "CAISSON_POLICY_DATA", "rules/data/settings.yaml", "", "", 2, "data is a folder"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := filepath.Join(dir, tt.file)
			for _, made := range []string{file, filepath.Join(dir, "rules", "x"), filepath.Join(dir, tt.link)} {
				if err := os.MkdirAll(filepath.Dir(made), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(file, []byte(tt.text), 0o644); err != nil {
				t.Fatal(err)
			}
			if tt.link != "" {
				if err := os.Symlink(filepath.Dir(file), filepath.Join(dir, tt.link)); err != nil {
					t.Fatal(err)
				}
			}
			env := map[string]string{"CAISSON_SCAN": scan, tt.variable: filepath.Join(dir, "rules")}
			var out bytes.Buffer
			a := newApp(func(k string) (string, bool) { v, set := env[k]; return v, set }, strings.NewReader(""), &out, &out)
			if code := a.run(t.Context(), []string{"policy", "check", "-l", "python", "-c", "import json"}); code != tt.code || !strings.Contains(out.String(), tt.want) {
				t.Errorf("%d, want %d with %q: %s", code, tt.code, tt.want, out.String())
			}
		})
	}
}

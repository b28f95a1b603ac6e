package policy_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/format"

	"github.com/caisson-dev/caisson/policies"
	"github.com/caisson-dev/caisson/policy"
	"github.com/caisson-dev/caisson/sandbox"
)

func TestRegoTests(t *testing.T) {
	passed, failures, err := policy.RunTests(t.Context(), policies.FS, policies.FS)
	if err != nil {
		t.Fatal(err)
	}
	if len(failures) > 0 || passed < 30 {
		t.Fatalf("%d passed, failed: %s", passed, strings.Join(failures, ", "))
	}
}

func TestRegoIsFormattedAndTested(t *testing.T) {
	topics, tested := map[string]bool{}, map[string]bool{}
	err := fs.WalkDir(policies.FS, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".rego" {
			return err
		}
		if strings.HasSuffix(name, "_test.rego") {
			tested[filepath.Dir(name)] = true
		} else {
			topics[filepath.Dir(name)] = true
		}
		text, err := fs.ReadFile(policies.FS, name)
		if err != nil {
			return err
		}
		want, err := format.Source(name, text)
		if err != nil {
			return err
		}
		if string(want) != string(text) {
			t.Errorf("%s is not formatted", name)
			if os.Getenv("CAISSON_FORMAT") != "" {
				return os.WriteFile(filepath.Join("..", "policies", name), want, 0o644)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for topic := range topics {
		if !tested[topic] {
			t.Errorf("%s has no test", topic)
		}
	}
}

func TestUserTestsRun(t *testing.T) {
	p := load(t, policy.Config{})
	dir := t.TempDir()
	rules := "package caisson.user.t\n\nfindings contains {\"id\": \"A\", \"severity\": \"low\"} if input.x\n"
	tests := "package caisson.user.t_test\n\nimport data.caisson.user.t\n\ntest_good if count(t.findings) == 1 with input as {\"x\": true}\n\ntest_bad if count(t.findings) == 2 with input as {\"x\": true}\n"
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "a.rego"), []byte(rules), 0o600), os.WriteFile(filepath.Join(dir, "a_test.rego"), []byte(tests), 0o600)); err != nil {
		t.Fatal(err)
	}
	_, failures, err := p.Test(t.Context(), dir)
	if err != nil || len(failures) != 1 || !strings.Contains(failures[0], "test_bad") {
		t.Fatalf("%v %v", failures, err)
	}
	if _, _, err := p.Test(t.Context(), t.TempDir()); !errors.Is(err, sandbox.Invalid) {
		t.Fatalf("an empty folder passed: %v", err)
	}
}

package policy_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/format"

	"github.com/caisson-dev/caisson/policies"
	"github.com/caisson-dev/caisson/policy"
	"github.com/caisson-dev/caisson/policy/facts"
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

// team is a bundle whose one rule stands under the path of a shipped one.
func team(t *testing.T, annotation string) string {
	t.Helper()
	dir := t.TempDir()
	rules := "package caisson.user.team\n\n" + annotation + "findings contains {\"id\": \"A\", \"severity\": \"low\"} if input.files.delete.root\n"
	tests := "package caisson.user.team_test\n\nimport data.caisson.user.team\n\nroot := {\"files\": {\"delete\": {\"root\": []}}}\n\n" +
		"test_good if count(team.findings) == 1 with input as root\n\ntest_bad if count(team.findings) == 2 with input as root\n"
	err := errors.Join(os.Mkdir(filepath.Join(dir, "files"), 0o700), os.WriteFile(filepath.Join(dir, "files", "files.rego"), []byte(rules), 0o600),
		os.WriteFile(filepath.Join(dir, "files", "files_test.rego"), []byte(tests), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestUserTestsRun(t *testing.T) {
	p := load(t, policy.Config{})
	passed, failures, err := p.Test(t.Context(), team(t, ""))
	if err != nil || passed != 1 || len(failures) != 1 || !strings.Contains(failures[0], "test_bad") {
		t.Fatalf("%d %v %v", passed, failures, err)
	}
	if _, _, err := p.Test(t.Context(), t.TempDir()); !errors.Is(err, sandbox.Invalid) {
		t.Fatalf("an empty folder passed: %v", err)
	}
}

// always gives the facts of `rm -rf /` of any text but "true".
type always struct{}

func (always) Scan(_ context.Context, r facts.Request) (*facts.Document, error) {
	doc := rmRoot()
	doc.Meta.SHA256 = fmt.Sprintf("%x", sha256.Sum256(r.Code))
	if string(r.Code) == "true" {
		doc.Files = nil
	}
	return doc, nil
}

// TestUserAnnotationsCount: what an annotation says of a user's rule holds for
// its findings, the rule is listed, and its examples are judged.
func TestUserAnnotationsCount(t *testing.T) {
	dir := team(t, "# METADATA\n# title: Deletes everything\n# custom:\n#   id: A\n#   severity: high\n#   category: ours\n#   remediation: Ask the team.\n"+
		"#   match:\n#     - {language: bash, code: \"rm -rf /\"}\n#     - {language: bash, code: \"true\"}\n#   not_match:\n#     - {language: bash, code: \"true\"}\n")
	p := load(t, policy.Config{Scanner: always{}, User: map[string]fs.FS{"team": os.DirFS(dir)}})
	d := p.Judge(t.Context(), policy.Request{Language: "bash", Code: []byte("rm -rf /")})
	at := slices.IndexFunc(d.Findings, func(f sandbox.Finding) bool { return f.ID == "user/team/A" })
	if at < 0 {
		t.Fatalf("%+v", d.Findings)
	}
	f := d.Findings[at]
	if f.Severity != sandbox.High || f.Verdict != sandbox.Ask || f.Title != "Deletes everything" || f.Category != "ours" || f.Remediation != "Ask the team." {
		t.Fatalf("the annotation says nothing: %+v", f)
	}
	if !slices.ContainsFunc(p.Rules(), func(r policy.Rule) bool { return r.ID == "user/team/A" && len(r.Match) == 2 }) {
		t.Fatal("the rule is not listed")
	}
	passed, failures, err := p.Test(t.Context(), dir)
	if err != nil || passed != 3 || len(failures) != 2 || !strings.Contains(failures[1], `"true"`) {
		t.Fatalf("%d %q %v", passed, failures, err)
	}
}

package egress_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/egress"
	"github.com/caisson-dev/caisson/sandbox"
)

// TestNamed puts the lists' hosts into the place of their names, the user's before ours.
func TestNamed(t *testing.T) {
	t.Parallel()
	cfg := egress.Config{Hosts: map[string][]string{"ours": {"git.a.test", "10.0.0.5:443"}, "github": {"github.a.test"}, "none": {}}}
	n := sandbox.Network{Mode: sandbox.NetworkAllow, Allow: []string{"a.test", "ours", "github", "python-packages", "ours:443"}, Deny: []string{"node-packages", "none"}}
	got := cfg.Named(n)
	want := sandbox.Network{
		Mode: sandbox.NetworkAllow, Deny: []string{"registry.npmjs.org"},
		Allow: []string{"a.test", "git.a.test", "10.0.0.5:443", "github.a.test", "pypi.org", "files.pythonhosted.org", "ours:443"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if n.Allow[1] != "ours" {
		t.Error("the caller's list was written to")
	}
	// Each list of ours can be used.
	all := egress.Config{}.Named(sandbox.Network{Mode: sandbox.NetworkAllow, Allow: []string{"python-packages", "node-packages", "github"}})
	if err := all.Check(); err != nil || len(all.Allow) != 9 {
		t.Errorf("%v: %v", all, err)
	}
}

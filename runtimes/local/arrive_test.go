//go:build linux

package local

import (
	"encoding/json"
	"testing"

	"github.com/caisson-dev/caisson/sandbox"
)

// What can arrive in a sandbox that was made for nobody is its user and the workspace.
// Where anything else differs, the requests stay apart.
func TestAsAsked(t *testing.T) {
	t.Parallel()
	spec := func(change func(*sandbox.Spec)) sandbox.Spec {
		s := sandbox.Spec{Image: sandbox.Image{ID: "host"}, Identity: sandbox.Identity{UID: 20100, RunnerUID: 20101}}
		change(&s)
		s, err := Resolve(s, "test", sandbox.NetworkNone)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	request := func(s sandbox.Spec) map[string]json.RawMessage {
		text, err := json.Marshal(map[string]any{"tmpfs": FileSystems(s), "workspace": s.Workspace})
		rest := map[string]json.RawMessage{}
		if err == nil {
			err = json.Unmarshal(text, &rest)
		}
		if err != nil {
			t.Fatal(err)
		}
		return rest
	}
	volume := func(s *sandbox.Spec) {
		s.Workspace = sandbox.Workspace{Kind: sandbox.WorkspaceVolume, Source: "caisson-x"}
	}
	empty := func(*sandbox.Spec) {}
	for name, tt := range map[string]struct {
		made, asked   func(*sandbox.Spec)
		arrives, same bool
	}{
		"nothing":      {empty, empty, false, true},
		"a user":       {empty, func(s *sandbox.Spec) { s.Identity.UID = 20200 }, true, true},
		"a volume":     {empty, volume, true, true},
		"a folder":     {empty, func(s *sandbox.Spec) { s.Workspace = sandbox.Workspace{Kind: sandbox.WorkspaceHost, Source: "/srv"} }, true, true},
		"a new volume": {empty, func(s *sandbox.Spec) { s.Workspace.Kind = sandbox.WorkspaceVolume }, false, false},
		"over another": {volume, func(s *sandbox.Spec) { volume(s); s.Workspace.Source = "caisson-y" }, false, false},
		"a larger one": {empty, func(s *sandbox.Spec) { s.Workspace.Size = sandbox.GiB }, false, false},
		"a larger /tmp": {empty, func(s *sandbox.Spec) {
			volume(s)
			s.Limits.Tmp = sandbox.GiB
		}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := spec(tt.asked)
			made, asked := request(spec(tt.made)), request(want)
			arrives := asAsked(made, asked, want)
			a, _ := json.Marshal(made)
			b, _ := json.Marshal(asked)
			if same := string(a) == string(b); arrives != tt.arrives || same != tt.same {
				t.Errorf("arrives: %v, and what is left is the same: %v\n%s\n%s", arrives, same, a, b)
			}
		})
	}
}

package pool_test

import (
	"testing"

	"github.com/caisson-dev/caisson/manager/pool"
	"github.com/caisson-dev/caisson/sandbox"
)

// What is settled when a sandbox is made tells kinds apart; what its claim settles does
// not. What is somebody's own no pool has.
func TestKindOf(t *testing.T) {
	t.Parallel()
	of := func(change func(*sandbox.Spec)) (pool.Kind, bool) {
		spec := sandbox.Spec{Language: "python", Image: sandbox.Image{ID: "sha256:1"}}
		change(&spec)
		return pool.KindOf("docker", "", spec)
	}
	usual, _ := of(func(*sandbox.Spec) {})
	for what, change := range map[string]func(*sandbox.Spec){
		"language":      func(s *sandbox.Spec) { s.Language = "node" },
		"image":         func(s *sandbox.Spec) { s.Image.ID = "sha256:2" },
		"OCI runtime":   func(s *sandbox.Spec) { s.OCIRuntime = "runsc" },
		"network":       func(s *sandbox.Spec) { s.Network.Mode = sandbox.NetworkBridge },
		"workspace":     func(s *sandbox.Spec) { s.Workspace.Kind = sandbox.WorkspaceVolume },
		"its size":      func(s *sandbox.Spec) { s.Limits.Workspace = sandbox.GiB },
		"/tmp":          func(s *sandbox.Spec) { s.Limits.Tmp = sandbox.GiB },
		"shared memory": func(s *sandbox.Spec) { s.Limits.Shm = sandbox.GiB },
		"open files":    func(s *sandbox.Spec) { s.Limits.OpenFiles = 7 },
		"file size":     func(s *sandbox.Spec) { s.Limits.FileSize = sandbox.MiB },
	} {
		if k, ok := of(change); !ok || k == usual {
			t.Errorf("another %s: %+v, %v", what, k, ok)
		}
	}
	for what, change := range map[string]func(*sandbox.Spec){
		"identity":   func(s *sandbox.Spec) { s.Identity = sandbox.IdentityFor("another") },
		"session":    func(s *sandbox.Spec) { s.Session, s.Holder = "another", "another" },
		"memory":     func(s *sandbox.Spec) { s.Limits.Memory = sandbox.GiB },
		"processors": func(s *sandbox.Spec) { s.Limits.CPUs = 0.5 },
		"processes":  func(s *sandbox.Spec) { s.Limits.PIDs = 7 },
		"hosts":      func(s *sandbox.Spec) { s.Network.Mode = sandbox.NetworkAllow },
	} {
		if k, ok := of(change); !ok || k != usual {
			t.Errorf("another %s: %+v, %v", what, k, ok)
		}
	}
	for what, change := range map[string]func(*sandbox.Spec){
		"kept":     func(s *sandbox.Spec) { s.Keep = true },
		"labels":   func(s *sandbox.Spec) { s.Labels = map[string]string{"a": "b"} },
		"overlay":  func(s *sandbox.Spec) { s.Workspace.Layers = []string{"a"} },
		"a folder": func(s *sandbox.Spec) { s.Workspace = sandbox.Workspace{Kind: sandbox.WorkspaceHost, Source: "/x"} },
	} {
		if k, ok := of(change); ok {
			t.Errorf("%s: a pool has %+v", what, k)
		}
	}
	named, _ := pool.KindOf("docker", "mine:1", sandbox.Spec{Language: "python", Image: sandbox.Image{ID: "sha256:1"}})
	elsewhere, _ := pool.KindOf("bubblewrap", "", sandbox.Spec{Language: "python", Image: sandbox.Image{ID: "sha256:1"}})
	if named == usual || elsewhere == usual {
		t.Error("a named image, or another runtime, is no other kind")
	}
}

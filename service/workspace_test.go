package service

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/sandbox"
)

// TestWorkspaceOfRequest has nobody reach a folder or a volume by its own name.
func TestWorkspaceOfRequest(t *testing.T) {
	t.Parallel()
	s := &Service{cfg: Config{Folders: map[string]string{"data": "/srv/data"}}}
	here := sandbox.Local{Folder: "/home/me/work"}
	host := func(source string) sandbox.Workspace {
		return sandbox.Workspace{Kind: sandbox.WorkspaceHost, Source: source}
	}
	for name, tt := range map[string]struct {
		asked sandbox.Workspace
		local sandbox.Local
		want  sandbox.Workspace
	}{
		"nothing":        {},
		"memory":         {asked: sandbox.Workspace{Kind: "tmpfs", Size: 4096}, want: sandbox.Workspace{Kind: "tmpfs", Size: 4096}},
		"by its name":    {host("data"), sandbox.Local{}, host("/srv/data")},
		"beside a local": {host("data"), here, host("/srv/data")},
		"the caller's":   {host(""), here, host("/home/me/work")},
	} {
		if got, err := s.workspace(tt.asked, tt.local); err != nil || !cmp.Equal(got, tt.want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for name, asked := range map[string]sandbox.Workspace{
		"a path": host("/srv/data"), "another path": host("/etc"), "no name": host(""), "another name": host("etc"),
		"a volume": {Kind: sandbox.WorkspaceVolume, Source: "caisson-ws-1"}, "of no kind": {Source: "caisson-ws-1"},
		"layers": {Kind: sandbox.WorkspaceOverlay, Layers: []string{"caisson-ws-1"}},
	} {
		if w, err := s.workspace(asked, sandbox.Local{}); !errors.Is(err, sandbox.Invalid) || sandbox.HintOf(err) == "" {
			t.Errorf("%s: %+v, %v", name, w, err)
		}
	}
}

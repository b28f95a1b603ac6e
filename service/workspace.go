package service

import (
	"maps"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/sandbox"
)

// workspace settles what a request says of a workspace. A folder of the host is
// the one that the caller opens on its own side, or one that is configured under
// the name that stands as its source. Names of volumes are caisson's own. Errors:
// Invalid.
func (s *Service) workspace(w sandbox.Workspace, local sandbox.Local) (sandbox.Workspace, error) {
	switch {
	case w.Layers != nil || w.Kind != sandbox.WorkspaceHost && w.Source != "":
		return w, sandbox.Errorf(sandbox.Invalid, "a workspace's volumes are not chosen").WithHint("leave its source and its layers out")
	case w.Kind != sandbox.WorkspaceHost:
	case w.Source == "" && local.Folder != "":
		w.Source = local.Folder
	default:
		folder, ok := s.cfg.Folders[w.Source]
		if !ok {
			hint := "--workspace takes volume, tmpfs, a folder's path with a slash, or a name under \"folders\" in caisson.yaml"
			if names := slices.Sorted(maps.Keys(s.cfg.Folders)); len(names) > 0 {
				hint += ": " + strings.Join(names, ", ")
			}
			return w, sandbox.Errorf(sandbox.Invalid, "unknown workspace %q", w.Source).WithHint("%s", hint)
		}
		w.Source = folder
	}
	return w, nil
}

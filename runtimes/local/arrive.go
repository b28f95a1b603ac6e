//go:build linux

package local

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/caisson-dev/caisson/internal/mountns"
	"github.com/caisson-dev/caisson/sandbox"
)

// A sandbox that was made for nobody, with an empty workspace in memory, gets the user
// and the workspace of who claims it from outside, as a container does: the workspace
// is mounted over the empty one in the sandbox's mount namespace, and goes with that.

// Adopts implements [runtimes.Adopter]: for root, whose users are the sandboxes'.
func (p Place) Adopts(w sandbox.Workspace) bool {
	return p.Claims && !p.Alone && w.Kind != sandbox.WorkspaceOverlay
}

// asAsked takes out of two requests what can arrive in a sandbox that was made by the
// first one, where nothing else of it differs, and reports whether something has to.
func asAsked(made, asked map[string]json.RawMessage, spec sandbox.Spec) bool {
	had, old, err := place(made)
	want, now, failed := place(asked)
	if err != nil || failed != nil {
		return false // it differs all the same
	}
	brings := old.Kind == sandbox.WorkspaceTmpfs && now.Kind != sandbox.WorkspaceTmpfs && now.Source != ""
	if brings {
		had = slices.DeleteFunc(had, func(t Tmpfs) bool { return t.Target == sandbox.WorkspaceDir })
	}
	other := false
	for i := range had {
		if had[i].UID != 0 && had[i].UID != spec.Identity.UID {
			had[i].UID, other = spec.Identity.UID, true
		}
	}
	if !brings && !other || !slices.Equal(had, want) {
		return false
	}
	delete(made, "tmpfs")
	delete(asked, "tmpfs")
	if brings {
		delete(made, "workspace")
		delete(asked, "workspace")
	}
	return true
}

// place is what of a request is a user's own.
func place(request map[string]json.RawMessage) (inMemory []Tmpfs, workspace sandbox.Workspace, err error) {
	err = errors.Join(json.Unmarshal(request["tmpfs"], &inMemory), json.Unmarshal(request["workspace"], &workspace))
	return inMemory, workspace, err
}

// arrive makes a sandbox that nobody has used that of a spec's user and workspace.
func (i *Instance) arrive(rec Record, spec sandbox.Spec) error {
	dir := ""
	switch w := spec.Workspace; w.Kind {
	case sandbox.WorkspaceHost:
		dir = w.Source
	case sandbox.WorkspaceVolume:
		h := i.Handle()
		h.Session, h.Holder, h.Language = spec.Session, spec.Holder, spec.Language
		var err error
		if dir, err = i.place.makeVolume(w.Source, h, spec.Identity); err != nil {
			return err
		}
	default: // what was made with the sandbox
	}
	no := func(err error) error {
		return sandbox.Errorf(sandbox.Unsupported, "give a workspace to a sandbox that runs: %w", err)
	}
	var workspace *os.File
	if dir != "" {
		var err error
		if workspace, err = mountns.Clone(dir); err != nil {
			return no(err)
		}
		defer workspace.Close()
	}
	own := i.place.Folder(i.handle.ID)
	for name, text := range Names(spec.Identity) {
		if err := os.WriteFile(filepath.Join(own, name), []byte(text), 0o600); err != nil { // it is there, and readable
			return no(err)
		}
	}
	private, err := os.Stat(filepath.Join(own, "io"))
	if err == nil {
		err = mountns.Move(rec.PID, IODir, private, workspace, spec.Identity.UID)
	}
	if err != nil {
		return no(err)
	}
	return nil
}

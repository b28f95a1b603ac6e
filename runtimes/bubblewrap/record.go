//go:build linux

package bubblewrap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// suffix keeps our folders apart from those of other runtimes.
const suffix = ".bw"

// recordName is the file that tells what a folder is for.
const recordName = "record.json"

// record is what is kept of a sandbox, or of a volume.
type record struct {
	Handle runtimes.Handle `json:"handle"`
	// PID is the agent's, as this host counts, and Start when that was started:
	// together they are never used twice. 0 is not known.
	PID   int    `json:"pid,omitempty"`
	Start string `json:"start,omitempty"`
}

func (r *Runtime) folder(id sandbox.ID) string { return filepath.Join(r.cfg.Base, string(id)+suffix) }

func (r *Runtime) volume(name string) string {
	return filepath.Join(r.cfg.State, "volumes", name)
}

// ownVolume names the volume of a sandbox that goes with it.
func ownVolume(id sandbox.ID) string { return "caisson-" + string(id) }

// writeRecord writes a record whole or not at all.
func writeRecord(dir string, rec record) error {
	b, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	name := filepath.Join(dir, recordName)
	if err := os.WriteFile(name+".new", b, 0o600); err != nil {
		return fmt.Errorf("write down a sandbox: %w", err)
	}
	return os.Rename(name+".new", name)
}

func readRecord(dir string) (rec record, err error) {
	b, err := os.ReadFile(filepath.Join(dir, recordName))
	if err == nil {
		err = json.Unmarshal(b, &rec)
	}
	return rec, err
}

// List returns the sandboxes and volumes that have a folder.
func (r *Runtime) List(context.Context) ([]runtimes.Handle, error) {
	// A volume comes before its sandbox and goes after it.
	volumes, err := entries(filepath.Join(r.cfg.State, "volumes"))
	if err != nil {
		return nil, err
	}
	folders, err := entries(r.cfg.Base)
	if err != nil {
		return nil, err
	}
	var handles []runtimes.Handle
	seen := map[sandbox.ID]bool{}
	for _, f := range folders {
		name, ours := strings.CutSuffix(f.Name(), suffix)
		id := sandbox.ID(name)
		if !ours || !id.Valid() {
			continue
		}
		h, err := r.listed(r.folder(id), runtimes.Handle{Kind: runtimes.KindFolder, ID: id, Name: f.Name()})
		if err != nil {
			continue // it went meanwhile
		}
		seen[id] = true
		handles = append(handles, h)
	}
	for _, v := range volumes {
		h, err := r.listed(r.volume(v.Name()), runtimes.Handle{Kind: runtimes.KindVolume, Name: v.Name(), ID: volumeID(v.Name())})
		if err == nil && h.ID.Valid() && !seen[h.ID] {
			handles = append(handles, h)
		}
	}
	return handles, nil
}

// listed is what a folder's record tells, or bare where there is none yet.
func (r *Runtime) listed(dir string, bare runtimes.Handle) (runtimes.Handle, error) {
	st, err := os.Stat(dir)
	if err != nil {
		return bare, err
	}
	rec, err := readRecord(dir)
	if err != nil {
		bare.Version, bare.Runtime, bare.Created = runtimes.HandleVersion, Name, st.ModTime()
		return bare, nil
	}
	if rec.Handle.Kind == runtimes.KindSandbox {
		rec.Handle.Running = alive(rec.PID, rec.Start)
	}
	return rec.Handle, nil
}

func entries(dir string) ([]fs.DirEntry, error) {
	list, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, sandbox.Errorf(sandbox.Denied, "list sandboxes: %w", err)
	}
	return list, nil
}

// volumeID is the id that a volume's name ends in, or "".
func volumeID(name string) sandbox.ID {
	if i := strings.LastIndexByte(name, '-'); i >= 0 {
		return sandbox.ID(name[i+1:])
	}
	return ""
}

// Attach finds a sandbox by its handle. Errors: NotFound where nothing is left of
// it, Unsupported for a handle of another version.
func (r *Runtime) Attach(_ context.Context, h runtimes.Handle) (runtimes.Instance, error) {
	if h.Runtime != Name || !h.ID.Valid() || h.Kind == runtimes.KindVolume && !filepath.IsLocal(h.Name) {
		return nil, sandbox.Errorf(sandbox.Invalid, "handle %q of runtime %q", h.ID, h.Runtime)
	}
	if h.Version != runtimes.HandleVersion {
		return nil, sandbox.Errorf(sandbox.Unsupported, "handle of version %d; this caisson knows %d", h.Version, runtimes.HandleVersion).
			WithHint("remove it with the caisson that made it")
	}
	if h.Kind != runtimes.KindSandbox {
		return r.instance(h), nil // there is a part to destroy: the listing saw it
	}
	rec, err := readRecord(r.folder(h.ID))
	if err == nil {
		h = rec.Handle
		h.Running = alive(rec.PID, rec.Start)
		return r.instance(h), nil
	}
	for _, left := range []string{r.folder(h.ID), r.volume(ownVolume(h.ID))} {
		if _, err := os.Lstat(left); err == nil {
			return r.instance(h), nil
		}
	}
	return nil, sandbox.Errorf(sandbox.NotFound, "there is no sandbox %s", h.ID.Short())
}

// makeVolume makes a volume, which belongs to the sandbox's user, where it is not
// there yet.
func (r *Runtime) makeVolume(name string, h runtimes.Handle, who sandbox.Identity) (string, error) {
	dir := r.volume(name)
	data := filepath.Join(dir, "data")
	if _, err := os.Stat(data); err == nil {
		return data, nil
	}
	h.Kind, h.Name, h.Running = runtimes.KindVolume, name, false
	if id := volumeID(name); id.Valid() && id != h.ID {
		h.ID, h.Language = id, ""
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make a volume: %w", err)
	}
	if err := writeRecord(dir, record{Handle: h}); err != nil {
		return "", err
	}
	// It is there once it is its user's: what was given up before is made again.
	if err := os.Mkdir(data+".new", 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("make a volume: %w", err)
	}
	if err := os.Chown(data+".new", who.UID, who.UID); err != nil {
		return "", fmt.Errorf("give a volume to its user: %w", err)
	}
	return data, os.Rename(data+".new", data)
}

//go:build linux

package local

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

// recordName is the file that tells what a folder is for.
const recordName = "record.json"

// Record is what is kept of a sandbox, or of a volume.
type Record struct {
	Handle runtimes.Handle `json:"handle"`
	// PID is the agent's, as this host counts, and Start when that was started:
	// together they are never used twice. 0 is not known.
	PID   int    `json:"pid,omitempty"`
	Start string `json:"start,omitempty"`
	// Made is what the sandbox was made of, where it can be handed over.
	Made *Made `json:"made,omitempty"`
}

// Place is where a runtime of this host keeps what it makes. Its methods are safe
// for concurrent use.
type Place struct {
	Name   string // the runtime's
	Suffix string // of its folders in Base, which other runtimes have too
	Base   string // the folder for the sandboxes' own
	State  string // the folder for volumes
	Groups Groups
	// Claims says that its sandboxes can be made before anybody asks for them.
	Claims bool
	// Alone says that all processes belong to one user, so that nothing can be
	// given to another.
	Alone bool
}

// MaxBase is how many bytes a base may have: a socket's path has at most 107.
const MaxBase = 107 - len("/12345678901234567890123456789012.xx/io/"+readyName)

// Check reports what is wrong with a place. Errors: Invalid.
func (p Place) Check() error {
	if !filepath.IsAbs(p.State) {
		return sandbox.Errorf(sandbox.Invalid, "%s runtime: the state folder %q has to be an absolute path", p.Name, p.State)
	}
	if !filepath.IsAbs(p.Base) || len(p.Base) > MaxBase {
		return sandbox.Errorf(sandbox.Invalid, "the folder for sockets, %q, must be an absolute path of at most %d bytes", p.Base, MaxBase).
			WithHint("set CAISSON_RUNTIME_DIR to a short path of your own")
	}
	return nil
}

// Folder is a sandbox's own.
func (p Place) Folder(id sandbox.ID) string { return filepath.Join(p.Base, string(id)+p.Suffix) }

func (p Place) volume(name string) string {
	return filepath.Join(p.State, "volumes", name)
}

// OwnVolume names the volume of a sandbox that goes with it.
func OwnVolume(id sandbox.ID) string { return "caisson-" + string(id) }

// writeRecord writes a record whole or not at all.
func writeRecord(dir string, rec Record) error {
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

func readRecord(dir string) (rec Record, err error) {
	b, err := os.ReadFile(filepath.Join(dir, recordName))
	if err == nil {
		err = json.Unmarshal(b, &rec)
	}
	return rec, err
}

// List returns the sandboxes and volumes that have a folder.
func (p Place) List(context.Context) ([]runtimes.Handle, error) {
	// A volume comes before its sandbox and goes after it.
	volumes, err := entries(filepath.Join(p.State, "volumes"))
	if err != nil {
		return nil, err
	}
	folders, err := entries(p.Base)
	if err != nil {
		return nil, err
	}
	var handles []runtimes.Handle
	seen := map[sandbox.ID]bool{}
	for _, f := range folders {
		name, ours := strings.CutSuffix(f.Name(), p.Suffix)
		id := sandbox.ID(name)
		if !ours || !id.Valid() {
			continue
		}
		h, err := p.listed(p.Folder(id), runtimes.Handle{Kind: runtimes.KindFolder, ID: id, Name: f.Name()})
		if err != nil {
			continue // it went meanwhile
		}
		seen[id] = true
		handles = append(handles, h)
	}
	for _, v := range volumes {
		h, err := p.listed(p.volume(v.Name()), runtimes.Handle{Kind: runtimes.KindVolume, Name: v.Name(), ID: volumeID(v.Name())})
		if err == nil && h.ID.Valid() && !seen[h.ID] {
			handles = append(handles, h)
		}
	}
	return handles, nil
}

// listed is what a folder's record tells, or bare where there is none yet.
func (p Place) listed(dir string, bare runtimes.Handle) (runtimes.Handle, error) {
	st, err := os.Stat(dir)
	if err != nil {
		return bare, err
	}
	rec, err := readRecord(dir)
	if err != nil {
		bare.Version, bare.Runtime, bare.Created = runtimes.HandleVersion, p.Name, st.ModTime()
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
func (p Place) Attach(_ context.Context, h runtimes.Handle) (runtimes.Instance, error) {
	if h.Runtime != p.Name || !h.ID.Valid() || h.Kind == runtimes.KindVolume && !filepath.IsLocal(h.Name) {
		return nil, sandbox.Errorf(sandbox.Invalid, "handle %q of runtime %q", h.ID, h.Runtime)
	}
	if h.Version != runtimes.HandleVersion {
		return nil, sandbox.Errorf(sandbox.Unsupported, "handle of version %d; this caisson knows %d", h.Version, runtimes.HandleVersion).
			WithHint("remove it with the caisson that made it")
	}
	if h.Kind != runtimes.KindSandbox {
		return p.Instance(h), nil // there is a part to destroy: the listing saw it
	}
	rec, err := readRecord(p.Folder(h.ID))
	if err == nil {
		h = rec.Handle
		h.Running = alive(rec.PID, rec.Start)
		return p.Instance(h), nil
	}
	for _, left := range []string{p.Folder(h.ID), p.volume(OwnVolume(h.ID))} {
		if _, err := os.Lstat(left); err == nil {
			return p.Instance(h), nil
		}
	}
	return nil, sandbox.Errorf(sandbox.NotFound, "there is no sandbox %s", h.ID.Short())
}

// makeVolume makes a volume, which belongs to the sandbox's user, where it is not
// there yet.
func (p Place) makeVolume(name string, h runtimes.Handle, who sandbox.Identity) (string, error) {
	dir := p.volume(name)
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
	if err := writeRecord(dir, Record{Handle: h}); err != nil {
		return "", err
	}
	// It is there once it is its user's: what was given up before is made again.
	if err := os.Mkdir(data+".new", 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("make a volume: %w", err)
	}
	if !p.Alone {
		if err := os.Chown(data+".new", who.UID, who.UID); err != nil {
			return "", fmt.Errorf("give a volume to its user: %w", err)
		}
	}
	return data, os.Rename(data+".new", data)
}

// Limited says in a runtime's capabilities which limits hold, and what follows.
func (p Place) Limited(c *runtimes.Capabilities) {
	if p.Groups.Work() {
		c.Memory, c.CPU, c.PIDs, c.Pause, c.Sample = runtimes.Enforced, runtimes.Enforced, runtimes.Enforced, true, true
	}
}

package manager

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/caisson-dev/caisson/manager/box"
	"github.com/caisson-dev/caisson/sandbox"
)

// Files is a session's workspace, through the agent of one of its sandboxes and
// as the session's user. It is safe for concurrent use, and good for as long as
// that sandbox is.
type Files struct {
	b *box.Box
}

// Files opens a session's workspace. Where the session has no sandbox yet, or
// none any more, it makes one.
func (m *Manager) Files(ctx context.Context, session string) (*Files, error) {
	v, err := m.running(ctx, session)
	if err != nil {
		return nil, err
	}
	for _, rec := range v.Sandboxes {
		if rec.State == sandbox.StateCreating {
			continue
		}
		b, err := m.connect(ctx, v, rec)
		if err == nil {
			return &Files{b}, nil
		}
		if !errors.Is(err, box.ErrEnded) {
			return nil, err
		}
	}
	lang := sandbox.Language{Image: v.Image}
	if v.Language != "" {
		if lang, err = m.cfg.Images.Language(v.Language); err != nil {
			return nil, err
		}
	}
	b, _, err := m.boxFor(ctx, v, lang, asker{})
	if err != nil {
		return nil, err
	}
	return &Files{b}, nil
}

// Stat describes one entry; a link is not followed. Errors of all of these:
// NotFound, Invalid for a path that leaves the workspace, Denied, Conflict,
// Exhausted, Unavailable.
func (f *Files) Stat(ctx context.Context, name string) (sandbox.FileInfo, error) {
	return f.b.Client.Stat(ctx, sandbox.RoleUser, name)
}

// Tree lists what is below a folder, down to depth levels; 0 is all of them.
func (f *Files) Tree(ctx context.Context, name string, depth int) iter.Seq2[sandbox.FileInfo, error] {
	return f.b.Client.Tree(ctx, sandbox.RoleUser, name, depth)
}

// Read copies a file to w, from offset on, at most length bytes unless 0.
func (f *Files) Read(ctx context.Context, name string, offset, length int64, w io.Writer) (int64, error) {
	return f.b.Client.ReadFile(ctx, sandbox.RoleUser, name, offset, length, w)
}

// Write copies r into a file, which appears whole or not at all. mode 0 keeps
// that of a file that is there, and is 0644 otherwise.
func (f *Files) Write(ctx context.Context, name string, mode uint32, r io.Reader) (int64, error) {
	return f.b.Client.WriteFile(ctx, sandbox.RoleUser, name, mode, r)
}

// Put copies files into the workspace.
func (f *Files) Put(ctx context.Context, files []sandbox.File, local sandbox.Local) error {
	if err := checkFiles(files); err != nil {
		return err
	}
	return f.b.Client.Put(ctx, sandbox.RoleUser, files, local)
}

// PutTar unpacks a tar stream below a folder of the workspace.
func (f *Files) PutTar(ctx context.Context, dir string, r io.Reader) (sandbox.Moved, error) {
	return f.b.Client.PutTar(ctx, sandbox.RoleUser, dir, r)
}

// Get writes a tar stream of a folder to w, or of some paths below it. Nothing
// of it has been checked.
func (f *Files) Get(ctx context.Context, dir string, paths []string, w io.Writer) (sandbox.Moved, error) {
	return f.b.Client.Get(ctx, sandbox.RoleUser, dir, paths, w)
}

// Mkdir makes a folder and those above it.
func (f *Files) Mkdir(ctx context.Context, name string, mode uint32) error {
	return f.b.Client.Mkdir(ctx, sandbox.RoleUser, name, mode)
}

// SetAttributes replaces the extended attributes of an entry: those of the namespace
// "user.", which is left out of their names.
func (f *Files) SetAttributes(ctx context.Context, name string, all map[string]string) error {
	return f.b.Client.SetAttributes(ctx, sandbox.RoleUser, name, all)
}

// Move renames an entry, also into another folder, which it makes.
func (f *Files) Move(ctx context.Context, from, to string) error {
	return f.b.Client.Move(ctx, sandbox.RoleUser, from, to)
}

// Remove removes an entry; a folder with something in it only if recursive.
func (f *Files) Remove(ctx context.Context, name string, recursive bool) error {
	return f.b.Client.Remove(ctx, sandbox.RoleUser, name, recursive)
}

// Watch tells of changes in a folder until the loop is left or ctx is done. The
// first event has the Op "ready".
func (f *Files) Watch(ctx context.Context, name string, recursive bool) iter.Seq2[sandbox.FileEvent, error] {
	return f.b.Client.Watch(ctx, sandbox.RoleUser, name, recursive)
}

// joinErr joins two errors and is nil where both are.
func joinErr(a, b error) error {
	if b == nil {
		return a
	}
	return errors.Join(a, b)
}

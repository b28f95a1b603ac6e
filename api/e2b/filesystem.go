package e2b

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"path"

	"connectrpc.com/connect"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

// files opens the files of the sandbox that a call is for, and makes a client's
// path what caisson has.
func (s *Server) files(ctx context.Context, name string) (api.Files, string, error) {
	at, err := placeOf(name)
	if err != nil {
		return nil, "", err
	}
	f, err := s.svc.Files(ctx, viewFrom(ctx).Name)
	return f, at, err
}

// types are the kinds of entries by caisson's words. Others have none.
var types = map[string]string{"file": "FILE_TYPE_FILE", "dir": "FILE_TYPE_DIRECTORY", "link": "FILE_TYPE_SYMLINK"}

// modes are the first letters of permissions.
var modes = map[string]fs.FileMode{"dir": fs.ModeDir, "link": fs.ModeSymlink}

// entryOf is an entry as clients have it.
func entryOf(i sandbox.FileInfo) entry {
	at := shown(i.Path)
	e := entry{
		Name: path.Base(at), Type: types[i.Type], Path: at, Size: i.Size, Mode: i.Mode, Permissions: (fs.FileMode(i.Mode&0o777) | modes[i.Type]).String(),
		Owner: defaultUser, Group: defaultUser, ModifiedTime: i.MTime.UTC(), Metadata: metadataFrom(i.Attributes),
	}
	if e.Type == "" {
		e.Type = "FILE_TYPE_UNSPECIFIED"
	}
	if i.Type == "link" {
		e.SymlinkTarget = &i.Target
	}
	return e
}

func (s *Server) stat(ctx context.Context, in *pathRequest) (*entryAnswer, error) {
	f, at, err := s.files(ctx, in.Path)
	if err != nil {
		return nil, err
	}
	return entryAt(ctx, f, at)
}

func entryAt(ctx context.Context, f api.Files, at string) (*entryAnswer, error) {
	i, err := f.Stat(ctx, at)
	if err != nil {
		return nil, err
	}
	return &entryAnswer{entryOf(i)}, nil
}

// listDir lists what is in a folder, and below it down to a depth.
func (s *Server) listDir(ctx context.Context, in *listRequest) (*entriesAnswer, error) {
	f, at, err := s.files(ctx, in.Path)
	if err != nil {
		return nil, err
	}
	dir, err := f.Stat(ctx, at)
	if err != nil {
		return nil, err
	}
	if dir.Type != "dir" {
		return nil, sandbox.Errorf(sandbox.Invalid, "%s is not a folder", shown(at))
	}
	list := &entriesAnswer{Entries: []entry{}}
	for i, err := range f.Tree(ctx, at, int(max(1, min(in.Depth, 1<<20)))) {
		if err != nil {
			return nil, err
		}
		if i.Path != dir.Path {
			list.Entries = append(list.Entries, entryOf(i))
		}
	}
	return list, nil
}

// makeDir makes a folder and those above it. One that is there is told apart.
func (s *Server) makeDir(ctx context.Context, in *pathRequest) (*entryAnswer, error) {
	f, at, err := s.files(ctx, in.Path)
	if err != nil {
		return nil, err
	}
	switch i, err := f.Stat(ctx, at); {
	case err == nil && i.Type == "dir":
		return nil, connect.NewError(connect.CodeAlreadyExists, errors.New(shown(at)+" is there already"))
	case err == nil:
		return nil, sandbox.Errorf(sandbox.Invalid, "%s is there, and is no folder", shown(at))
	case !errors.Is(err, sandbox.NotFound):
		return nil, err
	}
	if err := f.Mkdir(ctx, at, 0o755); err != nil {
		return nil, err
	}
	return entryAt(ctx, f, at)
}

func (s *Server) move(ctx context.Context, in *moveRequest) (*entryAnswer, error) {
	f, from, err := s.files(ctx, in.Source)
	if err != nil {
		return nil, err
	}
	to, err := placeOf(in.Destination)
	if err != nil {
		return nil, err
	}
	if err := f.Move(ctx, from, to); err != nil {
		return nil, err
	}
	return entryAt(ctx, f, to)
}

// remove removes an entry with all that is in it. Nothing there is no error.
func (s *Server) remove(ctx context.Context, in *pathRequest) (*empty, error) {
	f, at, err := s.files(ctx, in.Path)
	if err != nil {
		return nil, err
	}
	if err := f.Remove(ctx, at, true); err != nil && !errors.Is(err, sandbox.NotFound) {
		return nil, err
	}
	return &empty{}, nil
}

// events are the kinds of changes by caisson's words.
var events = map[string]string{
	"create": "EVENT_TYPE_CREATE", "write": "EVENT_TYPE_WRITE", "remove": "EVENT_TYPE_REMOVE", "rename": "EVENT_TYPE_RENAME", "chmod": "EVENT_TYPE_CHMOD",
}

// watchDir tells of changes in a folder until the client leaves. Where some were
// lost the watch ends with an error, since clients have no word for it.
func (s *Server) watchDir(ctx context.Context, h http.Header, in *watchRequest, to *sender[watchEvent]) error {
	f, at, err := s.files(ctx, in.Path)
	if err != nil {
		return err
	}
	dir, err := f.Stat(ctx, at)
	if err != nil {
		return err
	}
	if dir.Type != "dir" {
		return sandbox.Errorf(sandbox.Invalid, "%s is not a folder", shown(at))
	}
	for e, err := range f.Watch(ctx, at, in.Recursive) {
		if err != nil {
			return err
		}
		switch e.Op {
		case "ready":
			if err := to.send(&watchEvent{Start: &empty{}}); err != nil {
				return err
			}
			to.keepAlive(h, &watchEvent{KeepAlive: &empty{}})
			continue
		case "overflow":
			return sandbox.Errorf(sandbox.Exhausted, "changes came faster than they were read, and some were lost").WithHint("list the folder, and watch it again")
		}
		if err := to.send(&watchEvent{Filesystem: changeOf(ctx, f, at, e, in.IncludeEntry)}); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// changeOf is a change as clients have it: by its name below the folder.
func changeOf(ctx context.Context, f api.Files, dir string, e sandbox.FileEvent, withEntry bool) *fileEvent {
	at := shown(e.Path)
	name, _ := within(at, shown(dir))
	out := &fileEvent{Name: name, Type: events[e.Op]}
	if withEntry && e.Op != "remove" {
		if found, err := entryAt(ctx, f, e.Path); err == nil { // it may be gone again
			out.Entry = &found.Entry
		}
	}
	return out
}

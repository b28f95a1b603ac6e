package api

import (
	"context"
	"io"
	"iter"

	"github.com/caisson-dev/caisson/sandbox"
)

// Workspaces opens what sessions keep.
type Workspaces interface {
	// Files opens a session's workspace.
	Files(ctx context.Context, session string) (Files, error)
}

// Files is a session's workspace, as its user sees it. Paths are relative to
// it, or begin with /workspace; nothing leads out of it. Those that begin with
// /tmp, /var/tmp or the home folder are of the session's first sandbox, and can
// not be given to Put, PutTar, Get and Watch. Errors: NotFound,
// Invalid, Denied, Conflict, Exhausted, Unavailable.
type Files interface {
	Stat(ctx context.Context, name string) (sandbox.FileInfo, error)
	Tree(ctx context.Context, name string, depth int) iter.Seq2[sandbox.FileInfo, error]
	Read(ctx context.Context, name string, offset, length int64, w io.Writer) (int64, error)
	Write(ctx context.Context, name string, mode uint32, r io.Reader) (int64, error)
	Put(ctx context.Context, files []sandbox.File, local sandbox.Local) error
	// PutTar unpacks a tar stream below dir; Get writes one of dir, or of some
	// paths below it. What Get writes is the sandbox's word: who unpacks it has
	// to check every name, as package bridge/transfer does.
	PutTar(ctx context.Context, dir string, r io.Reader) (sandbox.Moved, error)
	Get(ctx context.Context, dir string, paths []string, w io.Writer) (sandbox.Moved, error)
	Mkdir(ctx context.Context, name string, mode uint32) error
	// SetAttributes replaces the extended attributes of an entry, those of the namespace
	// "user.", which is left out of their names. Writing a file anew takes them away.
	// Errors: Unsupported where the file system has none, Exhausted.
	SetAttributes(ctx context.Context, name string, all map[string]string) error
	Move(ctx context.Context, from, to string) error
	Remove(ctx context.Context, name string, recursive bool) error
	Watch(ctx context.Context, name string, recursive bool) iter.Seq2[sandbox.FileEvent, error]
}

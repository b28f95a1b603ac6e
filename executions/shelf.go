package executions

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/caisson-dev/caisson/sandbox"
)

// shelf is the folder of one execution. It is made when something is put there.
// Nothing in it has a name that a sandbox gave.
type shelf struct {
	id   sandbox.ID
	dir  string
	room int64
}

func (b *Book) shelf(id sandbox.ID) *shelf {
	return &shelf{id: id, dir: filepath.Join(b.cfg.Dir, string(id)), room: int64(MaxArtifacts)}
}

// path is where the content of an artifact is.
func (s *shelf) path(artifact string) string {
	sum := sha256.Sum256([]byte(artifact))
	return filepath.Join(s.dir, hex.EncodeToString(sum[:]))
}

// file makes a file on the shelf.
func (s *shelf) file(path string, flags int) (*os.File, error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, sandbox.Errorf(sandbox.Unavailable, "make a folder for what an execution puts out: %w", err).WithHint("check the room and the permissions of the state folder")
	}
	return os.OpenFile(path, os.O_CREATE|os.O_WRONLY|flags, 0o600)
}

// take is a [sandbox.ArtifactTaker], for one artifact after the other.
func (s *shelf) take(a sandbox.Artifact) (io.WriteCloser, error) {
	if a.Size > s.room {
		return nil, errNoRoom
	}
	f, err := s.file(s.path(a.Path), os.O_TRUNC)
	if err != nil {
		return nil, err
	}
	return &shelved{f: f, shelf: s}, nil
}

var errNoRoom = sandbox.Errorf(sandbox.Exhausted, "the artifacts of one execution are larger than %s", MaxArtifacts.Human()).
	WithHint("collect less, or run it in a session and read its files there")

// shelved is an artifact on its way to the shelf.
type shelved struct {
	f     *os.File
	shelf *shelf
}

// Write fails where there is no room left.
func (w *shelved) Write(p []byte) (int, error) {
	if int64(len(p)) > w.shelf.room {
		return 0, errNoRoom
	}
	n, err := w.f.Write(p)
	w.shelf.room -= int64(n)
	return n, err
}

// Close may be called twice, as who collects does.
func (w *shelved) Close() error {
	if err := w.f.Close(); !errors.Is(err, fs.ErrClosed) {
		return err
	}
	return nil
}

// link says where those that were taken can be read.
func (s *shelf) link(list []sandbox.Artifact) {
	for i := range list {
		if a := &list[i]; a.Left == "" {
			a.Link = "/v1/executions/" + string(s.id) + "/artifacts?path=" + url.QueryEscape(a.Path)
		}
	}
}

// Artifact writes the content of an artifact of an execution, by its path, and
// returns its size. Errors: NotFound, and those of w.
func (b *Book) Artifact(ctx context.Context, id sandbox.ID, path string, w io.Writer) (int64, error) {
	e, err := b.cfg.Store.Execution(ctx, id)
	if err != nil {
		return 0, err
	}
	if e.Result != nil {
		for _, a := range e.Result.Artifacts {
			if a.Path != path {
				continue
			}
			if a.Left != "" {
				return 0, sandbox.Errorf(sandbox.NotFound, "artifact %s was left out: %s", path, a.Left)
			}
			return b.readArtifact(id, path, w)
		}
	}
	return 0, sandbox.Errorf(sandbox.NotFound, "execution %s has no artifact %s", id.Short(), path).WithHint("see them with: caisson execution show %s", id.Short())
}

func (b *Book) readArtifact(id sandbox.ID, path string, w io.Writer) (int64, error) {
	f, err := os.Open(b.shelf(id).path(path))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, sandbox.Errorf(sandbox.NotFound, "artifact %s is not kept any more", path)
	}
	if err != nil {
		return 0, sandbox.Errorf(sandbox.Unavailable, "read an artifact: %w", err)
	}
	defer f.Close()
	return io.Copy(w, f)
}

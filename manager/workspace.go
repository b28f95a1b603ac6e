package manager

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/sandbox"
)

// Workspace is what an exec will find in its workspace: the run's own files,
// and below them those that are there. It is safe for concurrent use. Names are
// relative to the workspace.
type Workspace interface {
	// ReadFile returns a file's bytes. A file that travels with the run is read
	// once: these bytes are put. Errors: NotFound, Exhausted for
	// more than most bytes, and those of a file that cannot be read.
	ReadFile(ctx context.Context, name string, most int64) ([]byte, error)
	// List returns what is below a folder, down to depth levels. A folder that
	// is not there is empty. Error: Exhausted for more than is listed.
	List(ctx context.Context, dir string, depth int) ([]sandbox.FileInfo, error)
}

// space is the workspace of one exec.
type space struct {
	role sandbox.Role
	// connect gives the agent that has the workspace; nil where that is new and
	// so empty.
	connect func(ctx context.Context) (*client.Client, error)

	mu    sync.Mutex
	files []sandbox.File // a copy: what was read stands in place of its Ref
	local sandbox.Local
	index map[string]int
}

func newSpace(run sandbox.Run, local sandbox.Local) *space {
	s := &space{role: run.Role, local: local, files: slices.Clone(run.Files), index: map[string]int{}}
	for i, f := range s.files {
		s.index[path.Clean(f.Path)] = i // a later one replaces an earlier one
	}
	return s
}

// put puts the files, with what was read of them.
func (s *space) put(ctx context.Context, c *client.Client) error {
	s.mu.Lock()
	files := slices.Clone(s.files)
	s.mu.Unlock()
	if len(files) == 0 {
		return nil
	}
	return c.Put(ctx, s.role, files, s.local)
}

// own looks a file up among those that travel, and follows their links. Bytes
// that are nil say that the file with the name that is left is not one of them.
func (s *space) own(name string, most int64) (b []byte, left string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for hops := 0; ; hops++ {
		i, ok := s.index[name]
		if !ok {
			return nil, name, nil
		}
		f := &s.files[i]
		switch {
		case f.Dir:
			return nil, name, sandbox.Errorf(sandbox.Conflict, "%s is a folder", name)
		case f.Link != "" && hops > 8:
			return nil, name, sandbox.Errorf(sandbox.Invalid, "%s is a link without an end", name)
		case f.Link != "":
			if name, err = inside(path.Dir(name), f.Link); err != nil {
				return nil, name, err
			}
			continue
		case f.Ref != "":
			if f.Size > most {
				return nil, name, tooLong(name, most)
			}
			data, err := readContent(*f, s.local)
			if err != nil {
				return nil, name, err
			}
			f.Ref, f.Data = "", data
		}
		if int64(len(f.Data)) > most {
			return nil, name, tooLong(name, most)
		}
		return append([]byte{}, f.Data...), name, nil
	}
}

func tooLong(name string, most int64) error {
	return sandbox.Errorf(sandbox.Exhausted, "%s has more than %s", name, sandbox.Bytes(most).Human())
}

// inside resolves a link's target; one that leaves the workspace is Invalid.
func inside(dir, target string) (string, error) {
	if !path.IsAbs(target) {
		target = path.Join(sandbox.WorkspaceDir, dir, target)
	}
	name, ok := strings.CutPrefix(path.Clean(target), sandbox.WorkspaceDir+"/")
	if !ok {
		return "", sandbox.Errorf(sandbox.Invalid, "a link leads out of the workspace, to %s", target)
	}
	return name, nil
}

// readContent reads the content that a file refers to.
func readContent(f sandbox.File, local sandbox.Local) ([]byte, error) {
	src, err := local.Open(f.Ref)
	if err != nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "read %s: %w", f.Path, err)
	}
	defer src.Close()
	b, err := io.ReadAll(io.LimitReader(src, f.Size))
	if err == nil && int64(len(b)) != f.Size {
		err = sandbox.Errorf(sandbox.Invalid, "%s shrank while it was read", f.Path).WithHint("try again")
	}
	return b, err
}

// ReadFile implements [Workspace].
func (s *space) ReadFile(ctx context.Context, name string, most int64) ([]byte, error) {
	name = path.Clean(name)
	b, name, err := s.own(name, most)
	if b != nil || err != nil {
		return b, err
	}
	if s.connect == nil {
		return nil, sandbox.Errorf(sandbox.NotFound, "no file %s", name)
	}
	c, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	return readFile(ctx, c, s.role, name, most)
}

func readFile(ctx context.Context, c *client.Client, role sandbox.Role, name string, most int64) ([]byte, error) {
	var buf bytes.Buffer
	if _, err := c.ReadFile(ctx, role, name, 0, most+1, &buf); err != nil {
		return nil, err
	}
	if int64(buf.Len()) > most {
		return nil, tooLong(name, most)
	}
	if buf.Len() == 0 {
		return []byte{}, nil
	}
	return buf.Bytes(), nil
}

// listMost is more than is looked through in search of what a program loads.
const listMost = 20_000

// List implements [Workspace].
func (s *space) List(ctx context.Context, dir string, depth int) ([]sandbox.FileInfo, error) {
	dir = path.Clean(dir)
	found := map[string]sandbox.FileInfo{}
	if s.connect != nil {
		c, err := s.connect(ctx)
		if err != nil {
			return nil, err
		}
		for info, err := range c.Tree(ctx, s.role, dir, depth) {
			if errors.Is(err, sandbox.NotFound) || errors.Is(err, sandbox.Conflict) {
				break
			}
			if err != nil {
				return nil, err
			}
			if len(found) == listMost {
				return nil, sandbox.Errorf(sandbox.Exhausted, "more than %d files in %s", listMost, dir)
			}
			found[info.Path] = info
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, i := range s.index {
		addOwn(found, s.files[i], name, dir, depth)
	}
	return slices.SortedFunc(maps.Values(found), func(a, b sandbox.FileInfo) int { return strings.Compare(a.Path, b.Path) }), nil
}

// addOwn adds a file that travels, and the folders that it needs.
func addOwn(found map[string]sandbox.FileInfo, f sandbox.File, name, dir string, depth int) {
	kind := "file"
	switch {
	case f.Dir:
		kind = "dir"
	case f.Link != "":
		kind = "link"
	}
	for ; name != "."; name, kind = path.Dir(name), "dir" {
		rest, ok := strings.CutPrefix(name, dir+"/")
		if dir == "." {
			rest, ok = name, true
		}
		if !ok {
			return
		}
		if depth == 0 || strings.Count(rest, "/") < depth {
			found[name] = sandbox.FileInfo{Path: name, Type: kind, Size: f.Size, Target: f.Link}
		}
	}
}

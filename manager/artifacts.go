package manager

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/caisson-dev/caisson/manager/box"
	"github.com/caisson-dev/caisson/sandbox"
)

// maxArtifacts bounds the files of one collection.
const maxArtifacts = 1000

// pattern cleans a pattern of artifacts.
func pattern(p string) string {
	return path.Clean(strings.TrimPrefix(p, sandbox.WorkspaceDir+"/"))
}

// checkPattern refuses what can match nothing.
func checkPattern(p string) error {
	_, err := path.Match(strings.ReplaceAll(p, "**", "*"), "x")
	if clean := pattern(p); err != nil || p == "" || !filepath.IsLocal(clean) {
		return sandbox.Errorf(sandbox.Invalid, "%q is not a pattern of files in the workspace", p).WithHint("write one such as out/** or *.png")
	}
	return nil
}

// matches reports whether a path matches a pattern, part by part.
func matches(pattern, name []string) bool {
	for len(pattern) > 0 {
		if pattern[0] == "**" {
			for i := range len(name) + 1 {
				if matches(pattern[1:], name[i:]) {
					return i > 0 || len(pattern) > 1 || len(name) > 0
				}
			}
			return false
		}
		if len(name) == 0 {
			return false
		}
		if ok, err := path.Match(pattern[0], name[0]); err != nil || !ok {
			return false
		}
		pattern, name = pattern[1:], name[1:]
	}
	return len(name) == 0
}

// steady is the part of a pattern that names one folder.
func steady(parts []string) (dir string, depth int) {
	n := 0
	for n < len(parts)-1 && !strings.ContainsAny(parts[n], `*?[\`) {
		n++
	}
	depth = len(parts) - n
	for _, p := range parts[n:] {
		if p == "**" {
			depth = 0 // all of it
		}
	}
	return path.Join(append([]string{"."}, parts[:n]...)...), depth
}

// collect gathers a run's artifacts into its Result. What goes wrong stands
// there too: the run is over, and its end does not change.
func (m *Manager) collect(ctx context.Context, b *box.Box, r *resolved, take sandbox.ArtifactTaker, res *sandbox.Result) {
	found, err := m.findArtifacts(ctx, b, r, res.Changes)
	room := int64(sandbox.MaxArtifacts)
	for _, a := range found {
		if bad := fetchArtifact(ctx, b, r.run.Role, &a, take, &room); bad != nil && err == nil {
			err = bad
		}
		res.Artifacts = append(res.Artifacts, a)
	}
	if err != nil {
		res.ArtifactsError = err.Error()
	}
}

// findArtifacts lists those that match. With no pattern that costs nothing: the
// changes tell.
func (m *Manager) findArtifacts(ctx context.Context, b *box.Box, r *resolved, changes []sandbox.FileChange) ([]sandbox.Artifact, error) {
	var found []sandbox.Artifact
	if r.run.Artifacts == nil {
		parts := strings.Split(sandbox.DefaultArtifacts, "/")
		for _, c := range changes {
			if c.After.Kind != sandbox.KindFile || !matches(parts, strings.Split(c.Path, "/")) {
				continue
			}
			if len(found) == maxArtifacts {
				return found, tooMany()
			}
			found = append(found, sandbox.Artifact{Path: c.Path, Size: c.After.Size})
		}
		return found, nil
	}
	seen := map[string]bool{}
	for _, p := range r.run.Artifacts {
		parts := strings.Split(pattern(p), "/")
		dir, depth := steady(parts)
		looked := 0
		for e, err := range b.Client.Tree(ctx, r.run.Role, dir, depth) {
			if errors.Is(err, sandbox.NotFound) || errors.Is(err, sandbox.Conflict) {
				break // no such folder: nothing matches
			}
			if err != nil {
				return found, err
			}
			if looked++; looked > listMost {
				return found, sandbox.Errorf(sandbox.Exhausted, "more than %d entries below %s", listMost, dir)
			}
			name := path.Clean(e.Path)
			if e.Type != "file" || seen[name] || !matches(parts, strings.Split(name, "/")) {
				continue
			}
			if len(found) == maxArtifacts {
				return found, tooMany()
			}
			seen[name] = true
			found = append(found, sandbox.Artifact{Path: name, Size: e.Size})
		}
	}
	return found, nil
}

func tooMany() error {
	return sandbox.Errorf(sandbox.Exhausted, "more than %d artifacts", maxArtifacts)
}

// fetchArtifact hands the content on, or keeps it where there is room.
func fetchArtifact(ctx context.Context, b *box.Box, role sandbox.Role, a *sandbox.Artifact, take sandbox.ArtifactTaker, room *int64) error {
	a.Type = mime.TypeByExtension(path.Ext(a.Path))
	var buf bytes.Buffer
	var to io.Writer = &buf
	if take != nil {
		w, err := take(*a)
		if err != nil {
			a.Left = err.Error()
			return err
		}
		if w == nil {
			a.Left = "it was not asked for"
			return nil
		}
		defer func() { _ = w.Close() }() // a second time, after a failure
		n, err := b.Client.ReadFile(ctx, role, a.Path, 0, 0, w)
		if err = errors.Join(err, w.Close()); err != nil {
			a.Left = err.Error()
			return err
		}
		a.Size = n
		return nil
	}
	if a.Size > *room {
		a.Left = "there is no room for it in the result"
		return nil
	}
	// It may have grown meanwhile.
	n, err := b.Client.ReadFile(ctx, role, a.Path, 0, *room+1, to)
	switch {
	case err != nil:
		a.Left = err.Error()
		return err
	case n > *room:
		a.Left = "there is no room for it in the result"
		return nil
	}
	*room -= n
	a.Size, a.Data = n, append([]byte{}, buf.Bytes()...)
	if a.Type == "" && utf8.Valid(a.Data) && !bytes.ContainsRune(a.Data, 0) {
		a.Type = "text/plain; charset=utf-8"
	}
	return nil
}

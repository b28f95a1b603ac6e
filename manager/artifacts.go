package manager

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"path"
	"unicode/utf8"

	"github.com/caisson-dev/caisson/manager/box"
	"github.com/caisson-dev/caisson/sandbox"
)

// maxArtifacts bounds the files of one collection.
const maxArtifacts = 1000

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
		wanted, err := sandbox.ParseArtifactPattern(sandbox.DefaultArtifacts)
		if err != nil {
			return nil, err
		}
		for _, c := range changes {
			if c.After.Kind != sandbox.KindFile || !wanted.Matches(c.Path) {
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
		wanted, err := sandbox.ParseArtifactPattern(p)
		if err != nil {
			return found, err
		}
		dir, depth := wanted.Below()
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
			if e.Type != "file" || seen[name] || !wanted.Matches(name) {
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

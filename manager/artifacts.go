package manager

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"path"
	"unicode/utf8"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/manager/box"
	"github.com/caisson-dev/caisson/sandbox"
)

// maxArtifacts bounds the files of one collection.
const maxArtifacts = 1000

// passFrom is from which size on an answer is handed to its taker as a file. That stays
// on the account of the sandbox's memory for as long as somebody has it.
const passFrom = 32 * sandbox.MiB

// collect gathers a run's artifacts into its Result, and what it has handed back. What
// goes wrong stands there too: the run is over, and its end does not change.
func (m *Manager) collect(ctx context.Context, b *box.Box, r *resolved, streams sandbox.Streams, out client.Outcome, res *sandbox.Result) {
	found, err := m.findArtifacts(ctx, b, r, res.Changes)
	room := int64(sandbox.MaxArtifacts)
	if out.Answer > 0 {
		a := sandbox.Artifact{Path: sandbox.AnswerPath, Size: out.Answer}
		err = errors.Join(err, fetchAnswer(ctx, b, r, &a, streams, out.Answered, &room))
		res.Artifacts = append(res.Artifacts, a)
	}
	for _, a := range found {
		bad := fetchArtifact(&a, streams.Artifact, &room, func(most int64, w io.Writer) (int64, error) {
			return b.Client.ReadFile(ctx, r.run.Role, a.Path, 0, most, w)
		})
		if bad != nil && err == nil {
			err = bad
		}
		res.Artifacts = append(res.Artifacts, a)
	}
	if err != nil {
		res.ArtifactsError = err.Error()
	}
}

// fetchAnswer hands an answer on: a large one as it lies in memory, where that is taken.
// small is one that is there already.
func fetchAnswer(ctx context.Context, b *box.Box, r *resolved, a *sandbox.Artifact, streams sandbox.Streams, small []byte, room *int64) error {
	read := func(_ int64, w io.Writer) (int64, error) { return b.Client.Answer(ctx, r.id, a.Size, w) }
	if small != nil {
		read = func(_ int64, w io.Writer) (int64, error) {
			n, err := w.Write(small)
			return int64(n), err
		}
		if streams.Answer != nil { // who takes large ones finds others in the Result
			return fetchArtifact(a, nil, room, read)
		}
	}
	if streams.Answer != nil && a.Size >= int64(passFrom) {
		if f, err := b.Answer(ctx, r.id, int64(r.run.Answer)); err == nil { // else it comes as a small one does
			defer f.Close()
			if taken, err := streams.Answer(f, a.Size); taken || err != nil {
				return err
			}
			read = func(_ int64, w io.Writer) (int64, error) {
				return io.CopyBuffer(struct{ io.Writer }{w}, io.NewSectionReader(f, 0, a.Size), make([]byte, 256<<10))
			}
		}
	}
	return fetchArtifact(a, streams.Artifact, room, read)
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

// fetchArtifact hands the content on, or keeps it where there is room. read writes at
// most so many bytes of it; 0 is all.
func fetchArtifact(a *sandbox.Artifact, take sandbox.ArtifactTaker, room *int64, read func(most int64, w io.Writer) (int64, error)) error {
	a.Type = mime.TypeByExtension(path.Ext(a.Path))
	if take != nil {
		w, err := take(*a)
		switch {
		case err != nil:
			a.Left = err.Error()
			return err
		case w == nil:
			a.Left = "it was not asked for"
			return nil
		}
		defer func() { _ = w.Close() }() // a second time, after a failure
		n, err := read(0, w)
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
	var buf bytes.Buffer
	n, err := read(*room+1, &buf) // it may have grown meanwhile
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

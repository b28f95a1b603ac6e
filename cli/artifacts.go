package cli

import (
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/caisson-dev/caisson/sandbox"
)

// takeArtifacts says where artifacts go: into a folder, into what --json prints,
// or nowhere.
func (o *runOptions) takeArtifacts() (sandbox.ArtifactTaker, error) {
	switch {
	case o.detach && (o.into != "" || o.run.Artifacts != nil):
		return nil, sandbox.Errorf(sandbox.Invalid, "artifacts of an exec in the background").WithHint("pull them when it has ended: caisson files pull SESSION")
	case o.into == "" && o.json:
		return nil, nil
	case o.into == "" && o.run.Artifacts != nil:
		return nil, sandbox.Errorf(sandbox.Invalid, "--artifact without a place for them").WithHint("add --artifacts-to FOLDER, or --json")
	case o.into == "":
		return func(sandbox.Artifact) (io.WriteCloser, error) { return nil, nil }, nil
	}
	if err := os.MkdirAll(o.into, 0o755); err != nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "%w", err).WithHint("--artifacts-to takes a folder")
	}
	root, err := os.OpenRoot(o.into)
	if err != nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "%w", err).WithHint("--artifacts-to takes a folder")
	}
	o.taken = &artifactFolder{root: root, parts: map[string]string{}}
	return o.taken.take, nil
}

// artifactFolder is a folder of the host that artifacts go into: each under a
// name of ours until all of it is there, so that one that is refused half-way
// leaves no file, and takes none away. It is used by one exec.
type artifactFolder struct {
	root  *os.Root
	parts map[string]string // by the artifact's path
}

// take begins a file. Its name comes from the sandbox.
func (f *artifactFolder) take(a sandbox.Artifact) (io.WriteCloser, error) {
	if !filepath.IsLocal(a.Path) {
		return nil, sandbox.Errorf(sandbox.Unavailable, "the sandbox named an artifact %q", a.Path)
	}
	dir := path.Dir(a.Path)
	if err := f.root.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	part := path.Join(dir, ".caisson-"+string(sandbox.NewID()))
	w, err := f.root.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err == nil {
		f.parts[a.Path] = part
	}
	return w, err
}

// settle gives those that are whole their names, where what stands there is
// replaced and never written into, and removes the rest.
func (f *artifactFolder) settle(list []sandbox.Artifact) {
	for i := range list {
		a := &list[i]
		part, ok := f.parts[a.Path]
		if !ok || a.Left != "" {
			continue
		}
		if err := f.root.Rename(part, a.Path); err != nil {
			a.Left = err.Error()
			continue
		}
		delete(f.parts, a.Path)
	}
	for _, part := range f.parts {
		_ = f.root.Remove(part) // it is told that the artifact was left out
	}
	_ = f.root.Close() // nothing of ours is unwritten
}

// reportArtifacts names what was collected into a folder.
func (o *runOptions) reportArtifacts(cfg Config, res sandbox.Result) {
	if o.into == "" {
		return
	}
	for _, a := range res.Artifacts {
		text := fmt.Sprintf("artifact %s, %s", shownName(filepath.Join(o.into, a.Path)), sandbox.Bytes(a.Size).Human())
		if a.Type != "" {
			text += ", " + a.Type
		}
		if a.Left != "" {
			text = fmt.Sprintf("left out artifact %s: %s", shownName(a.Path), oneLine(a.Left, 200))
		}
		_, _ = fmt.Fprintln(cfg.IO.Err, "caisson: "+text) // as in printError
	}
	if o.run.Artifacts != nil && len(res.Artifacts) == 0 && res.ArtifactsError == "" && res.Sandbox != "" {
		_, _ = fmt.Fprintf(cfg.IO.Err, "caisson: no artifact: nothing matches %s\n", visible(strings.Join(o.run.Artifacts, ", "))) // as in printError
	}
	if res.ArtifactsError != "" {
		_, _ = fmt.Fprintln(cfg.IO.Err, "caisson: not all artifacts were collected: "+oneLine(res.ArtifactsError, 300)) // as in printError
	}
}

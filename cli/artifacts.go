package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

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
	return func(a sandbox.Artifact) (io.WriteCloser, error) { return artifactFile(o.into, a.Path) }, nil
}

// artifactFile makes a file below a folder. Its name comes from the sandbox.
func artifactFile(dir, name string) (io.WriteCloser, error) {
	if !filepath.IsLocal(name) {
		return nil, sandbox.Errorf(sandbox.Unavailable, "the sandbox named an artifact %q", name)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if parent := path.Dir(name); parent != "." {
		if err := root.MkdirAll(parent, 0o755); err != nil {
			return nil, err
		}
	}
	// Anew, never into what stands there.
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
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
	if res.ArtifactsError != "" {
		_, _ = fmt.Fprintln(cfg.IO.Err, "caisson: not all artifacts were collected: "+oneLine(res.ArtifactsError, 300)) // as in printError
	}
}

package images

import (
	"archive/tar"
	"encoding/json"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/opencontainers/go-digest"
	specs "github.com/opencontainers/image-spec/specs-go/v1"
)

// archive is an image in the form that the engine loads: a configuration, a
// list, and the layers.
type archive struct {
	ref    string
	config []byte
	layers []layer
}

// newArchive makes the image of a recipe out of its layers. Its bytes, and so
// the image's ID, follow from the recipe and the layers alone.
func newArchive(rec recipe, layers []layer) (archive, error) {
	created := epoch
	img := specs.Image{
		Created:  &created,
		Platform: specs.Platform{Architecture: runtime.GOARCH, OS: "linux"},
		Config: specs.ImageConfig{
			Env:        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
			Cmd:        []string{"/bin/bash"},
			WorkingDir: "/workspace",
			Labels:     map[string]string{LabelRecipe: rec.digest(), LabelLanguage: rec.Language},
		},
		RootFS: specs.RootFS{Type: "layers"},
	}
	if rec.Link != "" {
		img.Config.Labels[LabelLink] = rec.Link
	}
	words := []string{"Debian " + rec.Base.Suite}
	if len(rec.Packages) > 0 {
		words = append(words, strings.Join(rec.Packages, " "))
	}
	words = append(words, "what the catalogue adds")
	for i, l := range layers {
		img.RootFS.DiffIDs = append(img.RootFS.DiffIDs, digest.Digest(l.digest))
		img.History = append(img.History, specs.History{Created: &created, CreatedBy: madeBy + words[i]})
	}
	config, err := json.Marshal(img)
	return archive{ref: rec.Ref, config: config, layers: layers}, err
}

// write streams the archive.
func (a archive) write(out io.Writer) error {
	w := tar.NewWriter(out)
	name := digest.FromBytes(a.config).Encoded() + ".json"
	entry := struct {
		Config   string
		RepoTags []string
		Layers   []string
	}{Config: name, RepoTags: []string{a.ref}}
	for _, l := range a.layers {
		entry.Layers = append(entry.Layers, l.name())
	}
	list, err := json.Marshal([]any{entry})
	if err != nil {
		return err
	}
	if err := writeBytes(w, name, a.config); err != nil {
		return err
	}
	for _, l := range a.layers {
		if err := writeLayer(w, l); err != nil {
			return err
		}
	}
	if err := writeBytes(w, "manifest.json", list); err != nil {
		return err
	}
	return w.Close()
}

func (l layer) name() string { return strings.TrimPrefix(l.digest, "sha256:") + ".tar" }

func writeBytes(w *tar.Writer, name string, data []byte) error {
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data))}); err != nil {
		return err
	}
	_, err := w.Write(data)
	return err
}

func writeLayer(w *tar.Writer, l layer) error {
	f, err := os.Open(l.file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if err := w.WriteHeader(&tar.Header{Name: l.name(), Mode: 0o644, Size: int64(l.size)}); err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return err
}

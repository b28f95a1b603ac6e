package images

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types/build"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"

	"github.com/caisson-dev/caisson/internal/dockerclient"
	"github.com/caisson-dev/caisson/internal/lazyregexp"
	"github.com/caisson-dev/caisson/sandbox"
)

// Build is what is about to be built, for [Config].Judge to see.
type Build struct {
	Language   string
	Ref        string // the name that the image gets
	From       string // the base's reference, of the argument BASE
	Dockerfile []byte
}

// dockerfileName is the file of a build's folder that is built.
const dockerfileName = "Dockerfile"

// folder is where a recipe is built from.
func (s *Store) folder(rec recipe) (fs.FS, error) {
	if filepath.IsAbs(rec.Dockerfile) {
		return os.DirFS(rec.Dockerfile), nil
	}
	if s.cfg.Dockerfiles == nil {
		return nil, sandbox.Errorf(sandbox.Unsupported, "no Dockerfile for %s is at hand", rec.Ref)
	}
	return fs.Sub(s.cfg.Dockerfiles, rec.Dockerfile)
}

// buildDigest names what an image is built from: its base and its Dockerfile.
// It is "" where it is not built.
func (s *Store) buildDigest(rec recipe) string {
	if rec.Dockerfile == "" {
		return ""
	}
	folder, err := s.folder(rec)
	if err != nil {
		return ""
	}
	text, err := fs.ReadFile(folder, dockerfileName)
	if err != nil {
		return ""
	}
	return contentDigest([]string{rec.Ref, rec.From, string(text)})
}

// build builds an image from its Dockerfile, on a base that is pulled first.
func (s *Store) build(ctx context.Context, api *client.Client, rec recipe) error {
	folder, err := s.folder(rec)
	if err != nil {
		return err
	}
	text, err := fs.ReadFile(folder, dockerfileName)
	if err != nil {
		return sandbox.Errorf(sandbox.Invalid, "build %s: %w", rec.Ref, err).
			WithHint("dockerfile names a folder that holds a file of the name Dockerfile")
	}
	if s.cfg.Judge != nil {
		if err := s.cfg.Judge(ctx, Build{Language: rec.Language, Ref: rec.Ref, From: rec.From, Dockerfile: text}); err != nil {
			return err
		}
	}
	args := map[string]*string{}
	if rec.From != "" {
		id, err := s.baseImage(ctx, api, rec.From)
		if err != nil {
			return err
		}
		args["BASE"] = &id
	}
	start := s.cfg.Now()
	s.say(rec.Ref, "building from its Dockerfile")
	err = s.runBuild(ctx, api, rec, folder, text, args)
	if ctx.Err() != nil {
		err = waitError(ctx, "build "+rec.Ref)
	}
	if err != nil {
		s.done(rec.Ref, "")
		return dockerclient.Wrap(err, "build %s", rec.Ref)
	}
	s.done(rec.Ref, "built in %s", s.cfg.Now().Sub(start).Round(100*time.Millisecond))
	return nil
}

// baseImage makes the base of a build present, and returns its ID: a build by
// ID asks no registry again.
func (s *Store) baseImage(ctx context.Context, api *client.Client, ref string) (string, error) {
	found, err := s.find(ctx, api, ref)
	if errors.Is(err, sandbox.NotFound) {
		if err = s.fetch(ctx, api, ref, ref, used); err == nil {
			found, err = s.find(ctx, api, ref)
		}
	}
	return found.ID, err
}

// runBuild has the engine build, and removes what a build that failed left. The
// Dockerfile is the text that was judged, whatever its file holds by now.
func (s *Store) runBuild(ctx context.Context, api *client.Client, rec recipe, folder fs.FS, dockerfile []byte, args map[string]*string) (err error) {
	var buildContext bytes.Buffer
	w := tar.NewWriter(&buildContext)
	err = w.AddFS(folder)
	if err == nil { // of two files of one name the engine takes the second
		err = w.WriteHeader(&tar.Header{Name: dockerfileName, Mode: 0o644, Size: int64(len(dockerfile))})
	}
	if err == nil {
		_, err = w.Write(dockerfile)
	}
	if err := errors.Join(err, w.Close()); err != nil {
		return sandbox.Errorf(sandbox.Invalid, "read the folder of the Dockerfile: %w", err)
	}
	began := time.Now()
	resp, err := api.ImageBuild(ctx, &buildContext, build.ImageBuildOptions{
		Tags: []string{rec.Ref}, Dockerfile: dockerfileName, BuildArgs: args, Remove: true, ForceRemove: true,
		Labels:  map[string]string{LabelRecipe: s.buildDigest(rec), LabelLanguage: rec.Language},
		Version: build.BuilderV1,
	})
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	out := buildOutput{}
	err = out.read(resp.Body)
	if err != nil || ctx.Err() != nil {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		out.removeSteps(clean, api, began)
	}
	return err
}

// buildOutput is what an engine has said of a build.
type buildOutput struct {
	text  tail
	steps []string // images of its steps, in their order
}

var stepImage = lazyregexp.New(`(?m)^ ---> ([0-9a-f]{12})$`)

// read reads the engine's answer to its end, or to its error.
func (o *buildOutput) read(body io.Reader) error {
	for dec := json.NewDecoder(body); ; {
		var m struct {
			Stream string `json:"stream"`
			Error  string `json:"error"`
		}
		if err := dec.Decode(&m); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("read the engine's answer: %w", err)
		}
		_, _ = o.text.Write([]byte(m.Stream)) // it keeps the end of it, and does not fail
		for _, found := range stepImage().FindAllStringSubmatch(m.Stream, -1) {
			o.steps = append(o.steps, found[1])
		}
		if m.Error != "" {
			return sandbox.Errorf(sandbox.Internal, "%s%s", m.Error, o.lastLine()).
				WithHint("mend the Dockerfile, or leave it to another way with --from")
		}
	}
}

// lastLine is what the step that failed said last, which says why most often.
func (o *buildOutput) lastLine() string {
	lines := strings.Split(strings.TrimSpace(string(o.text.buf)), "\n")
	for _, line := range slices.Backward(lines) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "--->") && !strings.HasPrefix(line, "Removing intermediate") {
			return ": " + line
		}
	}
	return ""
}

// removeSteps removes the images of a build's steps that nothing else has a name
// for and that are not older than the build. What another build took up in the
// meantime stays. So does the image of a step that only writes metadata and that
// the engine was amid when the build was canceled: it finishes that unseen.
func (o *buildOutput) removeSteps(ctx context.Context, api *client.Client, began time.Time) {
	for _, id := range slices.Backward(o.steps) {
		found, err := api.ImageInspect(ctx, id)
		if err != nil || len(found.RepoTags)+len(found.RepoDigests) > 0 {
			continue
		}
		if created, err := time.Parse(time.RFC3339Nano, found.Created); err != nil || created.Before(began.Add(-time.Second)) {
			continue
		}
		removeStep(ctx, api, id)
	}
}

// removeStep removes an image that the container of a canceled build may use for
// a moment yet. One that stays in use is left.
func removeStep(ctx context.Context, api *client.Client, id string) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := api.ImageRemove(ctx, id, image.RemoveOptions{PruneChildren: false})
		if !errors.Is(dockerclient.Wrap(err, "remove a step"), sandbox.Conflict) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

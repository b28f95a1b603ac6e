package images

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/docker/docker/client"

	"github.com/caisson-dev/caisson/internal/dockerclient"
	"github.com/caisson-dev/caisson/sandbox"
)

// assemble makes the image of a recipe from packages and loads it. The caller
// holds the image's lock. It returns the size of its layers.
func (s *Store) assemble(ctx context.Context, api *client.Client, rec recipe) (size sandbox.Bytes, err error) {
	bottom, err := s.base(ctx, rec)
	if err != nil {
		return 0, err
	}
	layers := []layer{bottom}
	if more := rec.Link != "" || len(rec.Programs) > 0; more || len(rec.Packages) > 0 {
		work, done, err := s.workFolder(lockName(rec.Ref))
		if err != nil {
			return 0, err
		}
		defer done()
		if err := checkSpace(work, s.need); err != nil {
			return 0, err
		}
		if len(rec.Packages) > 0 {
			top, err := s.layer(ctx, tree{suite: rec.Base.Suite, packages: rec.Packages, seed: bottom.file, work: work},
				filepath.Join(work, "layer.tar"), bottom.index)
			if err != nil {
				return 0, err
			}
			layers = append(layers, top)
		}
		if more {
			top, err := rec.write(filepath.Join(work, "additions.tar"))
			if err != nil {
				return 0, diskError(err, "assemble")
			}
			layers = append(layers, top)
		}
	}
	a, err := newArchive(rec, layers)
	if err != nil {
		return 0, err
	}
	for _, l := range layers {
		size += l.size
	}
	return size, load(ctx, api, a)
}

// base returns the layer that the languages share, and makes it where it is
// missing. It is kept in the state folder: the next language starts from it.
func (s *Store) base(ctx context.Context, rec recipe) (layer, error) {
	name := rec.baseName()
	unlock, err := lock(ctx, s.path("locks", name+".lock"))
	if err != nil {
		return layer{}, err
	}
	defer unlock()
	kept := s.path("cache", name+".tar")
	if l, err := readLayer(kept); err == nil {
		return l, nil
	}
	work, done, err := s.workFolder(name)
	if err != nil {
		return layer{}, err
	}
	defer done()
	if err := checkSpace(work, s.need); err != nil {
		return layer{}, err
	}
	fresh := filepath.Join(work, "layer.tar")
	l, err := s.layer(ctx, tree{suite: rec.Base.Suite, packages: rec.Base.Packages, work: work}, fresh, nil)
	if err != nil {
		return layer{}, err
	}
	if err := os.MkdirAll(filepath.Dir(kept), 0o700); err != nil {
		return layer{}, diskError(err, "keep the base")
	}
	if err := os.Rename(fresh, kept); err != nil {
		return layer{}, diskError(err, "keep the base")
	}
	l.file = kept
	return l, nil
}

// layer assembles a tree and writes what it adds to base into a file.
func (s *Store) layer(ctx context.Context, t tree, name string, base index) (layer, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return layer{}, diskError(err, "assemble")
	}
	defer func() { _ = f.Close() }()
	buffered := bufio.NewWriterSize(f, 1<<20)
	out := newHashing(buffered)
	// A file system's clock may lag behind by a tick.
	flt := filter{base: base, started: time.Now().Add(-time.Second)}
	err = s.tool.run(ctx, t, func(in io.Reader) error { return flt.copy(out, bufio.NewReaderSize(in, 1<<20)) })
	if err == nil {
		err = buffered.Flush()
	}
	if err == nil {
		err = f.Close()
	}
	if ctx.Err() != nil {
		return layer{}, waitError(ctx, "assemble")
	}
	if _, ok := errors.AsType[*sandbox.Error](err); err != nil && !ok {
		err = diskError(err, "assemble")
	}
	return layer{file: name, digest: out.digest(), size: out.size, index: flt.index}, err
}

// readLayer reads the index of a layer that is there already.
func readLayer(name string) (layer, error) {
	f, err := os.Open(name)
	if err != nil {
		return layer{}, err
	}
	defer func() { _ = f.Close() }()
	in, buffered := newHashing(io.Discard), bufio.NewReaderSize(f, 1<<20)
	flt := filter{started: farFuture}
	if err := flt.copy(io.Discard, io.TeeReader(buffered, in)); err != nil {
		return layer{}, err
	}
	if _, err := io.Copy(in, buffered); err != nil { // the padding after the last entry
		return layer{}, err
	}
	return layer{file: name, digest: in.digest(), size: in.size, index: flt.index}, nil
}

// farFuture keeps every time as it is.
var farFuture = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// workFolder makes an empty folder, after removing what a process that was
// killed left of the same one. The caller holds its lock.
func (s *Store) workFolder(name string) (dir string, done func(), err error) {
	dir = s.path("work", strings.TrimSuffix(name, ".lock"))
	if err := os.RemoveAll(dir); err != nil {
		return "", nil, diskError(err, "clear the work folder")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", nil, diskError(err, "make the work folder")
	}
	return dir, func() { _ = os.RemoveAll(dir) }, nil
}

// load streams an image into the engine.
func load(ctx context.Context, api *client.Client, a archive) error {
	r, w := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := a.write(w)
		w.CloseWithError(err)
		written <- err
	}()
	err := send(ctx, api, r)
	_ = r.CloseWithError(io.ErrClosedPipe) // lets the writer go where the engine gave up early
	writeErr := <-written
	if err == nil && writeErr != nil && !errors.Is(writeErr, io.ErrClosedPipe) {
		err = writeErr
	}
	return dockerclient.Wrap(err, "load image %s", a.ref)
}

// send hands an archive to the engine and reads its answer, which carries the
// errors of a load that was begun.
func send(ctx context.Context, api *client.Client, r io.Reader) error {
	resp, err := api.ImageLoad(ctx, r, client.ImageLoadWithQuiet(true))
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	for dec := json.NewDecoder(resp.Body); ; {
		var line struct {
			Error string `json:"error"`
		}
		if err := dec.Decode(&line); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("read the engine's answer: %w", err)
		}
		if line.Error != "" {
			return errors.New(line.Error)
		}
	}
}

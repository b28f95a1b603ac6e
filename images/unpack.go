package images

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"

	"github.com/caisson-dev/caisson/internal/dockerclient"
	"github.com/caisson-dev/caisson/sandbox"
)

// Unpack makes an image present, writes what it holds into a folder of the state
// folder, and returns that. What was unpacked already costs no call to the engine
// but the look at the image. Errors: those of [Store.Ensure].
func (s *Store) Unpack(ctx context.Context, ref string) (sandbox.ImageRoot, error) {
	img, err := s.Ensure(ctx, ref)
	if err != nil {
		return sandbox.ImageRoot{}, err
	}
	name := strings.TrimPrefix(img.ID, "sha256:")
	unlock, err := lock(ctx, s.path("locks", "root-"+name+".lock"))
	if err != nil {
		return sandbox.ImageRoot{}, err
	}
	defer unlock()
	if root, err := FindRoot(s.cfg.StateDir, img.ID); err == nil && root.Image.Ref == img.Ref {
		return root, nil
	}
	api, err := s.cfg.Engine.API(ctx)
	if err != nil {
		return sandbox.ImageRoot{}, err
	}
	work, done, err := s.workFolder("root-" + name)
	if err != nil {
		return sandbox.ImageRoot{}, err
	}
	defer done()
	if err := checkSpace(work, s.need); err != nil {
		return sandbox.ImageRoot{}, err
	}
	s.cfg.Progress(sandbox.Progress{Ref: img.Ref, Text: "unpack"})
	tree := filepath.Join(work, "tree")
	size, err := export(ctx, api, img, tree)
	if err != nil {
		return sandbox.ImageRoot{}, err
	}
	root := sandbox.ImageRoot{Image: img, Path: s.path("roots", name), Size: size, Made: s.cfg.Now()}
	return root, keepRoot(root, tree)
}

// keepRoot puts a tree in its place, and its record beside it, which is what makes
// it a root: one without is taken for what a death has left.
func keepRoot(root sandbox.ImageRoot, tree string) error {
	b, err := json.Marshal(root)
	if err != nil {
		return sandbox.Errorf(sandbox.Internal, "write what was unpacked: %w", err)
	}
	note := filepath.Join(filepath.Dir(tree), "note")
	err = errors.Join(os.WriteFile(note, b, 0o600), os.MkdirAll(filepath.Dir(root.Path), 0o700))
	if err != nil {
		return diskError(err, "unpack the image")
	}
	if _, known := readRoot(root.Path + ".json"); known != nil { // else it is there, under another name
		if err := errors.Join(os.RemoveAll(root.Path), os.Rename(tree, root.Path)); err != nil {
			return diskError(err, "unpack the image")
		}
	}
	if err := os.Rename(note, root.Path+".json"); err != nil {
		return diskError(err, "unpack the image")
	}
	return nil
}

// export unpacks an image by a container of it that never runs.
func export(ctx context.Context, api *client.Client, img sandbox.Image, dir string) (size sandbox.Bytes, err error) {
	id := img.ID
	made, err := api.ContainerCreate(ctx, &container.Config{Image: id, Cmd: []string{"true"}}, &container.HostConfig{NetworkMode: "none"}, nil, nil, "")
	if err != nil {
		return 0, dockerclient.Wrap(err, "look into image %s", short(id))
	}
	defer func() {
		gone := api.ContainerRemove(context.WithoutCancel(ctx), made.ID, container.RemoveOptions{Force: true, RemoveVolumes: true})
		err = errors.Join(err, dockerclient.Wrap(gone, "remove the container of image %s", short(id)))
	}()
	in, err := api.ContainerExport(ctx, made.ID)
	if err != nil {
		return 0, dockerclient.Wrap(err, "read image %s", short(id))
	}
	defer func() { _ = in.Close() }()
	return unpack(in, dir, sandbox.Writable(img.Volumes))
}

// unpack writes a tree into a new folder, and nothing beside it whatever the names
// and links in it say. Devices are left out, and so are bits by which a program
// would become another user. Where the caller is root, owners stay. It makes places,
// which something is mounted on, where they are missing.
func unpack(in io.Reader, dir string, places []string) (size sandbox.Bytes, err error) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return 0, diskError(err, "unpack the image")
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return 0, diskError(err, "unpack the image")
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	var folders []*tar.Header
	for entries := tar.NewReader(in); ; {
		h, err := entries.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return size, sandbox.Errorf(sandbox.Unavailable, "read the image: %w", err).WithHint("try again")
		}
		h.Name = filepath.Clean(strings.TrimPrefix(h.Name, "/"))
		if h.Name == "." {
			continue
		}
		if h.Typeflag == tar.TypeDir {
			folders = append(folders, h)
		}
		if err := unpackEntry(root, h, entries); err != nil {
			return size, diskError(fmt.Errorf("%s: %w", h.Name, err), "unpack the image")
		}
		size += sandbox.Bytes(h.Size)
	}
	for _, place := range places {
		if err := root.MkdirAll(strings.TrimPrefix(place, "/"), 0o755); err != nil {
			return size, diskError(fmt.Errorf("%s: %w", place, err), "unpack the image")
		}
	}
	for _, h := range slices.Backward(folders) { // once nothing is written into them any more
		if err := errors.Join(root.Chmod(h.Name, h.FileInfo().Mode().Perm()|0o700), root.Chtimes(h.Name, h.ModTime, h.ModTime)); err != nil {
			return size, diskError(err, "unpack the image")
		}
	}
	return size, nil
}

func unpackEntry(root *os.Root, h *tar.Header, content io.Reader) error {
	var err error
	switch h.Typeflag {
	case tar.TypeDir:
		err = root.MkdirAll(h.Name, 0o755)
	case tar.TypeReg:
		err = unpackFile(root, h, content)
	case tar.TypeSymlink:
		err = root.Symlink(h.Linkname, h.Name)
	case tar.TypeLink:
		return root.Link(filepath.Clean(strings.TrimPrefix(h.Linkname, "/")), h.Name) // its owner is that of what it names
	default:
		return nil // a device, or a pipe
	}
	if err == nil && os.Geteuid() == 0 {
		err = root.Lchown(h.Name, h.Uid, h.Gid)
	}
	return err
}

func unpackFile(root *os.Root, h *tar.Header, content io.Reader) error {
	mode := h.FileInfo().Mode().Perm()
	f, err := root.OpenFile(h.Name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Chmod(mode), f.Close(), root.Chtimes(h.Name, h.ModTime, h.ModTime))
}

// Roots are the images that are unpacked in a store's state folder, the newest
// first. It needs no engine.
func Roots(stateDir string) ([]sandbox.ImageRoot, error) {
	notes, err := filepath.Glob(filepath.Join(stateDir, "roots", "*.json"))
	if err != nil {
		return nil, sandbox.Errorf(sandbox.Internal, "list what is unpacked: %w", err)
	}
	roots := []sandbox.ImageRoot{}
	for _, note := range notes {
		root, err := readRoot(note)
		if errors.Is(err, os.ErrNotExist) {
			continue // it was pruned meanwhile
		}
		if err != nil {
			return nil, sandbox.Errorf(sandbox.Internal, "read %s: %w", note, err).WithHint("remove it, and unpack the image again")
		}
		roots = append(roots, root)
	}
	slices.SortFunc(roots, func(a, b sandbox.ImageRoot) int { return b.Made.Compare(a.Made) })
	return roots, nil
}

// Roots are the images that are unpacked.
func (s *Store) Roots() ([]sandbox.ImageRoot, error) { return Roots(s.cfg.StateDir) }

func readRoot(note string) (root sandbox.ImageRoot, err error) {
	b, err := os.ReadFile(note)
	if err == nil {
		err = json.Unmarshal(b, &root)
	}
	root.Path = strings.TrimSuffix(note, ".json") // the state folder may have been moved
	return root, err
}

// FindRoot finds an unpacked image by its reference, the newest of that, or by its
// content digest, in a store's state folder. Errors: NotFound.
func FindRoot(stateDir, name string) (sandbox.ImageRoot, error) {
	roots, err := Roots(stateDir)
	if err != nil {
		return sandbox.ImageRoot{}, err
	}
	for _, root := range roots {
		if root.Image.Ref == name || root.Image.ID == name {
			return root, nil
		}
	}
	return sandbox.ImageRoot{}, sandbox.Errorf(sandbox.NotFound, "the image %s is not unpacked", name).WithHint("unpack it: caisson images unpack %s", name)
}

// pruneRoots removes what was unpacked of images that a newer one has taken the
// name of. What a sandbox of this host uses is left.
func (s *Store) pruneRoots(dryRun bool) ([]sandbox.PrunedImage, error) {
	roots, err := s.Roots()
	if err != nil {
		return nil, err
	}
	newest, pruned := map[string]bool{}, []sandbox.PrunedImage{}
	for _, root := range roots {
		if !newest[root.Image.Ref] {
			newest[root.Image.Ref] = true
			continue
		}
		p := sandbox.PrunedImage{Name: root.Path, Size: root.Size, InUse: mounted(filepath.Base(root.Path))}
		if !dryRun && !p.InUse {
			if err := errors.Join(os.Remove(root.Path+".json"), os.RemoveAll(root.Path)); err != nil {
				return pruned, diskError(err, "remove an unpacked image")
			}
		}
		pruned = append(pruned, p)
	}
	return pruned, nil
}

// mounted reports whether a process of this host has something of a folder's in its
// mounts, as the first process of a sandbox has.
func mounted(name string) bool {
	tables, _ := filepath.Glob("/proc/[0-9]*/mountinfo") // the pattern is well formed
	return slices.ContainsFunc(tables, func(table string) bool {
		b, err := os.ReadFile(table)
		return err == nil && strings.Contains(string(b), name)
	})
}

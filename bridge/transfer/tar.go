package transfer

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/caisson-dev/caisson/sandbox"
)

// Tar writes a tar stream of a folder of the workspace, or of some paths below
// it, to w: made anew of what the sandbox sends, so that it holds files, folders
// and links alone, and no name that leads out. Errors: as those of [Pull].
func Tar(ctx context.Context, space Space, src string, paths []string, w io.Writer) (sandbox.Moved, error) {
	var moved sandbox.Moved
	r, pw := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := rewrite(r, w, &moved)
		_ = r.CloseWithError(errors.Join(errStopped, err)) // never fails
		written <- err
	}()
	out := bufio.NewWriterSize(pw, 1<<20)
	got, err := space.Get(ctx, src, paths, out)
	if err == nil {
		err = out.Flush()
	}
	_ = pw.CloseWithError(errors.Join(io.ErrUnexpectedEOF, err)) // never fails
	done := <-written
	moved.Left += got.Left
	moved.LeftOut = append(moved.LeftOut, got.LeftOut...)
	if err != nil && !errors.Is(err, errStopped) {
		return moved, err
	}
	return moved, done
}

func rewrite(r io.Reader, w io.Writer, moved *sandbox.Moved) error {
	tr, buf := tar.NewReader(bufio.NewReaderSize(r, 256<<10)), make([]byte, 256<<10)
	buffered := bufio.NewWriterSize(w, 256<<10)
	tw := tar.NewWriter(buffered)
	links := map[string]bool{}
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			_, _ = io.Copy(io.Discard, r) // the pipe's end
			return errors.Join(tw.Close(), buffered.Flush())
		}
		if err != nil {
			return forged("a broken archive: %w", err)
		}
		clean, why, err := cleanHeader(h)
		if err != nil {
			return err
		}
		if under := linkAbove(links, clean); under != "" {
			return forged("%q by way of the link %q", h.Name, under)
		}
		if h.Typeflag == tar.TypeSymlink {
			links[path.Clean(h.Name)] = true // also one that is left out
		}
		if why != "" {
			moved.Left++
			moved.LeftOut = appendSome(moved.LeftOut, why)
			continue
		}
		if err := tw.WriteHeader(clean); err != nil {
			return err
		}
		if _, err := io.CopyBuffer(struct{ io.Writer }{tw}, struct{ io.Reader }{tr}, buf); err != nil {
			return err
		}
		moved.Files++
		moved.Bytes += clean.Size
	}
}

// linkAbove returns a link that an entry stands below, or is another name of: who
// unpacks it would follow that, or have it elsewhere.
func linkAbove(links map[string]bool, h *tar.Header) string {
	if h == nil {
		return ""
	}
	if h.Typeflag == tar.TypeLink && links[h.Linkname] {
		return h.Linkname
	}
	for up := path.Dir(path.Clean(h.Name)); up != "."; up = path.Dir(up) {
		if links[up] {
			return up
		}
	}
	return ""
}

// cleanHeader is a header with what is known to be harmless; why says that the
// entry is left out.
func cleanHeader(h *tar.Header) (clean *tar.Header, why string, err error) {
	if err := checkSparse(h); err != nil {
		return nil, "", err
	}
	name, err := checkName(h.Name)
	if err != nil {
		return nil, "", err
	}
	clean = &tar.Header{Typeflag: h.Typeflag, Name: name, Mode: h.Mode & 0o777, ModTime: h.ModTime, Format: tar.FormatPAX}
	switch h.Typeflag {
	case tar.TypeReg:
		clean.Size = h.Size
	case tar.TypeDir:
		clean.Name += "/"
	case tar.TypeSymlink:
		if leadsOut(path.Dir(name), h.Linkname) {
			return nil, fmt.Sprintf("%s: it is a link that leads out, to %q", name, h.Linkname), nil
		}
		clean.Linkname = h.Linkname
	case tar.TypeLink:
		if clean.Linkname, err = checkName(h.Linkname); err != nil {
			return nil, "", err
		}
	default:
		return nil, "", forged("an entry of type %q", h.Typeflag)
	}
	return clean, "", nil
}

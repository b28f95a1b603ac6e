package images

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"path"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// epoch is the time of every file that an assembly makes itself, so that an
// image's bytes do not tell when it was assembled: Debian 12's first day.
// Files out of packages keep theirs, which compiled Python files hold.
var epoch = time.Date(2023, 6, 10, 0, 0, 0, 0, time.UTC)

// layer is one layer of an image, as a tar in a file.
type layer struct {
	file   string
	digest string // "sha256:…" of the tar
	size   sandbox.Bytes
	index  index
}

// index says what a layer holds, to tell what another one adds to it.
type index map[string]stamp

// stamp is what makes two entries of a tar the same to a program.
type stamp struct {
	kind     byte
	mode     int64
	uid, gid int
	link     string
	size     int64
	sum      [sha256.Size]byte
}

// filter copies a root file system's tar to a layer's.
type filter struct {
	base    index     // what is there already is left out
	started time.Time // younger files get [epoch]
	index   index     // of what was written
	written map[string]bool
}

// copy reads the tar in and writes the layer out. Out is the same bytes for
// the same packages: no times of the assembly, no caches, no logs, nothing of
// the host. Setuid bits and file capabilities are left out as well, since a
// sandbox gains nothing by them.
func (f *filter) copy(out io.Writer, in io.Reader) error {
	f.index, f.written = index{}, map[string]bool{}
	r, w := tar.NewReader(in), tar.NewWriter(out)
	if err := f.folder(w, "workspace"); err != nil {
		return err
	}
	for {
		h, err := r.Next()
		if err == io.EOF {
			return w.Close()
		}
		if err != nil {
			return err
		}
		if err := f.entry(w, h, r); err != nil {
			return err
		}
	}
}

// folder adds an empty folder, unless the base has it.
func (f *filter) folder(w *tar.Writer, name string) error {
	return f.entry(w, &tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755}, nil)
}

func (f *filter) entry(w *tar.Writer, h *tar.Header, content io.Reader) error {
	name := path.Clean(strings.TrimPrefix(h.Name, "/"))
	if name == "." || dropped(name, h.Typeflag) {
		return nil
	}
	clean := f.header(name, h)
	s := stamp{kind: clean.Typeflag, mode: clean.Mode, uid: clean.Uid, gid: clean.Gid, link: clean.Linkname, size: clean.Size}
	if clean.Typeflag != tar.TypeReg {
		return f.special(w, clean, s)
	}
	// A file is held in memory only where the base has one that may be the
	// same.
	old, there := f.base[name]
	sum := sha256.New()
	if there && old.size == s.size {
		data, err := io.ReadAll(io.TeeReader(content, sum))
		if err != nil {
			return err
		}
		s.sum = [sha256.Size]byte(sum.Sum(nil))
		if s == old {
			return nil
		}
		content, sum = bytes.NewReader(data), sha256.New()
	}
	if err := w.WriteHeader(clean); err != nil {
		return err
	}
	if _, err := io.Copy(w, io.TeeReader(content, sum)); err != nil {
		return err
	}
	s.sum = [sha256.Size]byte(sum.Sum(nil))
	f.index[name], f.written[name] = s, true
	return nil
}

// special writes what has no content: folders, links.
func (f *filter) special(w *tar.Writer, h *tar.Header, s stamp) error {
	name := path.Clean(h.Name)
	if f.base[name] == s {
		return nil
	}
	if h.Typeflag == tar.TypeLink && !f.written[h.Linkname] {
		// Packages link within themselves, so both ends are of one layer.
		return sandbox.Errorf(sandbox.Internal, "hard link %s leads out of its layer, to %s", name, h.Linkname)
	}
	f.index[name], f.written[name] = s, true
	return w.WriteHeader(h)
}

// header is h with only what an image needs.
func (f *filter) header(name string, h *tar.Header) *tar.Header {
	clean := &tar.Header{
		Typeflag: h.Typeflag, Name: name, Linkname: h.Linkname, Size: h.Size,
		Mode: h.Mode &^ 0o6000, Uid: h.Uid, Gid: h.Gid, ModTime: h.ModTime.Truncate(time.Second),
	}
	switch h.Typeflag {
	case tar.TypeDir:
		clean.Name, clean.Mode = name+"/", h.Mode
		clean.ModTime = epoch // changes whenever a file comes or goes
	case tar.TypeLink:
		clean.Linkname = path.Clean(strings.TrimPrefix(h.Linkname, "/"))
	}
	if !clean.ModTime.Before(f.started) {
		clean.ModTime = epoch
	}
	return clean
}

// Folders whose content is left out, and kept themselves: caches, logs, and
// what the engine mounts over.
var emptied = []string{
	"dev", "proc", "sys", "run", "tmp", "var/cache", "var/log", "var/tmp", "var/lib/apt", "var/lib/systemd",
	"etc/systemd", "usr/share/man", "usr/share/info", "usr/share/locale", "usr/share/lintian", "usr/share/bug",
}

// Files that are left out: of the host, of the assembly, or secret by nature.
var droppedFiles = map[string]bool{
	"etc/resolv.conf": true, "etc/hostname": true, "etc/machine-id": true, "etc/fstab": true, "etc/mtab": true,
	"etc/shadow": true, "etc/gshadow": true, "etc/shadow-": true, "etc/gshadow-": true, "etc/passwd-": true,
	"etc/group-": true, "etc/apt/sources.list": true, "etc/dpkg/dpkg.cfg.d/99mmdebstrap": true, "etc/.pwd.lock": true,
	"var/lib/dpkg/lock": true, "var/lib/dpkg/lock-frontend": true, "var/lib/dpkg/triggers/Lock": true,
	"var/lib/dpkg/status-old": true, "var/lib/dpkg/diversions-old": true, "var/lib/dpkg/statoverride-old": true,
}

func dropped(name string, kind byte) bool {
	if kind == tar.TypeChar || kind == tar.TypeBlock || kind == tar.TypeFifo || droppedFiles[name] {
		return true
	}
	for _, dir := range emptied {
		if strings.HasPrefix(name, dir+"/") {
			return true
		}
	}
	// Licences stay: the image may be passed on.
	return strings.HasPrefix(name, "usr/share/doc/") && kind != tar.TypeDir && path.Base(name) != "copyright"
}

// hashing counts and digests what passes to a writer.
type hashing struct {
	w    io.Writer
	size sandbox.Bytes
	sum  interface {
		io.Writer
		Sum(b []byte) []byte
	}
}

func newHashing(w io.Writer) *hashing { return &hashing{w: w, sum: sha256.New()} }

func (h *hashing) Write(p []byte) (int, error) {
	n, err := h.w.Write(p)
	_, _ = h.sum.Write(p[:n]) // a hash does not fail
	h.size += sandbox.Bytes(n)
	return n, err
}

func (h *hashing) digest() string { return "sha256:" + hex.EncodeToString(h.sum.Sum(nil)) }

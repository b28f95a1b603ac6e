package swerex

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/internal/fastapi"
	"github.com/caisson-dev/caisson/sandbox"
)

// readRequest asks for a file's text.
type readRequest struct {
	Path     *string `json:"path"`
	Encoding string  `json:"encoding"`
	Errors   string  `json:"errors"`
}

func (r readRequest) faults() []fastapi.Fault { return required("path", r.Path) }

func required(name string, value *string) []fastapi.Fault {
	if value == nil {
		return []fastapi.Fault{fastapi.At("missing", "Field required", name)}
	}
	return nil
}

// contents is a file's text.
type contents struct {
	Content string `json:"content"`
}

// mostRead bounds a file that is read.
const mostRead = 256 << 20

func (w *Wire) readFile(ctx context.Context, rt *runtime, in readRequest) (contents, error) {
	files, err := w.files(ctx, rt)
	if err != nil {
		return contents{}, err
	}
	var b bytes.Buffer
	n, err := files.Read(ctx, *in.Path, 0, mostRead+1, &b)
	switch {
	case errors.Is(err, sandbox.NotFound):
		return contents{}, raise(fileNotFound, "[Errno 2] No such file or directory: '%s'", *in.Path)
	case err != nil:
		if i, wrong := files.Stat(ctx, *in.Path); wrong == nil && i.Type == "dir" {
			return contents{}, raise(isADirectory, "[Errno 21] Is a directory: '%s'", *in.Path)
		}
		return contents{}, err
	case n > mostRead:
		return contents{}, raise(anyError, "%s holds more than 256 MiB", *in.Path)
	}
	content, err := decoded(b.Bytes(), in.Encoding, in.Errors)
	return contents{content}, err
}

// decoded is a text of an encoding, and errors is what becomes of other bytes, both by
// the names that Python has. Line ends become its own.
func decoded(b []byte, encoding, onError string) (string, error) {
	s := string(b)
	switch strings.ReplaceAll(strings.ToLower(encoding), "_", "-") {
	case "", "utf-8", "utf8":
	case "ascii", "us-ascii":
		if i := strings.IndexFunc(s, func(r rune) bool { return r > 127 }); i >= 0 && (onError == "" || onError == "strict") {
			return "", raise(anyError, "'ascii' codec can't decode byte 0x%02x in position %d", b[i], i)
		}
	case "latin-1", "latin1", "iso-8859-1":
		runes := make([]rune, len(b))
		for i, c := range b {
			runes[i] = rune(c)
		}
		s = string(runes)
	default:
		return "", raise(unknownEncoding, "unknown encoding: %s", encoding)
	}
	if !utf8.ValidString(s) {
		switch onError {
		case "", "strict":
			return "", raise(anyError, "'utf-8' codec can't decode bytes of the file: it is no text")
		case "ignore":
			s = strings.ToValidUTF8(s, "")
		case "replace":
			s = strings.ToValidUTF8(s, "\uFFFD")
		case "backslashreplace":
			s = text(b)
		default:
			return "", raise(unknownEncoding, "unknown error handler name '%s'", onError)
		}
	}
	return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s), nil
}

// writeRequest is a file's text, with its place.
type writeRequest struct {
	Path    *string `json:"path"`
	Content string  `json:"content"`
}

func (r writeRequest) faults() []fastapi.Fault { return required("path", r.Path) }

func (w *Wire) writeFile(ctx context.Context, rt *runtime, in writeRequest) (nothing, error) {
	files, err := w.files(ctx, rt)
	if err != nil {
		return nothing{}, err
	}
	return nothing{}, put(ctx, files, *in.Path, strings.NewReader(in.Content))
}

// files opens the runtime's files, whose session is made where it is not there.
func (w *Wire) files(ctx context.Context, rt *runtime) (api.Files, error) {
	if err := w.ready(ctx, rt); err != nil {
		return nil, err
	}
	return w.cfg.Service.Files(ctx, rt.session)
}

// put writes a file, and makes the folders above it.
func put(ctx context.Context, files api.Files, name string, r io.Reader) error {
	if err := above(ctx, files, name); err != nil {
		return err
	}
	_, err := files.Write(ctx, name, 0o644, r)
	return err
}

// above makes the folders above a name.
func above(ctx context.Context, files api.Files, name string) error {
	dir := path.Dir(path.Clean(name))
	if dir == "." || dir == "/" || dir == sandbox.WorkspaceDir {
		return nil
	}
	if _, err := files.Stat(ctx, dir); !errors.Is(err, sandbox.NotFound) {
		return err
	}
	if err := above(ctx, files, dir); err != nil {
		return err
	}
	if err := files.Mkdir(ctx, dir, 0o755); err != nil && !errors.Is(err, sandbox.Conflict) {
		return err
	}
	return nil
}

// upload takes a file, or a folder as a zip.
func (w *Wire) upload(rw http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(rw, r.Body, int64(w.cfg.MaxUpload))
	if err := r.ParseMultipartForm(8 << 20); err != nil {
		status := http.StatusBadRequest
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			status = http.StatusRequestEntityTooLarge
		}
		fastapi.Refuse(rw, status, err)
		return
	}
	defer func() { _ = r.MultipartForm.RemoveAll() }() // what stays is in the system's folder for such
	var faults []fastapi.Fault
	f, head, err := r.FormFile("file")
	if err != nil {
		faults = append(faults, fastapi.At("missing", "Field required", "file"))
	} else {
		defer f.Close()
	}
	target := r.FormValue("target_path")
	if target == "" {
		faults = append(faults, fastapi.At("missing", "Field required", "target_path"))
	}
	if len(faults) > 0 {
		fastapi.Reject(rw, faults)
		return
	}
	files, err := w.files(r.Context(), w.runtimeOf(r))
	if err == nil && isTrue(r.FormValue("unzip")) {
		err = unzip(r.Context(), files, target, f, head.Size)
	} else if err == nil {
		err = put(r.Context(), files, target, f)
	}
	if err != nil {
		fail(rw, err)
		return
	}
	fastapi.Write(rw, http.StatusOK, nothing{})
}

func isTrue(s string) bool {
	switch strings.ToLower(s) {
	case "true", "1", "on", "yes", "t", "y":
		return true
	}
	return false
}

// mostEntries bounds those of a zip.
const mostEntries = 100_000

// unzip writes what is in a zip below a folder. The workspace's size bounds it.
func unzip(ctx context.Context, files api.Files, dir string, r io.ReaderAt, size int64) error {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return raise(anyError, "File is not a zip file: %v", err)
	}
	if len(z.File) > mostEntries {
		return raise(anyError, "the zip has more than %d entries", mostEntries)
	}
	if err := above(ctx, files, path.Join(dir, "x")); err != nil {
		return err
	}
	for _, e := range z.File {
		name := strings.TrimSuffix(e.Name, "/")
		if !filepath.IsLocal(name) {
			return raise(anyError, "the zip has an entry %q, which leads out of its folder", e.Name)
		}
		to := path.Join(dir, name)
		if e.FileInfo().IsDir() {
			err = above(ctx, files, path.Join(to, "x"))
		} else {
			err = unzipOne(ctx, files, to, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func unzipOne(ctx context.Context, files api.Files, to string, e *zip.File) error {
	content, err := e.Open()
	if err != nil {
		return raise(anyError, "read %q of the zip: %v", e.Name, err)
	}
	defer content.Close()
	return put(ctx, files, to, content)
}

package e2b

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"path"
	"strings"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

// readFile answers a file's content, or a part of it.
func (s *Server) readFile(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	f, at, err := s.files(ctx, r.URL.Query().Get("path"))
	if err != nil {
		return err
	}
	i, err := follow(ctx, f, at)
	switch {
	case err != nil:
		return err
	case i.Type != "file":
		return sandbox.Errorf(sandbox.Invalid, "%s is not a file", shown(at))
	}
	c := &content{ctx: ctx, files: f, name: i.Path, size: i.Size}
	defer c.stop()
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", mime.FormatMediaType("inline", map[string]string{"filename": path.Base(at)}))
	// Clients list every coding that they know. What costs more than it saves is done
	// for those that want this one.
	if i.Size > 0 && r.Header.Get("Range") == "" && strings.TrimSpace(r.Header.Get("Accept-Encoding")) == "gzip" {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		if _, err := io.Copy(z, c); err != nil {
			panic(http.ErrAbortHandler) // its beginning is out: a whole answer would be a lie
		}
		return z.Close()
	}
	if i.Size == 0 {
		w.Header().Set("Content-Length", "0") // clients look for it
	}
	http.ServeContent(w, r, "", i.MTime, c)
	if c.err != nil {
		panic(http.ErrAbortHandler) // as above
	}
	return nil
}

// mostLinks bounds how many links are followed.
const mostLinks = 16

// follow describes an entry, or what its links lead to.
func follow(ctx context.Context, f api.Files, at string) (sandbox.FileInfo, error) {
	for range mostLinks {
		i, err := f.Stat(ctx, at)
		if err != nil || i.Type != "link" {
			return i, err
		}
		target := i.Target
		if !path.IsAbs(target) {
			target = path.Join(path.Dir(shown(at)), target)
		}
		if at, err = placeOf(target); err != nil {
			return i, err
		}
	}
	return sandbox.FileInfo{}, sandbox.Errorf(sandbox.Invalid, "%s: too many links", shown(at))
}

// content is a file that can be read from anywhere. It is one call for each place
// that reading begins at.
type content struct {
	ctx   context.Context // it lives as long as one request
	files api.Files
	name  string
	size  int64
	at    int64
	pipe  *io.PipeReader // nil before reading begins
	err   error          // why it could not be read
}

// Seek implements [io.Seeker].
func (c *content) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += c.at
	case io.SeekEnd:
		offset += c.size
	}
	if offset != c.at {
		c.stop()
	}
	c.at = offset
	return offset, nil
}

// Read implements [io.Reader].
func (c *content) Read(b []byte) (int, error) {
	if c.at >= c.size {
		return 0, io.EOF
	}
	if c.pipe == nil {
		out, in := io.Pipe()
		c.pipe = out
		from := c.at
		go func() { // it ends with the pipe, which stop closes
			_, err := c.files.Read(c.ctx, c.name, from, c.size-from, in)
			_ = in.CloseWithError(err) // a pipe's Close does not fail
		}()
	}
	n, err := c.pipe.Read(b)
	c.at += int64(n)
	if err != nil && (!errors.Is(err, io.EOF) || c.at < c.size) {
		c.err = errors.Join(err, io.ErrUnexpectedEOF)
		return n, c.err
	}
	return n, err
}

// stop ends reading.
func (c *content) stop() {
	if c.pipe != nil {
		_ = c.pipe.Close() // as above
		c.pipe = nil
	}
}

// written is a file that was written, as clients read it.
type written struct {
	Name string `json:"name"`
	Type string `json:"type"`
	Path string `json:"path"`
	// Metadata are those of the request.
	Metadata map[string]string `json:"metadata,omitempty"`
}

// A file's metadata are its extended attributes below a name, and come as headers.
// Together they are of few bytes, those of the names in full with them.
const (
	metadataPrefix  = "X-Metadata-"
	attributePrefix = "e2b."
	attributeSpace  = "user." + attributePrefix
	mostMetadata    = 4096
	mostMetadataKey = 255 - len(attributeSpace)
)

// metadataOf reads the metadata that files are to have.
func metadataOf(h http.Header) (map[string]string, error) {
	all, size := map[string]string{}, 0
	for name, values := range h {
		key, ok := strings.CutPrefix(strings.ToLower(name), strings.ToLower(metadataPrefix))
		if !ok {
			continue
		}
		value := values[0]
		size += len(attributeSpace) + len(key) + len(value)
		if key == "" || len(key) > mostMetadataKey || !isPrintable(key) || !isPrintable(value) {
			return nil, sandbox.Errorf(sandbox.Invalid, "metadata %q: %q", key, value).WithHint("keys of at most %d bytes and values are printable ASCII", mostMetadataKey)
		}
		all[key] = value
	}
	if size > mostMetadata {
		return nil, sandbox.Errorf(sandbox.Invalid, "metadata of %d bytes", size).WithHint("at most %d bytes are kept of a file, with %q before each key", mostMetadata, attributeSpace)
	}
	return all, nil
}

func isPrintable(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}

// withMetadata are attributes of a file that have these metadata.
func withMetadata(all map[string]string) map[string]string {
	attributes := map[string]string{}
	for k, v := range all {
		attributes[attributePrefix+k] = v
	}
	return attributes
}

// metadataFrom are the metadata of an entry; nil are none.
func metadataFrom(attributes map[string]string) (all map[string]string) {
	for name, v := range attributes {
		if k, ok := strings.CutPrefix(name, attributePrefix); ok {
			if all == nil {
				all = map[string]string{}
			}
			all[k] = v
		}
	}
	return all
}

// writeFiles writes the body into a file, or each part of it into its own.
func (s *Server) writeFiles(w http.ResponseWriter, r *http.Request) error {
	metadata, err := metadataOf(r.Header)
	if err != nil {
		return err
	}
	var in io.Reader = r.Body
	switch coding := r.Header.Get("Content-Encoding"); coding {
	case "", "identity":
	case "gzip":
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			return sandbox.Errorf(sandbox.Invalid, "the body: %w", err)
		}
		in = coded{z}
	default:
		return statusError{sandbox.Errorf(sandbox.Invalid, "the coding %q", coding).WithHint("send gzip, or none"), http.StatusUnsupportedMediaType}
	}
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return sandbox.Errorf(sandbox.Invalid, "the content type: %w", err)
	}
	name := r.URL.Query().Get("path")
	var all []written
	if kind == "multipart/form-data" {
		all, err = s.writeParts(r.Context(), multipart.NewReader(in, params["boundary"]), name, metadata)
	} else {
		var one written
		one, err = s.writeFile(r.Context(), name, in, metadata)
		all = []written{one}
	}
	if errors.Is(err, sandbox.Exhausted) {
		err = statusError{err, http.StatusInsufficientStorage}
	}
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, all)
	return nil
}

// coded is a body that its sender has coded.
type coded struct{ io.Reader }

// Read implements [io.Reader].
func (c coded) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		err = sandbox.Errorf(sandbox.Invalid, "the body: %w", err)
	}
	return n, err
}

// writeParts writes each file of a form: to the path of the request, or where there
// is none by its own file name, which is a whole path.
func (s *Server) writeParts(ctx context.Context, form *multipart.Reader, name string, metadata map[string]string) ([]written, error) {
	all := []written{}
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, sandbox.Errorf(sandbox.Invalid, "the form: %w", err)
		}
		if part.FormName() != "file" {
			continue
		}
		to := name
		if to == "" {
			to = fileName(part)
		}
		one, err := s.writeFile(ctx, to, part, metadata)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	if len(all) == 0 || name != "" && len(all) > 1 {
		return nil, sandbox.Errorf(sandbox.Invalid, "%d files in the form", len(all)).WithHint("send one for the path, or each with its path as the file's name")
	}
	return all, nil
}

// fileName is a part's, with its folders, which [multipart.Part.FileName] takes away.
func fileName(p *multipart.Part) string {
	_, params, err := mime.ParseMediaType(p.Header.Get("Content-Disposition"))
	if err != nil {
		return ""
	}
	return params["filename"]
}

func (s *Server) writeFile(ctx context.Context, name string, in io.Reader, metadata map[string]string) (written, error) {
	if name == "" {
		return written{}, sandbox.Errorf(sandbox.Invalid, "no path to write to").WithHint("give path=")
	}
	f, at, err := s.files(ctx, name)
	if err != nil {
		return written{}, err
	}
	if _, err := f.Write(ctx, at, 0, in); err != nil {
		return written{}, err
	}
	if len(metadata) > 0 { // a file that was written has none
		if err := f.SetAttributes(ctx, at, withMetadata(metadata)); err != nil {
			return written{}, err
		}
	}
	return written{Name: path.Base(shown(at)), Type: "file", Path: shown(at), Metadata: metadata}, nil
}

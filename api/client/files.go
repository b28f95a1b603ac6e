package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/url"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/api/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// Files implements [api.Workspaces].
func (c *Client) Files(ctx context.Context, session string) (api.Files, error) {
	if err := c.none(ctx, request{method: get, path: path("/v1/sessions/%/files", session)}); err != nil {
		return nil, err
	}
	return &files{c, session}, nil
}

// files is a session's workspace on a server.
type files struct {
	c       *Client
	session string
}

func (f *files) at(form string) string { return path("/v1/sessions/%/files", f.session) + form }

// Stat implements [api.Files].
func (f *files) Stat(ctx context.Context, name string) (sandbox.FileInfo, error) {
	return call[sandbox.FileInfo](ctx, f.c, request{method: get, path: f.at("/stat"), query: url.Values{"path": {name}}})
}

// Tree implements [api.Files].
func (f *files) Tree(ctx context.Context, name string, depth int) iter.Seq2[sandbox.FileInfo, error] {
	q := url.Values{"path": {name}}
	setInt(q, "depth", int64(depth))
	return follow[sandbox.FileInfo](ctx, f.c, request{method: get, path: f.at("/tree"), query: q})
}

// Read implements [api.Files].
func (f *files) Read(ctx context.Context, name string, offset, length int64, w io.Writer) (int64, error) {
	q := url.Values{"path": {name}}
	setInt(q, "offset", offset)
	setInt(q, "length", length)
	counted := &counter{w: w}
	_, err := f.c.download(ctx, request{method: get, path: f.at("/content"), query: q}, counted)
	return counted.n, err
}

// Write implements [api.Files].
func (f *files) Write(ctx context.Context, name string, mode uint32, r io.Reader) (int64, error) {
	q := url.Values{"path": {name}}
	setMode(q, mode)
	t, err := call[wire.Taken](ctx, f.c, request{method: put, path: f.at("/content"), query: q, raw: only(r)})
	return t.Bytes, err
}

// only hides what else a reader is: a transport would close it.
func only(r io.Reader) io.Reader { return struct{ io.Reader }{r} }

// Put implements [api.Files].
func (f *files) Put(ctx context.Context, list []sandbox.File, local sandbox.Local) error {
	if list == nil {
		list = []sandbox.File{}
	}
	_, err := connect[struct{}](ctx, f.c, wire.Begin{Session: f.session, Put: list}, sandbox.Streams{Local: local})
	return err
}

// PutTar implements [api.Files].
func (f *files) PutTar(ctx context.Context, dir string, r io.Reader) (sandbox.Moved, error) {
	return call[sandbox.Moved](ctx, f.c, request{method: put, path: f.at("/tar"), query: url.Values{"dir": {dir}}, raw: only(r)})
}

// Get implements [api.Files].
func (f *files) Get(ctx context.Context, dir string, paths []string, w io.Writer) (moved sandbox.Moved, err error) {
	result, err := f.c.download(ctx, request{method: get, path: f.at("/tar"), query: url.Values{"dir": {dir}, "path": paths}}, w)
	if result != nil {
		err = errors.Join(err, json.Unmarshal(result, &moved))
	}
	return moved, err
}

// Mkdir implements [api.Files].
func (f *files) Mkdir(ctx context.Context, name string, mode uint32) error {
	q := url.Values{"path": {name}}
	setMode(q, mode)
	return f.c.none(ctx, request{method: post, path: f.at("/mkdir"), query: q})
}

// SetAttributes implements [api.Files].
func (f *files) SetAttributes(ctx context.Context, name string, all map[string]string) error {
	return f.c.none(ctx, request{method: put, path: f.at("/attributes"), query: url.Values{"path": {name}}, body: wire.Attributes{Attributes: all}})
}

// Move implements [api.Files].
func (f *files) Move(ctx context.Context, from, to string) error {
	return f.c.none(ctx, request{method: post, path: f.at("/move"), query: url.Values{"from": {from}, "to": {to}}})
}

// Remove implements [api.Files].
func (f *files) Remove(ctx context.Context, name string, recursive bool) error {
	q := url.Values{"path": {name}}
	setBool(q, "recursive", recursive)
	return f.c.none(ctx, request{method: del, path: f.at(""), query: q})
}

// Watch implements [api.Files].
func (f *files) Watch(ctx context.Context, name string, recursive bool) iter.Seq2[sandbox.FileEvent, error] {
	q := url.Values{"path": {name}}
	setBool(q, "recursive", recursive)
	return follow[sandbox.FileEvent](ctx, f.c, request{method: get, path: f.at("/watch"), query: q})
}

// download copies an answer in bytes, and returns what the server says came of it.
func (c *Client) download(ctx context.Context, r request, w io.Writer) (json.RawMessage, error) {
	r.header = http.Header{"TE": {"trailers"}} // so that an error behind the first byte is told, and not cut off
	res, err := c.send(ctx, r)
	if err != nil {
		return nil, whole(err)
	}
	defer res.Body.Close()
	sink := &sinkWriter{w: w}
	if _, err := io.Copy(sink, res.Body); err != nil {
		if sink.failed != nil {
			return nil, sink.failed
		}
		return nil, c.unreachable(ctx, err)
	}
	var result json.RawMessage
	if text := res.Trailer.Get(wire.TrailerResult); text != "" {
		result = json.RawMessage(text)
	}
	if text := res.Trailer.Get(wire.TrailerProblem); text != "" {
		var p wire.Problem
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			return result, err
		}
		return result, p.Err()
	}
	return result, nil
}

// whole is the error that a server has answered, alone.
func whole(err error) error {
	_, err = partly[struct{}](err)
	return err
}

// sinkWriter remembers that its own writer failed, and not the connection.
type sinkWriter struct {
	w      io.Writer
	failed error
}

// Write implements [io.Writer].
func (s *sinkWriter) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	s.failed = err
	return n, err
}

// counter counts what was written.
type counter struct {
	w io.Writer
	n int64
}

// Write implements [io.Writer].
func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

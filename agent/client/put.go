package client

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/caisson-dev/caisson/agent/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// Put copies files into the workspace as a role's user. Contents are streamed,
// those that files refer to from local.
// Errors: Exhausted where the workspace is full, Invalid for a path that leaves
// it or a source that changed its size meanwhile.
func (c *Client) Put(ctx context.Context, role sandbox.Role, files []sandbox.File, local sandbox.Local) error {
	_, err := c.put(ctx, wire.Put{Role: string(role)}, func(w io.Writer) error { return send(w, files, local) })
	return err
}

// PutTar unpacks a tar stream of files, folders, links and hard links below a
// folder of the workspace. Times are kept. Errors: those of [Client.Put], and
// what r returns.
func (c *Client) PutTar(ctx context.Context, role sandbox.Role, dir string, r io.Reader) (sandbox.Moved, error) {
	reply, err := c.put(ctx, wire.Put{Role: string(role), Dir: wire.Name(dir)}, func(w io.Writer) error {
		_, err := io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{r}, make([]byte, wire.MaxChunk))
		if err != nil {
			return &sourceError{"a stream", err}
		}
		return nil
	})
	return sandbox.Moved{Files: reply.Files, Bytes: reply.Bytes}, err
}

func (c *Client) put(ctx context.Context, req wire.Put, send func(io.Writer) error) (wire.Reply, error) {
	s, err := c.open(ctx, wire.Request{Op: wire.OpPut, Put: &req})
	if err != nil {
		return wire.Reply{}, err
	}
	defer s.Close()
	stop := context.AfterFunc(ctx, func() { _ = s.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	type answered struct {
		reply wire.Reply
		err   error
	}
	answers := make(chan answered, 1)
	go func() {
		reply, err := answer(s)
		_ = s.SetWriteDeadline(time.Unix(1, 0)) // whatever it says, there is nothing more to send
		answers <- answered{reply, err}
	}()
	out := &sink{w: wire.DataWriter{W: s}}
	sent := send(out)
	if sent == nil {
		sent = wire.WriteFrame(s, wire.TypeDataEnd, nil)
	}
	var local *sourceError
	if errors.As(sent, &local) && out.err == nil {
		return wire.Reply{}, sandbox.Errorf(sandbox.Invalid, "put %s: %w", local.path, local.err)
	}
	got := <-answers // also after a failed write: the agent knows why
	if ctx.Err() != nil {
		return got.reply, ctx.Err()
	}
	return got.reply, got.err
}

// sink remembers that it failed: then the source is not to blame.
type sink struct {
	w   io.Writer
	err error
}

func (s *sink) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	if err != nil {
		s.err = err
	}
	return n, err
}

// Get writes a tar stream of a folder of the workspace to w, or of those paths
// alone below it. What it holds comes from the sandbox: whoever unpacks it has
// to check every name. Errors: NotFound, Invalid, Denied, Unavailable, and w's.
func (c *Client) Get(ctx context.Context, role sandbox.Role, dir string, paths []string, w io.Writer) (sandbox.Moved, error) {
	s, err := c.open(ctx, wire.Request{Op: wire.OpGet, Get: &wire.Get{Role: string(role), Dir: wire.Name(dir), Paths: wire.Names(paths)}})
	if err != nil {
		return sandbox.Moved{}, err
	}
	defer s.Close()
	stop := context.AfterFunc(ctx, func() { _ = s.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	r, err := transfer(s, func(b []byte) error {
		_, err := w.Write(b)
		return err
	})
	return sandbox.Moved{Files: r.Files, Bytes: r.Bytes, Left: r.Count, LeftOut: r.Skipped}, orContext(ctx, err)
}

// sourceError is a failure on the host's side of a file.
type sourceError struct {
	path string
	err  error
}

func (e *sourceError) Error() string { return e.path + ": " + e.err.Error() }
func (e *sourceError) Unwrap() error { return e.err }

func send(w io.Writer, files []sandbox.File, local sandbox.Local) error {
	tw := tar.NewWriter(w)
	for _, f := range files {
		if err := sendFile(tw, f, local); err != nil {
			return err
		}
	}
	return tw.Close()
}

func sendFile(tw *tar.Writer, f sandbox.File, local sandbox.Local) error {
	h := &tar.Header{Name: f.Path, Mode: int64(f.Mode), Typeflag: tar.TypeReg, Size: f.Size, Format: tar.FormatPAX}
	switch {
	case f.Dir:
		h.Typeflag, h.Size = tar.TypeDir, 0
		if f.Mode == 0 {
			h.Mode = 0o755
		}
	case f.Link != "":
		h.Typeflag, h.Size, h.Linkname = tar.TypeSymlink, 0, f.Link
	case f.Ref == "":
		h.Size = int64(len(f.Data))
	}
	if h.Mode == 0 {
		h.Mode = 0o644
	}
	if err := tw.WriteHeader(h); err != nil {
		return err
	}
	switch {
	case h.Typeflag != tar.TypeReg:
		return nil
	case f.Ref == "":
		_, err := tw.Write(f.Data)
		return err
	}
	src, err := local.Open(f.Ref)
	if err != nil {
		return &sourceError{f.Path, err}
	}
	defer src.Close()
	n, err := io.Copy(tw, io.LimitReader(src, f.Size))
	if err == nil && n < f.Size {
		return &sourceError{f.Path, fmt.Errorf("it shrank to %d bytes while it was read", n)}
	}
	return err
}

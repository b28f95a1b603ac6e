package client

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/caisson-dev/caisson/agent/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// Put copies files into the workspace as a role's user. Contents are streamed.
// Errors: Exhausted where the workspace is full, Invalid for a path that leaves
// it or a source that changed its size meanwhile.
func (c *Client) Put(ctx context.Context, role sandbox.Role, files []sandbox.File) error {
	s, err := c.open(ctx, wire.Request{Op: wire.OpPut, Put: &wire.Put{Role: string(role)}})
	if err != nil {
		return err
	}
	defer s.Close()
	stop := context.AfterFunc(ctx, func() { _ = s.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	answered := make(chan error, 1)
	go func() {
		_, err := answer(s)
		_ = s.SetWriteDeadline(time.Unix(1, 0)) // whatever it says, there is nothing more to send
		answered <- err
	}()
	sent := send(s, files)
	var local *sourceError
	if errors.As(sent, &local) {
		return sandbox.Errorf(sandbox.Invalid, "put %s: %w", local.path, local.err)
	}
	err = <-answered // also after a failed write: the agent knows why
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// sourceError is a failure on the host's side of a file.
type sourceError struct {
	path string
	err  error
}

func (e *sourceError) Error() string { return e.path + ": " + e.err.Error() }
func (e *sourceError) Unwrap() error { return e.err }

func send(s *yamux.Stream, files []sandbox.File) error {
	tw := tar.NewWriter(dataWriter{s})
	for _, f := range files {
		if err := sendFile(tw, f); err != nil {
			return err
		}
	}
	if err := tw.Close(); err != nil {
		return err
	}
	return wire.WriteFrame(s, wire.TypeDataEnd, nil)
}

func sendFile(tw *tar.Writer, f sandbox.File) error {
	h := &tar.Header{Name: f.Path, Mode: int64(f.Mode), Typeflag: tar.TypeReg, Size: f.Size, Format: tar.FormatPAX}
	switch {
	case f.Dir:
		h.Typeflag, h.Size = tar.TypeDir, 0
		if f.Mode == 0 {
			h.Mode = 0o755
		}
	case f.Link != "":
		h.Typeflag, h.Size, h.Linkname = tar.TypeSymlink, 0, f.Link
	case f.Source == "":
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
	case f.Source == "":
		_, err := tw.Write(f.Data)
		return err
	}
	src, err := os.Open(f.Source)
	if err != nil {
		return &sourceError{f.Source, err}
	}
	defer src.Close()
	n, err := io.Copy(tw, io.LimitReader(src, f.Size))
	if err == nil && n < f.Size {
		return &sourceError{f.Source, fmt.Errorf("it shrank to %d bytes while it was read", n)}
	}
	return err
}

// dataWriter cuts a stream of bytes into Data frames.
type dataWriter struct{ w io.Writer }

func (d dataWriter) Write(p []byte) (int, error) {
	n := 0
	for len(p) > 0 {
		part := p[:min(len(p), wire.MaxChunk)]
		if err := wire.WriteFrame(d.w, wire.TypeData, part); err != nil {
			return n, err
		}
		n += len(part)
		p = p[len(part):]
	}
	return n, nil
}

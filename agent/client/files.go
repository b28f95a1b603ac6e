package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"path"
	"strings"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/caisson-dev/caisson/agent/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// fileCall opens a call on a path, which ends with ctx.
func (c *Client) fileCall(ctx context.Context, op wire.Op, req wire.File) (*yamux.Stream, func(), error) {
	s, err := c.open(ctx, wire.Request{Op: op, File: &req})
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = s.SetDeadline(time.Unix(1, 0)) })
	return s, func() {
		stop()
		_ = s.Close() // the answer has come, or never will
	}, nil
}

func (c *Client) shortFileCall(ctx context.Context, op wire.Op, req wire.File) (wire.Reply, error) {
	s, done, err := c.fileCall(ctx, op, req)
	if err != nil {
		return wire.Reply{}, err
	}
	defer done()
	r, err := answer(s)
	return r, orContext(ctx, err)
}

// orContext prefers the reason that a context gives for an error of a file
// call, and says otherwise what to do about it.
func orContext(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	var e *sandbox.Error
	if hint, ok := fileHints[sandbox.KindOf(err)]; ok && errors.As(err, &e) && sandbox.HintOf(err) == "" {
		return e.WithHint("%s", hint)
	}
	return err
}

var fileHints = map[sandbox.Kind]string{
	sandbox.NotFound:  "see what there is with: caisson files ls",
	sandbox.Invalid:   "name a file or folder inside /workspace, /tmp or the home folder, without links that lead out of it",
	sandbox.Conflict:  "remove or move what is in the way; -r removes a folder with all that is in it",
	sandbox.Denied:    "change its mode in the session, as its owner",
	sandbox.Exhausted: "remove something, or create a session with a larger workspace",
}

// Stat describes one entry of the workspace; a link is not followed. Errors of
// all file calls: NotFound, Invalid for a path that leaves the workspace,
// Denied, Conflict, Exhausted, Unavailable.
func (c *Client) Stat(ctx context.Context, role sandbox.Role, name string) (sandbox.FileInfo, error) {
	r, err := c.shortFileCall(ctx, wire.OpStat, wire.File{Path: wire.Name(name), Role: string(role)})
	if err != nil {
		return sandbox.FileInfo{}, err
	}
	if r.Info == nil {
		return sandbox.FileInfo{}, broken("stat", fmt.Errorf("%w: empty", wire.ErrFrame))
	}
	return checkInfo(*r.Info, name)
}

// beside reports whether a path is beside the workspace: then, and only then,
// answers have absolute paths too.
func beside(asked string) bool { return sandbox.Within(path.Clean(asked), wire.Beside) }

// checkInfo refuses what an agent in the wrong hands might say of a path, since
// callers make files of theirs from it.
func checkInfo(i wire.FileInfo, asked string) (sandbox.FileInfo, error) {
	name := string(i.Path)
	if name != path.Clean(name) || path.IsAbs(name) != beside(asked) || name == ".." || strings.HasPrefix(name, "../") || strings.ContainsRune(name, 0) {
		return sandbox.FileInfo{}, broken("read a listing", fmt.Errorf("%w: path %q", wire.ErrFrame, name))
	}
	return sandbox.FileInfo{
		Path: name, Type: i.Type, Size: i.Size, Mode: i.Mode & 0o777, MTime: time.Unix(0, i.MTimeNS).UTC(), Target: string(i.Target), Attributes: i.Attributes,
	}, nil
}

// Tree lists what is below a folder, level by level, down to depth levels; 0 is
// all of them. It fails with Exhausted, after what it has, where there is more
// than an agent lists.
func (c *Client) Tree(ctx context.Context, role sandbox.Role, name string, depth int) iter.Seq2[sandbox.FileInfo, error] {
	return func(yield func(sandbox.FileInfo, error) bool) {
		s, done, err := c.fileCall(ctx, wire.OpTree, wire.File{Path: wire.Name(name), Role: string(role), Depth: depth})
		if err != nil {
			yield(sandbox.FileInfo{}, err)
			return
		}
		defer done()
		stopped, count, size := false, 0, 0
		r, err := transfer(s, func(b []byte) error {
			if size += len(b); size > wire.MaxListedBytes {
				return broken("read a listing", fmt.Errorf("%w: more than %d bytes", wire.ErrFrame, wire.MaxListedBytes))
			}
			return jsonLines(b, func(i wire.FileInfo) error {
				info, err := checkInfo(i, name)
				if count++; count > wire.MaxListed {
					err = broken("read a listing", fmt.Errorf("%w: more than %d entries", wire.ErrFrame, wire.MaxListed))
				}
				if err == nil && !yield(info, nil) {
					stopped = true
					err = errStop
				}
				return err
			})
		})
		switch {
		case stopped:
		case err != nil:
			yield(sandbox.FileInfo{}, orContext(ctx, err))
		case r.More:
			yield(sandbox.FileInfo{}, sandbox.Errorf(sandbox.Exhausted, "%s holds more than %d entries", name, r.Files).WithHint("list a folder further down"))
		}
	}
}

var errStop = errors.New("the caller wants no more")

func jsonLines[T any](b []byte, each func(T) error) error {
	lines := bufio.NewScanner(strings.NewReader(string(b)))
	lines.Buffer(nil, wire.MaxChunk+1)
	for lines.Scan() {
		var v T
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			return broken("read a listing", fmt.Errorf("%w: %w", wire.ErrFrame, err))
		}
		if err := each(v); err != nil {
			return err
		}
	}
	return lines.Err()
}

// transfer hands on the Data frames of a call until its Reply.
func transfer(s io.Reader, each func([]byte) error) (wire.Reply, error) {
	r := wire.NewReader(s)
	for {
		f, err := r.Next()
		switch {
		case err != nil:
			return wire.Reply{}, broken("read the agent's answer", err)
		case f.Type == wire.TypeData:
			if err := each(f.Payload); err != nil {
				return wire.Reply{}, err
			}
		case f.Type == wire.TypeFailure:
			return wire.Reply{}, failure(f)
		case f.Type == wire.TypeReply:
			var reply wire.Reply
			if err := f.Message(&reply); err != nil {
				return reply, broken("read the agent's answer", err)
			}
			return reply, nil
		default:
			return wire.Reply{}, broken("read the agent's answer", fmt.Errorf("%w: type %d in a file transfer", wire.ErrFrame, f.Type))
		}
	}
}

// ReadFile copies a file of the workspace to w, from offset on, at most length
// bytes where that is not 0. It streams: memory does not grow with the file.
func (c *Client) ReadFile(ctx context.Context, role sandbox.Role, name string, offset, length int64, w io.Writer) (int64, error) {
	s, done, err := c.fileCall(ctx, wire.OpRead, wire.File{Path: wire.Name(name), Role: string(role), Offset: offset, Length: length})
	if err != nil {
		return 0, err
	}
	defer done()
	var n int64
	r, err := transfer(s, func(b []byte) error {
		if length > 0 && n+int64(len(b)) > length {
			return broken("read "+name, fmt.Errorf("%w: more than %d bytes", wire.ErrFrame, length))
		}
		m, err := w.Write(b)
		n += int64(m)
		return err
	})
	if err == nil && r.Bytes != n {
		err = broken("read "+name, fmt.Errorf("%w: %d bytes promised, %d came", wire.ErrFrame, r.Bytes, n))
	}
	return n, orContext(ctx, err)
}

// WriteFile copies r into a file of the workspace, which appears whole or not
// at all. mode 0 keeps that of a file that is there, and is 0644 otherwise.
func (c *Client) WriteFile(ctx context.Context, role sandbox.Role, name string, mode uint32, r io.Reader) (int64, error) {
	s, done, err := c.fileCall(ctx, wire.OpWrite, wire.File{Path: wire.Name(name), Role: string(role), Mode: mode})
	if err != nil {
		return 0, err
	}
	defer done()
	answered := make(chan error, 1)
	go func() {
		_, err := answer(s)
		_ = s.SetWriteDeadline(time.Unix(1, 0)) // whatever it says, there is nothing more to send
		answered <- err
	}()
	src := &sourceReader{r: r}
	n, err := io.Copy(wire.DataWriter{W: s}, src)
	if src.err != nil {
		return n, src.err // the stream closes without an end, and the agent drops what it has
	}
	if err == nil {
		err = wire.WriteFrame(s, wire.TypeDataEnd, nil)
	}
	if told := <-answered; told != nil {
		err = told // the agent knows better why sending failed
	}
	return n, orContext(ctx, err)
}

// sourceReader remembers whether it was the source that failed.
type sourceReader struct {
	r   io.Reader
	err error
}

func (s *sourceReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// Mkdir makes a folder and those above it. One that is there is fine.
func (c *Client) Mkdir(ctx context.Context, role sandbox.Role, name string, mode uint32) error {
	_, err := c.shortFileCall(ctx, wire.OpMkdir, wire.File{Path: wire.Name(name), Role: string(role), Mode: mode})
	return err
}

// SetAttributes replaces the extended attributes of an entry.
func (c *Client) SetAttributes(ctx context.Context, role sandbox.Role, name string, all map[string]string) error {
	_, err := c.shortFileCall(ctx, wire.OpAttributes, wire.File{Path: wire.Name(name), Role: string(role), Attributes: all})
	return err
}

// Move renames an entry, also into another folder, which it makes.
func (c *Client) Move(ctx context.Context, role sandbox.Role, from, to string) error {
	_, err := c.shortFileCall(ctx, wire.OpMove, wire.File{Path: wire.Name(from), To: wire.Name(to), Role: string(role)})
	return err
}

// Remove removes an entry; a folder with something in it only if recursive.
func (c *Client) Remove(ctx context.Context, role sandbox.Role, name string, recursive bool) error {
	_, err := c.shortFileCall(ctx, wire.OpRemove, wire.File{Path: wire.Name(name), Role: string(role), Recursive: recursive})
	return err
}

// Watch tells of changes in a folder, until the loop is left or ctx is done.
// The first event has the Op "ready": from then on nothing is missed, except
// where an "overflow" says so.
func (c *Client) Watch(ctx context.Context, role sandbox.Role, name string, recursive bool) iter.Seq2[sandbox.FileEvent, error] {
	return func(yield func(sandbox.FileEvent, error) bool) {
		s, done, err := c.fileCall(ctx, wire.OpWatch, wire.File{Path: wire.Name(name), Role: string(role), Recursive: recursive})
		if err != nil {
			yield(sandbox.FileEvent{}, err)
			return
		}
		defer done()
		stopped := false
		tell := func(e sandbox.FileEvent) error {
			if !yield(e, nil) {
				stopped = true
				return errStop
			}
			return nil
		}
		_, err = transfer(s, func(b []byte) error {
			if len(b) == 0 {
				return tell(sandbox.FileEvent{Op: "ready"})
			}
			return jsonLines(b, func(e wire.FileEvent) error { return tell(sandbox.FileEvent{Path: string(e.Path), Op: e.Op}) })
		})
		if !stopped && ctx.Err() == nil {
			yield(sandbox.FileEvent{}, err)
		}
	}
}

package client

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/caisson-dev/caisson/agent/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// More than an honest agent tells of: entries, names in folders, bytes of all of
// these, and combinations of execs. What a byte decodes to can be many times its
// size, so each is counted as it comes.
const (
	maxObserved      = 2_500_000
	maxNames         = 4_000_000
	maxObservedBytes = 384 << 20
	maxActorSets     = 4096
)

// Observe hands take what was touched in the workspace since the last call whose
// take returned nil. Errors: Unavailable, and those of take.
func (c *Client) Observe(ctx context.Context, opts sandbox.ObserveOptions, take func(*sandbox.Observation) error) error {
	s, err := c.open(ctx, wire.Request{Op: wire.OpObserve, Observe: &wire.Observe{
		Exact: opts.Exact, TimeMS: ceilMS(opts.Budget.Time), Bytes: int64(opts.Budget.Bytes),
	}})
	if err != nil {
		return err
	}
	defer s.Close()
	stop := context.AfterFunc(ctx, func() { _ = s.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	o := &observing{s: s, frames: wire.NewReader(s)}
	seen, err := o.entries()
	if err != nil {
		return orContext(ctx, err)
	}
	seen.Read = o.read
	if err := take(seen); err != nil {
		return orContext(ctx, err) // the agent keeps what it told
	}
	if err := wire.WriteFrame(s, wire.TypeDataEnd, nil); err != nil {
		return orContext(ctx, broken("observe the workspace", err))
	}
	_, err = transfer(s, func([]byte) error { return nil })
	return orContext(ctx, err)
}

// observing is one call under way.
type observing struct {
	s      *yamux.Stream
	frames *wire.Reader
	end    wire.Frame // that ended the last stream of bytes
	rest   []byte
	ended  bool
	most   int64 // bytes that may still come; 0 does not count them
}

// Read joins Data frames until another frame comes.
func (o *observing) Read(p []byte) (int, error) {
	for len(o.rest) == 0 {
		if o.ended {
			return 0, io.EOF
		}
		f, err := o.frames.Next()
		if err != nil {
			return 0, broken("observe the workspace", err)
		}
		switch f.Type {
		case wire.TypeData:
			o.rest = f.Payload
			if o.most > 0 {
				if o.most -= int64(len(o.rest)); o.most <= 0 {
					return 0, forged("more than %d bytes of names", maxObservedBytes)
				}
			}
		case wire.TypeFailure:
			return 0, failure(f)
		default:
			o.end, o.ended = f, true
		}
	}
	n := copy(p, o.rest)
	o.rest = o.rest[n:]
	return n, nil
}

func forged(format string, args ...any) error {
	return broken("observe the workspace", fmt.Errorf("%w: "+format, append([]any{wire.ErrFrame}, args...)...))
}

func (o *observing) entries() (*sandbox.Observation, error) {
	o.most = maxObservedBytes
	defer func() { o.most = 0 }()
	in := bufio.NewReaderSize(o, 64<<10)
	var entries []sandbox.Touched
	var by []uint64 // of each entry: the execs by their bits
	for names := 0; ; {
		if _, err := in.Peek(1); errors.Is(err, io.EOF) {
			break
		}
		e, err := wire.ReadEntry(in)
		if err != nil {
			return nil, orForged(err)
		}
		if names += len(e.Names); names > maxNames {
			return nil, forged("more than %d names", maxNames)
		}
		t, err := checkEntry(&e)
		if err != nil {
			return nil, err
		}
		if entries, by = append(entries, t), append(by, e.Actors); len(entries) > maxObserved {
			return nil, forged("more than %d entries", maxObserved)
		}
	}
	var told wire.Observed
	if o.end.Type != wire.TypeObserved {
		return nil, forged("type %d", o.end.Type)
	}
	if err := o.end.Message(&told); err != nil {
		return nil, orForged(err)
	}
	if told.Count != len(entries) || len(told.Actors) > 64 {
		return nil, forged("%d entries of %d", len(entries), told.Count)
	}
	actors := make([]sandbox.ID, len(told.Actors))
	for i, a := range told.Actors {
		if actors[i] = sandbox.ID(a); a != "" && !actors[i].Valid() {
			return nil, forged("exec %q", a)
		}
	}
	sets := map[uint64][]sandbox.ID{}
	for i := range entries {
		execs, ok := sets[by[i]]
		if !ok {
			if len(sets) == maxActorSets {
				return nil, forged("more than %d combinations of execs", maxActorSets)
			}
			execs = actorSet(actors, by[i])
			sets[by[i]] = execs
		}
		entries[i].Execs = execs
	}
	return &sandbox.Observation{Walked: short(told.Walked), Partial: short(told.Partial), Entries: entries}, nil
}

func orForged(err error) error {
	if errors.Is(err, wire.ErrFrame) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return forged("%v", err)
	}
	return err
}

func short(s string) string { return s[:min(len(s), 200)] }

func actorSet(actors []sandbox.ID, bits uint64) []sandbox.ID {
	var set []sandbox.ID
	for i, id := range actors {
		if bits&(1<<i) != 0 {
			set = append(set, id)
		}
	}
	if bits&(1<<63) != 0 && len(actors) < 64 || len(set) == 0 {
		set = append(set, "")
	}
	return set
}

// Restore makes entries as they are described, in order, and folders' times
// last. Errors: those of the file calls. What was made before an error stays.
func (c *Client) Restore(ctx context.Context, entries []sandbox.Restore) error {
	s, err := c.open(ctx, wire.Request{Op: wire.OpRestore, Restore: &wire.Restore{}})
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
	out := bufio.NewWriterSize(wire.DataWriter{W: s}, wire.MaxChunk)
	for i := range entries {
		local, err := sendRestore(out, &entries[i])
		if local != nil {
			return local // the stream closes without an end, and the agent stops
		}
		if err != nil {
			return orContext(ctx, <-answered)
		}
	}
	if out.Flush() == nil {
		_ = wire.WriteFrame(s, wire.TypeDataEnd, nil) // the answer tells
	}
	return orContext(ctx, <-answered)
}

// sendRestore sends one entry. local is a failure on this side.
func sendRestore(out *bufio.Writer, r *sandbox.Restore) (local, sent error) {
	e := wire.Entry{Path: r.Path, Mode: r.State.Mode, MTime: r.State.MTime, Target: string(r.State.Target)}
	for kind, k := range kinds {
		if k == r.State.Kind {
			e.Kind = byte(kind)
		}
	}
	if e.Kind == wire.KindFile {
		e.Target, e.Keep = r.LinkTo, r.LinkTo == "" && r.Open == nil
	}
	if _, err := out.Write(wire.AppendEntry(nil, &e)); err != nil {
		return nil, err
	}
	if e.Kind != wire.KindFile || r.Open == nil {
		return nil, nil
	}
	f, err := r.Open()
	if err != nil {
		return err, nil
	}
	defer f.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := f.Read(buf)
		if n > 0 {
			if _, err := out.Write(append(binary.AppendUvarint(nil, uint64(n)), buf[:n]...)); err != nil {
				return nil, err
			}
		}
		if errors.Is(err, io.EOF) {
			_, err := out.Write([]byte{0})
			return nil, err
		}
		if err != nil {
			return err, nil
		}
	}
}

// checkPath reports whether a path that an agent named lies below the
// workspace.
func checkPath(p string) bool {
	return p != "" && p == path.Clean(p) && !path.IsAbs(p) && p != ".." && !strings.HasPrefix(p, "../") && !strings.ContainsRune(p, 0)
}

var kinds = [...]sandbox.FileKind{
	wire.KindGone: sandbox.KindNone, wire.KindFile: sandbox.KindFile, wire.KindDir: sandbox.KindDir, wire.KindLink: sandbox.KindLink,
	wire.KindOther: sandbox.KindOther,
}

// checkEntry refuses what an agent in the wrong hands might say.
func checkEntry(e *wire.Entry) (sandbox.Touched, error) {
	t := sandbox.Touched{Path: e.Path, Whole: e.Whole, Names: e.Names}
	if !checkPath(e.Path) {
		return t, forged("path %q", short(e.Path))
	}
	for _, n := range e.Names {
		if n == "" || n == "." || n == ".." || strings.ContainsAny(n, "/\x00") {
			return t, forged("name %q", short(n))
		}
	}
	t.State = sandbox.FileState{
		Kind: kinds[e.Kind], Mode: e.Mode, Links: e.Links, Size: e.Size, MTime: e.MTime, CTime: e.CTime, BTime: e.BTime, Inode: e.Inode,
	}
	if e.Kind == wire.KindLink || e.Kind == wire.KindOther {
		t.State.Target = []byte(e.Target)
	}
	return t, nil
}

// read asks for contents, a round at a time.
func (o *observing) read(_ context.Context, wants []sandbox.Want, take func(int, io.Reader, func() string) error) error {
	const round = 64 << 10
	for at := 0; at < len(wants); at += round {
		part := wants[at:min(at+round, len(wants))]
		var b []byte
		for _, w := range part {
			n := uint64(w.Entry) << 1
			if w.Hash {
				n |= 1
			}
			b = binary.AppendUvarint(b, n)
		}
		if _, err := (wire.DataWriter{W: o.s}).Write(b); err != nil {
			return broken("observe the workspace", err)
		}
		if err := wire.WriteFrame(o.s, wire.TypeDataEnd, nil); err != nil {
			return broken("observe the workspace", err)
		}
		o.ended = false
		in := bufio.NewReaderSize(o, 64<<10)
		for i := range part {
			c := &contentReader{in: in}
			if err := take(at+i, c, func() string { return c.sum }); err != nil {
				return err
			}
			if _, err := io.Copy(io.Discard, c); err != nil { // what was not read
				return orForged(err)
			}
		}
		if _, err := in.ReadByte(); !errors.Is(err, io.EOF) || o.end.Type != wire.TypeDataEnd {
			return forged("bytes behind the last content")
		}
	}
	return nil
}

// contentReader reads one content.
type contentReader struct {
	in   *bufio.Reader
	left uint64
	sum  string // once it was read to its end
	done bool
}

func (c *contentReader) Read(p []byte) (int, error) {
	if c.done {
		return 0, io.EOF
	}
	if c.left == 0 {
		n, err := binary.ReadUvarint(c.in)
		if err != nil {
			return 0, notEnd(err)
		}
		if c.left = n; n == 0 {
			return 0, c.finish()
		}
	}
	n, err := c.in.Read(p[:min(uint64(len(p)), c.left)])
	c.left -= uint64(n)
	return n, notEnd(err)
}

// notEnd is for an end where there must not be one.
func notEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return forged("a content without an end")
	}
	return err
}

func (c *contentReader) finish() error {
	c.done = true
	b, err := c.in.ReadByte()
	if err != nil {
		return notEnd(err)
	}
	if b != wire.ContentOK {
		return io.EOF
	}
	var sum [32]byte
	if _, err := io.ReadFull(c.in, sum[:]); err != nil {
		return forged("a content without a hash")
	}
	c.sum = hex.EncodeToString(sum[:])
	return io.EOF
}

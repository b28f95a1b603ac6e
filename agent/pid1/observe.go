//go:build linux

package pid1

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/hashicorp/yamux"

	"github.com/caisson-dev/caisson/agent/track"
	"github.com/caisson-dev/caisson/agent/wire"
)

var errTouched = errors.New("the workspace was touched since it was last observed")

// trackBegin tells the tracker that an exec is about to start.
func (a *Agent) trackBegin(ex *exec) error {
	if !ex.req.Track {
		return nil
	}
	if !ex.req.Late && a.tracker.Touched() > 0 {
		return errTouched
	}
	a.tracker.Begin(ex.req.ID, a.leftovers(), ex.req.Fresh)
	return nil
}

// trackEnd tells it that one has ended, and returns how much there is to
// observe. settled says that nothing of it is left.
func (a *Agent) trackEnd(ex *exec, settled bool) int {
	if !ex.req.Track {
		return 0
	}
	left := false
	if !settled && !a.childless() && !a.leadersOnly() {
		n, err := a.members(ex.group, func(int) {})
		left = n > 0 || err != nil
	}
	return a.tracker.End(ex.req.ID, left || a.leftovers())
}

// leftovers reports whether something of an exec that has ended still runs.
func (a *Agent) leftovers() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.anyLeftLocked() {
		return false
	}
	if a.childless() {
		return false
	}
	a.sweepLocked()
	return a.anyLeftLocked()
}

func (a *Agent) anyLeftLocked() bool {
	for _, ex := range a.execs {
		if ex.ended && !ex.settled || ex.shell != nil && !ex.inShell() && ex.shell.jobs.Load() {
			return true
		}
	}
	return false
}

// callObserve serves wire.Observe.
func (a *Agent) callObserve(s *yamux.Stream, r *wire.Reader, req *wire.Observe) {
	b := newBudget(req)
	rounds := b.listen(r)
	defer func() {
		go func() {
			for range rounds { // nobody waits to hand out another
			}
		}()
	}()
	o, err := a.tracker.Observe(req.Exact, b.over)
	if err != nil {
		fail(s, "internal", err)
		return
	}
	taken := false
	defer func() { o.Done(taken) }()
	out := bufio.NewWriterSize(wire.DataWriter{W: s}, wire.MaxChunk/2)
	buf := make([]byte, 0, 512)
	for i := range o.Entries {
		buf = wire.AppendEntry(buf[:0], &o.Entries[i])
		if _, err := out.Write(buf); err != nil {
			return
		}
	}
	if out.Flush() != nil {
		return
	}
	told := wire.Observed{Count: len(o.Entries), Actors: o.Actors, Walked: o.Walked, Partial: o.Partial}
	if wire.WriteMessage(s, wire.TypeObserved, told) != nil {
		return
	}
	for wants := range rounds {
		if len(wants) == 0 {
			taken = true
			reply(s, wire.Reply{})
			return
		}
		for _, w := range wants {
			if w>>1 >= uint64(len(o.Entries)) || sendContent(out, a.tracker, o.Entries[w>>1].Path, w&1 == 1, b) != nil {
				return
			}
		}
		if out.Flush() != nil || wire.WriteFrame(s, wire.TypeDataEnd, nil) != nil {
			return
		}
	}
}

// readWants reads one round of numbers.
func readWants(r *wire.Reader) ([]uint64, error) {
	in := bufio.NewReader(&dataReader{frames: r})
	var wants []uint64
	for {
		w, err := binary.ReadUvarint(in)
		switch {
		case errors.Is(err, io.EOF):
			return wants, nil
		case err != nil:
			return nil, err
		case len(wants) == wire.MaxWants:
			return nil, fmt.Errorf("%w: more than %d wants", wire.ErrFrame, wire.MaxWants)
		}
		wants = append(wants, w)
	}
}

// callRestore serves wire.Restore.
func (a *Agent) callRestore(s *yamux.Stream, r *wire.Reader) {
	in := bufio.NewReaderSize(&dataReader{frames: r}, 64<<10)
	rest := a.tracker.Restorer()
	made, err := restoreAll(rest, in)
	err = errors.Join(err, rest.Finish())
	a.room.stale()
	if err != nil {
		fail(s, fileKind(err), err)
		return
	}
	reply(s, wire.Reply{Files: made})
}

func restoreAll(rest *track.Restorer, in *bufio.Reader) (int, error) {
	for made := 0; ; made++ {
		if _, err := in.Peek(1); errors.Is(err, io.EOF) {
			return made, nil
		}
		e, err := wire.ReadEntry(in)
		if err != nil {
			return made, err
		}
		var content io.Reader
		if e.Kind == wire.KindFile && !e.Keep && e.Target == "" {
			content = &chunks{in: in}
		}
		if err := rest.Make(e, content); err != nil {
			return made, err
		}
	}
}

// chunks joins the chunks of one content.
type chunks struct {
	in   *bufio.Reader
	left uint64
	done bool
}

func (c *chunks) Read(p []byte) (int, error) {
	if c.left == 0 && !c.done {
		n, err := binary.ReadUvarint(c.in)
		if err != nil {
			return 0, io.ErrUnexpectedEOF
		}
		c.left, c.done = n, n == 0
	}
	if c.done {
		return 0, io.EOF
	}
	n, err := c.in.Read(p[:min(uint64(len(p)), c.left)])
	c.left -= uint64(n)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

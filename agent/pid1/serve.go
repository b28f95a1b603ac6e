//go:build linux

package pid1

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"
	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/wire"
	"github.com/caisson-dev/caisson/internal/known"
)

// helloPatience bounds how long a connection may take to say who it is.
const helloPatience = 5 * time.Second

// serve speaks with one client until its connection ends.
func (a *Agent) serve(conn net.Conn) {
	defer conn.Close()
	l, h, err := a.greet(conn)
	if err != nil {
		return // the client was told, or is gone
	}
	defer a.dismiss(l)
	switch {
	case h.Answer != "":
		a.passAnswer(conn, h.Answer)
		return
	case h.Outlet != "":
		a.passOutlet(conn, h.Outlet)
		return
	}
	joined := wire.Join(conn)
	session, err := yamux.Server(joined, wire.MuxConfig())
	if err != nil {
		return
	}
	defer session.Close()
	for {
		stream, err := session.AcceptStream()
		if err != nil {
			return
		}
		go a.call(stream, l, joined)
	}
}

// greet takes a connection's Hello and answers it, unless that asks for a file.
func (a *Agent) greet(conn net.Conn) (_ *lease, h wire.Hello, err error) {
	if err := conn.SetDeadline(time.Now().Add(helloPatience)); err != nil {
		return nil, h, err
	}
	f, err := wire.NewReader(conn).Next()
	if err != nil {
		return nil, h, err
	}
	if f.Type != wire.TypeHello {
		return nil, h, fmt.Errorf("%w: type %d for a hello", wire.ErrFrame, f.Type)
	}
	if err := f.Message(&h); err != nil {
		return nil, h, err
	}
	if no := a.admit(&h); no != nil {
		return nil, h, errors.Join(errors.New(no.Message), wire.WriteMessage(conn, wire.TypeFailure, no))
	}
	l := a.joinLease(h.Lease)
	if h.Answer != "" || h.Outlet != "" {
		return l, h, nil
	}
	w := wire.Welcome{Version: wire.Version, Build: a.cfg.Build, PID: os.Getpid(), Hardened: a.claim.Harden != nil, Starts: canSeeStarts(a.cfg.Alone != nil), Known: known.Digests()}
	err = errors.Join(wire.WriteMessage(conn, wire.TypeWelcome, w), conn.SetDeadline(time.Time{}))
	if err != nil {
		a.dismiss(l)
		return nil, h, err
	}
	return l, h, nil
}

// call serves one stream of conn.
func (a *Agent) call(s *yamux.Stream, l *lease, conn *wire.Joiner) {
	defer s.Close()
	// A short exec is answered before this, and its answer opens the stream. A
	// request that is larger than the stream's window waits for it.
	defer time.AfterFunc(startedDelay, conn.Flush).Stop()
	r := wire.NewReader(s)
	f, err := r.Next()
	if err != nil || f.Type != wire.TypeRequest {
		return
	}
	var req wire.Request
	if err := f.Message(&req); err != nil {
		fail(s, "invalid", err)
		return
	}
	if req.Op != wire.OpSample { // who looks on does not use it
		defer a.life.use()()
	}
	if req.Op != wire.OpExec && req.Op != wire.OpShell {
		conn.Flush() // what follows may be a transfer, or take long
	}
	switch {
	case req.Op == wire.OpExec && req.Exec != nil:
		a.callExec(s, r, req.Exec, l)
	case req.Op == wire.OpShell && req.Shell != nil:
		a.callShell(s, r, req.Shell, l)
	case req.Op == wire.OpAttach && req.Attach != nil:
		a.callAttach(s, r, req.Attach)
	case req.Op == wire.OpStdin && req.Stdin != nil:
		a.callStdin(s, r, req.Stdin)
	case req.Op == wire.OpInput && req.Input != nil:
		a.callInput(s, req.Input)
	case req.Op == wire.OpResize && req.Resize != nil:
		a.callResize(s, req.Resize)
	case req.Op == wire.OpKill && req.Kill != nil:
		a.callKill(s, req.Kill)
	case req.Op == wire.OpPut && req.Put != nil:
		a.callPut(s, r, req.Put)
	case req.Op == wire.OpSignal && req.Signal != nil:
		a.callSignal(s, req.Signal)
	case req.Op == wire.OpRenew && req.Renew != nil:
		a.life.renew(*req.Renew)
		reply(s, wire.Reply{})
	case req.Op == wire.OpGet && req.Get != nil:
		a.callGet(s, req.Get)
	case req.Op == wire.OpObserve && req.Observe != nil:
		a.callObserve(s, r, req.Observe)
	case req.Op == wire.OpRestore && req.Restore != nil:
		a.callRestore(s, r)
	case req.Op == wire.OpEgress && req.Egress != nil:
		a.callEgress(s, r, req.Egress)
	case req.Op == wire.OpTools && req.Tools != nil:
		a.callTools(s, r, req.Tools)
	case req.Op == wire.OpTake && req.Take != nil:
		a.callTake(s, r, req.Take)
	case req.Op == wire.OpDial && req.Dial != nil:
		a.callDial(s, r, req.Dial)
	case req.Op == wire.OpAnswer && req.Answer != nil:
		a.callAnswer(s, req.Answer)
	case req.Op == wire.OpJudge && req.Judge != nil:
		a.callJudge(s, r, req.Judge)
	case req.File != nil:
		a.callFile(s, r, req.Op, req.File)
	case req.Op == wire.OpList:
		reply(s, wire.Reply{Execs: a.list()})
	case req.Op == wire.OpScrub:
		a.callScrub(s)
	case req.Op == wire.OpSample:
		reply(s, wire.Reply{Sample: a.sample()})
	default:
		fail(s, "unsupported", fmt.Errorf("this agent has no call %q", req.Op))
	}
}

// reply and fail end a call. A client that is gone needs neither.
func reply(w io.Writer, r wire.Reply) { _ = wire.WriteMessage(w, wire.TypeReply, r) }

func fail(w io.Writer, kind string, err error) {
	_ = wire.WriteMessage(w, wire.TypeFailure, wire.Failure{Kind: kind, Message: err.Error()})
}

func (a *Agent) callExec(s *yamux.Stream, r *wire.Reader, req *wire.Exec, l *lease) {
	if err := checkExec(req); err != nil {
		fail(s, "invalid", err)
		return
	}
	call := func() { _ = wire.WriteFrame(s, wire.TypeJudge, nil) } // a client that is gone comes no more
	ex, err := a.start(req, l, call)
	if err != nil {
		failStart(s, err)
		return
	}
	a.stream(s, r, ex, &[2]int64{}, false)
}

// failStart tells why nothing began.
func failStart(w io.Writer, err error) {
	var never *notStarted
	switch {
	case errors.As(err, &never):
		_ = wire.WriteMessage(w, wire.TypeEnd, wire.End{Code: never.code, Error: never.text})
	case errors.Is(err, errTouched), errors.Is(err, errShellBusy):
		fail(w, "conflict", err)
	case errors.Is(err, errNoShell):
		fail(w, "not_found", err)
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ENOMEM), errors.Is(err, errBusy), errors.Is(err, unix.ENOSPC):
		fail(w, "exhausted", fmt.Errorf("start a process: %w", err))
	default:
		fail(w, "internal", err)
	}
}

func (a *Agent) callAttach(s *yamux.Stream, r *wire.Reader, req *wire.Attach) {
	ex := a.find(req.ID)
	if ex == nil {
		fail(s, "not_found", fmt.Errorf("no exec %s", req.ID))
		return
	}
	at := [2]int64{max(0, req.Stdout), max(0, req.Stderr)}
	if !req.NoWait {
		defer ex.out.reader(&at)()
	}
	a.stream(s, r, ex, &at, req.NoWait)
}

// stream sends an exec's output from at on, which moves, and its end to one client,
// and obeys it meanwhile.
// With noWait it ends with what is there.
func (a *Agent) stream(s *yamux.Stream, r *wire.Reader, ex *exec, at *[2]int64, noWait bool) {
	var gone atomic.Bool
	acked := make(chan struct{})
	go func() {
		defer close(acked)
		a.obey(r, ex)
		gone.Store(true)
		ex.out.wake()
	}()
	// The reader ends with the stream, which closes below.
	//
	// Started waits a moment for something to travel with: most processes are
	// short, and a message of its own costs each of them. Who waits for it, to
	// feed the process or to leave it alone, gets it at once.
	buf, err := wire.AppendMessage(make([]byte, 0, 1024), wire.TypeStarted, wire.Started{PID: ex.pid})
	if err != nil {
		return
	}
	var due atomic.Bool
	due.Store(ex.req.Stdin || ex.req.Drop || noWait)
	defer time.AfterFunc(startedDelay, func() {
		due.Store(true)
		ex.out.wake()
	}).Stop()
	for {
		pending := len(buf) > 0
		frame, end := ex.out.next(buf, at, func() bool { return noWait || gone.Load() || pending && due.Load() })
		switch {
		case end != nil:
			if frame, err = wire.AppendMessage(buf, wire.TypeEnd, end); err == nil {
				_, _ = s.Write(frame) // without it the client attaches again
			}
			<-acked
			return
		case frame == nil && pending:
			frame = buf
		case frame == nil:
			if noWait {
				reply(s, wire.Reply{})
			}
			return
		}
		if _, err := s.Write(frame); err != nil {
			return
		}
		buf = frame[:0]
	}
}

// startedDelay is how long a Started waits for company.
const startedDelay = 3 * time.Millisecond

// obey carries out what a client says while it follows an exec, until the
// client has everything or is gone.
func (a *Agent) obey(r *wire.Reader, ex *exec) {
	for {
		f, err := r.Next()
		if err != nil {
			return
		}
		switch f.Type {
		case wire.TypeAck:
			ack, err := f.Ack()
			if err != nil {
				return
			}
			ex.out.ack(ack)
			if ex.complete(ack) {
				if !ex.req.Drop { // what is kept for later readers stays
					a.delivered(ex)
				}
				return
			}
		case wire.TypeCancel:
			ex.end(endedCanceled)
		case wire.TypeSignal:
			var sig wire.Signal
			if f.Message(&sig) == nil && sig.Number > 0 && sig.Number <= 64 {
				if ex.inShell() {
					a.signalRun(ex, unix.Signal(sig.Number))
					continue
				}
				_ = a.signal(ex, unix.Signal(sig.Number)) // it may have ended: the End says so
			}
		default:
			return
		}
	}
}

// complete reports whether an ack covers all that ex will ever say.
func (ex *exec) complete(ack wire.Ack) bool {
	ex.out.mu.Lock()
	defer ex.out.mu.Unlock()
	return ex.out.end != nil && ack.Stdout >= ex.out.end.Stdout && ack.Stderr >= ex.out.end.Stderr
}

func (a *Agent) callStdin(s *yamux.Stream, r *wire.Reader, req *wire.Stdin) {
	ex := a.find(req.ID)
	if ex == nil {
		fail(s, "not_found", fmt.Errorf("no exec %s", req.ID))
		return
	}
	if ex.req.Terminal != nil {
		a.callType(s, r, ex)
		return
	}
	defer ex.closeStdin()
	for {
		f, err := r.Next()
		if err != nil {
			return
		}
		switch f.Type {
		case wire.TypeStdin:
			if err := ex.feed(f.Payload); err != nil {
				fail(s, "conflict", fmt.Errorf("standard input is closed: %w", err))
				return
			}
		case wire.TypeStdinEOF:
			reply(s, wire.Reply{})
			return
		default:
			return
		}
	}
}

func (a *Agent) callKill(s *yamux.Stream, req *wire.Kill) {
	ex := a.findOrForbid(req.ID)
	if ex == nil {
		fail(s, "not_found", fmt.Errorf("no exec %s", req.ID))
		return
	}
	if req.Unbegun {
		fail(s, "conflict", fmt.Errorf("exec %s has begun", req.ID))
		return
	}
	ex.endWith(ending{endedCanceled, req.Cause})
	<-ex.over
	if ex.req.Drop {
		<-ex.done // which waits for nobody to read
	}
	// Its process may have ended long ago, and what that left behind not.
	left := a.killRest(ex, time.Now().Add(killPatience))
	a.mu.Lock()
	ex.settled = left == 0
	a.mu.Unlock()
	a.sweepIPC(ex)
	reply(s, wire.Reply{Count: left})
}

func (a *Agent) callSignal(s *yamux.Stream, req *wire.Signal) {
	ex := a.find(req.ID)
	if ex == nil {
		fail(s, "not_found", fmt.Errorf("no exec %s", req.ID))
		return
	}
	if req.Number <= 0 || req.Number > 64 {
		fail(s, "invalid", fmt.Errorf("signal %d", req.Number))
		return
	}
	sig := unix.Signal(req.Number)
	if ex.inShell() {
		reply(s, wire.Reply{Count: a.signalRun(ex, sig)})
		return
	}
	if !req.All {
		if err := a.signal(ex, sig); err != nil {
			fail(s, "conflict", fmt.Errorf("exec %s has ended", req.ID))
			return
		}
		reply(s, wire.Reply{Count: 1})
		return
	}
	n, err := a.signalAll(ex, sig)
	if err != nil {
		fail(s, "internal", err)
		return
	}
	reply(s, wire.Reply{Count: n})
}

// signal sends sig to the exec's own process.
func (a *Agent) signal(ex *exec, sig unix.Signal) error {
	if ex.nest != nil {
		return ex.signalNest(sig, false)
	}
	return a.reaper.signal(ex, sig)
}

// signalAll sends sig to all that an exec started, and counts them.
func (a *Agent) signalAll(ex *exec, sig unix.Signal) (int, error) {
	visit := func(pid int) { _ = unix.Kill(pid, sig) } // gone meanwhile needs no signal
	if ex.nest != nil {
		visit = func(int) {}
		defer func() { _ = ex.signalNest(sig, true) }() // as above
	}
	return a.members(ex.group, visit)
}

func (a *Agent) callPut(s *yamux.Stream, r *wire.Reader, req *wire.Put) {
	a.putting <- struct{}{}
	files, size, err := a.put(req, &dataReader{frames: r})
	<-a.putting
	switch {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		fail(s, "exhausted", fmt.Errorf("the workspace is full: %w", err))
	case err != nil:
		fail(s, "invalid", err)
	default:
		reply(s, wire.Reply{Files: files, Bytes: size})
	}
}

// dataReader joins Data frames into the bytes that they carry.
type dataReader struct {
	frames *wire.Reader
	rest   []byte
	done   bool
}

func (d *dataReader) Read(p []byte) (int, error) {
	for len(d.rest) == 0 {
		if d.done {
			return 0, io.EOF
		}
		f, err := d.frames.Next()
		switch {
		case errors.Is(err, io.EOF):
			return 0, io.ErrUnexpectedEOF // the client went before its DataEnd
		case err != nil:
			return 0, err
		case f.Type == wire.TypeDataEnd:
			d.done = true
		case f.Type == wire.TypeData:
			d.rest = f.Payload
		default:
			return 0, fmt.Errorf("%w: type %d in a file transfer", wire.ErrFrame, f.Type)
		}
	}
	n := copy(p, d.rest)
	d.rest = d.rest[n:]
	return n, nil
}

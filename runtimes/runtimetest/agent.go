package runtimetest

import (
	"bytes"
	"crypto/subtle"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/caisson-dev/caisson/agent/wire"
)

// memoryAgent speaks the agent's side of the protocol and acts the programs of
// the corpus out.
type memoryAgent struct {
	record    func(argv []string)
	survivors func(argv []string) int // may be nil

	mu    sync.Mutex
	claim *wire.Claim
	execs map[string]*act
}

func (a *memoryAgent) serve(conn net.Conn) {
	defer conn.Close()
	f, err := wire.NewReader(conn).Next()
	var h wire.Hello
	if err != nil || f.Type != wire.TypeHello || f.Message(&h) != nil {
		return
	}
	if no := a.admit(&h); no != nil {
		_ = wire.WriteMessage(conn, wire.TypeFailure, no) // the client may be gone
		return
	}
	if wire.WriteMessage(conn, wire.TypeWelcome, wire.Welcome{Version: wire.Version, Build: "memory", PID: 1}) != nil {
		return
	}
	session, err := yamux.Server(conn, wire.MuxConfig())
	if err != nil {
		return
	}
	defer session.Close()
	for {
		s, err := session.AcceptStream()
		if err != nil {
			return
		}
		go a.call(s)
	}
}

func (a *memoryAgent) admit(h *wire.Hello) *wire.Failure {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case h.Version != wire.Version:
		return &wire.Failure{Kind: "unsupported", Message: "another version"}
	case h.Claim != nil && a.claim != nil:
		return &wire.Failure{Kind: "conflict", Message: "this sandbox is claimed"}
	case h.Claim != nil && len(h.Claim.Secret) < 32:
		return &wire.Failure{Kind: "invalid", Message: "a short secret"}
	case h.Claim != nil:
		a.claim, a.execs = h.Claim, map[string]*act{}
	case a.claim == nil:
		return &wire.Failure{Kind: "conflict", Message: "this sandbox is not claimed yet"}
	case subtle.ConstantTimeCompare(h.Secret, a.claim.Secret) != 1:
		return &wire.Failure{Kind: "denied", Message: "wrong secret"}
	}
	return nil
}

func (a *memoryAgent) call(s *yamux.Stream) {
	defer s.Close()
	r := wire.NewReader(s)
	f, err := r.Next()
	var req wire.Request
	if err != nil || f.Type != wire.TypeRequest || f.Message(&req) != nil {
		return
	}
	switch {
	case req.Op == wire.OpExec && req.Exec != nil && req.Exec.Shell == "":
		a.exec(s, r, req.Exec)
	case req.Op == wire.OpStdin && req.Stdin != nil:
		a.feed(s, r, req.Stdin.ID)
	case req.Op == wire.OpPut:
		for f, err := r.Next(); err == nil && f.Type == wire.TypeData; {
			f, err = r.Next()
		}
		reply(s, wire.Reply{})
	case req.Op == wire.OpKill && req.Kill != nil:
		a.kill(s, req.Kill.ID)
	case req.Op == wire.OpList:
		reply(s, wire.Reply{Execs: a.list()})
	case req.Op == wire.OpSample:
		reply(s, wire.Reply{Sample: &wire.Sample{Processes: 1}})
	default:
		_ = wire.WriteMessage(s, wire.TypeFailure, wire.Failure{Kind: "unsupported", Message: "no call " + string(req.Op)})
	}
}

func reply(s *yamux.Stream, r wire.Reply) { _ = wire.WriteMessage(s, wire.TypeReply, r) } // a client that is gone needs none

func (a *memoryAgent) kill(s *yamux.Stream, id string) {
	a.mu.Lock()
	x := a.execs[id]
	a.mu.Unlock()
	if x == nil {
		_ = wire.WriteMessage(s, wire.TypeFailure, wire.Failure{Kind: "not_found", Message: "no exec " + id})
		return
	}
	if x.survivors == 0 {
		x.end("canceled")
	}
	reply(s, wire.Reply{Count: x.survivors})
}

func (a *memoryAgent) list() []wire.ExecInfo {
	a.mu.Lock()
	defer a.mu.Unlock()
	var infos []wire.ExecInfo
	for id, x := range a.execs {
		infos = append(infos, wire.ExecInfo{ID: id, Argv: x.req.Argv, PID: 2, Running: true})
	}
	return infos
}

func (a *memoryAgent) exec(s *yamux.Stream, r *wire.Reader, req *wire.Exec) {
	a.record(req.Argv)
	play := programs(req.Argv)
	if play == nil {
		_ = wire.WriteMessage(s, wire.TypeEnd, wire.End{Code: 127, Error: req.Argv[0] + ": command not found"})
		return
	}
	x := &act{req: req, s: s, start: time.Now(), stop: make(chan string, 1), input: make(chan struct{})}
	if a.survivors != nil {
		x.survivors = a.survivors(req.Argv)
	}
	a.mu.Lock()
	a.execs[req.ID] = x
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.execs, req.ID)
	}()
	if wire.WriteMessage(s, wire.TypeStarted, wire.Started{PID: 2}) != nil {
		return
	}
	go func() {
		for {
			f, err := r.Next()
			if err != nil || f.Type == wire.TypeCancel {
				x.end("canceled")
			}
			if err != nil {
				return
			}
		}
	}()
	if ms := req.TimeoutMS; ms > 0 {
		timer := time.AfterFunc(time.Duration(ms)*time.Millisecond, func() { x.end("timeout") })
		defer timer.Stop()
	}
	x.finish(play(x))
}

func (a *memoryAgent) feed(s *yamux.Stream, r *wire.Reader, id string) {
	a.mu.Lock()
	x := a.execs[id]
	a.mu.Unlock()
	if x == nil {
		_ = wire.WriteMessage(s, wire.TypeFailure, wire.Failure{Kind: "not_found", Message: "no exec " + id})
		return
	}
	var all bytes.Buffer
	for {
		f, err := r.Next()
		if err != nil || f.Type != wire.TypeStdin {
			break
		}
		all.Write(f.Payload)
	}
	x.stdin = all.Bytes()
	close(x.input)
	reply(s, wire.Reply{})
}

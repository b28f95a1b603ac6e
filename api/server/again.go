package server

import (
	"bytes"
	"container/list"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/api/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// Bounds of answers that are kept for who asks again.
const (
	keptFor     = 24 * time.Hour
	mostKept    = 4096
	mostAnswer  = 1 << 20 // of one, in bytes; a larger one is not kept
	longestName = 255
)

// repeats keeps what was answered to calls with an Idempotency-Key, so that who
// asks again, having lost the answer, has it and makes nothing twice. The zero
// value is ready.
type repeats struct {
	mu    sync.Mutex
	calls map[string]*list.Element // of *repeat
	order list.List                // the oldest first
}

// repeat is one call.
type repeat struct {
	key    string
	body   [sha256.Size]byte
	begun  time.Time
	done   bool
	status int
	header http.Header
	answer []byte
}

// begin finds a call of the key, or begins one. Errors: Conflict for another body,
// and while the first is being answered.
func (p *repeats) begin(key string, body [sha256.Size]byte, now time.Time) (*repeat, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls == nil {
		p.calls = map[string]*list.Element{}
	}
	for e := p.order.Front(); e != nil && (now.Sub(e.Value.(*repeat).begun) > keptFor || p.order.Len() > mostKept); e = p.order.Front() {
		delete(p.calls, e.Value.(*repeat).key)
		p.order.Remove(e)
	}
	e, ok := p.calls[key]
	if !ok {
		r := &repeat{key: key, body: body, begun: now}
		p.calls[key] = p.order.PushBack(r)
		return r, false, nil
	}
	r := e.Value.(*repeat)
	switch {
	case r.body != body:
		return nil, false, sandbox.Errorf(sandbox.Conflict, "another request was made with this Idempotency-Key").WithHint("choose a new key for each request")
	case !r.done:
		return nil, false, sandbox.Errorf(sandbox.Conflict, "the request with this Idempotency-Key is being answered").WithHint("ask again once it is over")
	}
	return r, true, nil
}

// end keeps an answer. One that says that the call may go well another time is not
// kept, and neither is one that was cut off.
func (p *repeats) end(r *repeat, w *copying) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.status == 0 || w.status >= wire.StatusCanceled || w.status == http.StatusTooManyRequests || w.over {
		if e, ok := p.calls[r.key]; ok && e.Value.(*repeat) == r {
			delete(p.calls, r.key)
			p.order.Remove(e)
		}
		return
	}
	r.done, r.status, r.header, r.answer = true, w.status, w.Header().Clone(), w.copied.Bytes()
}

// copying copies an answer, as far as it is kept.
type copying struct {
	http.ResponseWriter
	status int
	copied bytes.Buffer
	over   bool
}

// WriteHeader implements [http.ResponseWriter].
func (w *copying) WriteHeader(code int) {
	if w.status == 0 {
		w.status = code
	}
	w.ResponseWriter.WriteHeader(code)
}

// Write implements [http.ResponseWriter].
func (w *copying) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	if w.over = w.over || w.copied.Len()+len(b) > mostAnswer; !w.over {
		w.copied.Write(b)
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap is for [http.ResponseController].
func (w *copying) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// whole reads a body, up to what the server takes; hint says what to do about one
// that is larger.
func (s *Server) whole(w http.ResponseWriter, r *http.Request, hint string) ([]byte, *problem) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(s.cfg.MaxBody)))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, ill(r.Context(), http.StatusRequestEntityTooLarge, hint, "the body is larger than %s", s.cfg.MaxBody)
	}
	if err != nil {
		return nil, ill(r.Context(), http.StatusBadRequest, "send the whole body", "read the body: %v", err)
	}
	return body, nil
}

// once answers a POST with an Idempotency-Key, once for each key of a caller.
func (s *Server) once(w http.ResponseWriter, r *http.Request) {
	name := r.Header.Get("Idempotency-Key")
	if name == "" || r.Method != http.MethodPost || wantsEvents(r.Header.Get("Accept")) {
		s.mux.ServeHTTP(w, r)
		return
	}
	ctx := r.Context()
	if len(name) > longestName {
		writeProblem(w, problemOf(ctx, sandbox.Errorf(sandbox.Invalid, "the Idempotency-Key is longer than %d bytes", longestName).WithHint("use a UUID, say"), nil))
		return
	}
	body, p := s.whole(w, r, "leave the Idempotency-Key out, or send less")
	if p != nil {
		writeProblem(w, p)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	who := sandbox.CallerFrom(ctx)
	sum := sha256.Sum256([]byte(who.Owner + "\x00" + who.Name + "\x00" + r.URL.RequestURI() + "\x00" + name))
	call, again, err := s.repeats.begin(hex.EncodeToString(sum[:]), sha256.Sum256(body), time.Now())
	if err != nil {
		writeProblem(w, problemOf(ctx, err, nil))
		return
	}
	if again {
		for k, v := range call.header {
			if k != "X-Request-Id" {
				w.Header()[k] = v
			}
		}
		w.Header().Set("Idempotent-Replayed", "true")
		w.WriteHeader(call.status)
		_, _ = w.Write(call.answer) // who asked may be gone
		return
	}
	noted, whole := &copying{ResponseWriter: w}, false
	defer func() {
		noted.over = noted.over || !whole // a panic has cut it off
		s.repeats.end(call, noted)
	}()
	s.mux.ServeHTTP(noted, r)
	whole = true
}

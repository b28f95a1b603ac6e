package swerex

import (
	"bytes"
	"container/list"
	"context"
	"net/http"
	"sync"

	"github.com/caisson-dev/caisson/sandbox"
)

// Bounds of answers that are kept for who asks again.
const (
	mostAnswers = 1024
	mostAnswer  = 1 << 20
)

// answers keeps what was answered to requests with an X-Request-ID: clients that
// lost the answer ask again with the same, and nothing is done twice. The zero value
// is ready.
type answers struct {
	mu    sync.Mutex
	calls map[string]*list.Element // of *answer
	order list.List                // the oldest first
}

// answer is one. done is closed once it is there.
type answer struct {
	key    string
	done   chan struct{}
	status int
	header http.Header
	body   bytes.Buffer
	lost   bool // it is too large to be kept, or its call panicked
}

// begin finds the answer of a key, or begins one, which mine says.
func (a *answers) begin(key string) (_ *answer, mine bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.calls == nil {
		a.calls = map[string]*list.Element{}
	}
	if e, ok := a.calls[key]; ok {
		return e.Value.(*answer), false
	}
	if a.order.Len() >= mostAnswers {
		oldest := a.order.Remove(a.order.Front()).(*answer)
		delete(a.calls, oldest.key)
	}
	one := &answer{key: key, done: make(chan struct{}), header: http.Header{}}
	a.calls[key] = a.order.PushBack(one)
	return one, true
}

// Header implements [http.ResponseWriter].
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements [http.ResponseWriter].
func (a *answer) WriteHeader(status int) { a.status = status }

// Write implements [http.ResponseWriter].
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }

// send answers with it.
func (a *answer) send(w http.ResponseWriter) {
	if a.lost {
		fail(w, raise(anyError, "the answer to this request is not kept any more"))
		return
	}
	for name, values := range a.header {
		w.Header()[name] = values
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body.Bytes()) // who asked may be gone
}

// once carries out a request of an id once, whoever goes away meanwhile. What has no
// id ends with who asks.
func (w *Wire) once(call http.HandlerFunc) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		id := r.Header.Get("X-Request-ID")
		if id == "" {
			call(rw, r)
			return
		}
		who := sandbox.CallerFrom(r.Context())
		one, mine := w.answers.begin(who.Owner + "\x00" + who.Name + "\x00" + r.URL.Path + "\x00" + id)
		if !mine {
			select {
			case <-one.done:
				one.send(rw)
			case <-r.Context().Done():
			}
			return
		}
		ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
		defer cancel()
		defer context.AfterFunc(w.ctx, cancel)()
		answered := false
		defer func() {
			one.lost = !answered
			close(one.done)
		}()
		call(one, r.WithContext(ctx))
		one.send(rw)
		if answered = one.body.Len() <= mostAnswer; !answered {
			one.body = bytes.Buffer{}
		}
	}
}

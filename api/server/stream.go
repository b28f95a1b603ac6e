package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/caisson-dev/caisson/api/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// Kinds of content.
const (
	typeJSON   = "application/json"
	typeEvents = "text/event-stream"
	typeBytes  = "application/octet-stream"
)

// keepAlive is how often a stream with nothing to say says so: proxies and
// clients take a long silence for a connection that is lost.
const keepAlive = 15 * time.Second

// wantsEvents reports whether a caller asks for events in place of one answer.
func wantsEvents(accept string) bool { return strings.Contains(accept, typeEvents) }

// handleRaw registers a call that writes its answer itself. An error that f
// returns before it has written anything is answered as any other. contents are
// the kinds of answer, with what is in each; a nil type is bytes.
func handleRaw[I any](s *Server, c call, contents map[string]*huma.Schema, f func(in *I, w http.ResponseWriter, r *http.Request) error) {
	op := s.operation(c)
	answer := &huma.Response{Description: "OK", Content: map[string]*huma.MediaType{}}
	for name, schema := range contents {
		answer.Content[name] = &huma.MediaType{Schema: schema}
	}
	op.Responses["200"] = answer
	huma.Register(s.api, op, func(ctx context.Context, in *I) (*huma.StreamResponse, error) {
		return &huma.StreamResponse{Body: func(hc huma.Context) {
			r, w := humago.Unwrap(hc)
			noted := &notedWriter{ResponseWriter: w}
			if err := f(in, noted, r); err != nil && noted.status == 0 {
				p, ok := err.(*problem) //nolint:errorlint // ours, as it was made
				if !ok {
					p = problemOf(ctx, err, nil)
				}
				writeProblem(noted, p)
			}
		}}, nil
	})
}

// eventSchema describes events of one kind of data.
func eventSchema() *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Description: "server-sent events, each with data in JSON; the last one is named end, or error where it went wrong"}
}

// events writes server-sent events. It is safe for concurrent use.
type events struct {
	ctx  context.Context
	stop func()
	done sync.WaitGroup

	mu     sync.Mutex
	w      io.Writer
	flush  func() error
	failed error
}

// openEvents begins an answer of events, which its caller closes. Errors:
// Exhausted where too many streams are open.
func (s *Server) openEvents(w http.ResponseWriter, r *http.Request) (*events, error) {
	release, err := s.takeStream()
	if err != nil {
		return nil, err
	}
	w.Header().Set("Content-Type", typeEvents)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // a proxy that collects would hold events back
	w.WriteHeader(http.StatusOK)
	rc := http.NewResponseController(w)
	ctx, cancel := context.WithCancel(r.Context())
	unbind := context.AfterFunc(s.ending, cancel)
	e := &events{ctx: ctx, w: w, flush: rc.Flush, stop: func() { unbind(); cancel(); release() }}
	e.failed = rc.Flush()
	e.done.Go(e.live)
	return e, nil
}

// tillEnd is a request that is given up once streams are to end. The caller stops it.
func (s *Server) tillEnd(r *http.Request) (_ *http.Request, stop func()) {
	ctx, cancel := context.WithCancel(r.Context())
	unbind := context.AfterFunc(s.ending, cancel)
	return r.WithContext(ctx), func() { unbind(); cancel() }
}

// takeStream takes one of the places for streams.
func (s *Server) takeStream() (release func(), err error) {
	select {
	case s.streams <- struct{}{}:
		return func() { <-s.streams }, nil
	default:
		return nil, sandbox.Errorf(sandbox.Exhausted, "%d streams are open", cap(s.streams)).WithHint("close some, or try again later")
	}
}

func (e *events) live() {
	tick := time.NewTicker(keepAlive)
	defer tick.Stop()
	for {
		select {
		case <-e.ctx.Done():
			return
		case <-tick.C:
			_ = e.write(": \n\n") // the next event tells
		}
	}
}

func (e *events) write(text string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failed == nil {
		_, e.failed = io.WriteString(e.w, text)
	}
	if e.failed == nil {
		e.failed = e.flush()
	}
	return e.failed
}

// send writes one event. id may be "".
func (e *events) send(name, id string, data any) error {
	b, err := json.Marshal(data)
	if err != nil {
		return err
	}
	if id != "" {
		id = "id: " + id + "\n"
	}
	return e.write(fmt.Sprintf("event: %s\n%sdata: %s\n\n", name, id, b))
}

// end writes the last event, without which a stream is cut off.
func (e *events) end(err error, result any) {
	if err != nil {
		_ = e.send(wire.EventError, "", problemOf(e.ctx, err, result)) // nobody reads it then
		return
	}
	_ = e.send(wire.EventEnd, "", result) // as above
}

func (e *events) close() {
	e.stop()
	e.done.Wait()
}

// sendAll writes what a sequence yields as events of one name, to its end. id
// names each; nil is nothing to go on from.
func sendAll[T any](s *Server, w http.ResponseWriter, r *http.Request, name string, id func(T) string, seq iter.Seq2[T, error]) error {
	e, err := s.openEvents(w, r)
	if err != nil {
		return err
	}
	defer e.close()
	for v, err := range seq {
		if err != nil {
			e.end(err, nil)
			return nil
		}
		at := ""
		if id != nil {
			at = id(v)
		}
		if e.send(name, at, v) != nil {
			return nil // who asked is gone
		}
	}
	e.end(e.ctx.Err(), struct{}{})
	return nil
}

// sure is a sequence without errors as one that could have some.
func sure[T any](seq iter.Seq[T]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for v := range seq {
			if !yield(v, nil) {
				return
			}
		}
	}
}

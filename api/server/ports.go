package server

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/coder/websocket"

	"github.com/caisson-dev/caisson/internal/preview"
	"github.com/caisson-dev/caisson/sandbox"
)

// previews is the pattern of what is handed on to programs that speak HTTP.
const previews = "/v1/sessions/{session}/ports/{port}/{path...}"

func ports(s *Server) {
	handleRaw(s, call{"DialPort", get, below("/ports/{port}"), "A connection to a port inside, over a WebSocket of binary messages", 0}, nil, func(in *struct {
		InSession
		Port int `path:"port" minimum:"1" maximum:"65535"`
	}, w http.ResponseWriter, r *http.Request) error {
		release, err := s.takeStream()
		if err != nil {
			return err
		}
		defer release()
		inside, err := s.svc.DialPort(r.Context(), in.Session, in.Port)
		if err != nil {
			return problemOf(r.Context(), err, nil)
		}
		defer inside.Close()
		ws, err := websocket.Accept(w, r, nil) // it answers itself what it refuses
		if err != nil {
			return nil //nolint:nilerr // as above
		}
		ws.SetReadLimit(-1) // a message is read in pieces
		r, stop := s.tillEnd(r)
		defer stop()
		outside := websocket.NetConn(r.Context(), ws, websocket.MessageBinary)
		go func() { // it ends with the connections, which both are closed below
			_, _ = io.Copy(inside, outside)
			_ = inside.Close()
		}()
		_, _ = io.Copy(outside, inside) // whichever ends, both do
		_ = outside.Close()
		return nil
	})
}

// preview hands a request on to a program that listens in a session.
func (s *Server) preview(w http.ResponseWriter, r *http.Request) {
	refuse := func(w http.ResponseWriter, err error) { writeProblem(w, problemOf(r.Context(), err, nil)) }
	release, err := s.takeStream()
	if err != nil {
		refuse(w, err)
		return
	}
	defer release()
	session := r.PathValue("session")
	port, err := strconv.Atoi(r.PathValue("port"))
	if err != nil {
		refuse(w, sandbox.Errorf(sandbox.Invalid, "%q is no port", r.PathValue("port")).WithHint("give 1 to 65535"))
		return
	}
	const before = 6 // parts of the path, the one in front of the first slash too
	rest := strings.SplitN(r.URL.EscapedPath(), "/", before+1)
	r, stop := s.tillEnd(r)
	defer stop()
	preview.Serve(w, r, preview.Target{
		Dial: func(ctx context.Context) (net.Conn, error) { return s.svc.DialPort(ctx, session, port) },
		Host: fmt.Sprintf("localhost:%d", port), Path: "/" + rest[before], Shared: true, Fail: refuse,
	})
}

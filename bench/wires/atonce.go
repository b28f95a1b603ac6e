//go:build linux

package main

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/caisson-dev/caisson/bench/rig"
)

// atOnce is a server that answers E2B's clients without doing anything: what a call
// costs them and the way to a server at least. It returns its address.
func atOnce(ctx context.Context, r *rig.Rig) (string, error) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v2/sandboxes", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"sandboxID": "i1", "templateID": "base", "clientID": "bare", "envdVersion": "0.6.4", "envdAccessToken": "none"}`)
	})
	mux.HandleFunc("POST /process.Process/Start", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/connect+json")
		frame(w, 0, `{"event":{"start":{"pid":1}}}`)
		_ = http.NewResponseController(w).Flush()
		frame(w, 0, `{"event":{"end":{"exitCode":0,"exited":true,"status":"exit status 0"}}}`)
		frame(w, 2, `{}`)
	})
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	r.Defer(srv.Close)
	go func() { _ = srv.Serve(ln) }() // it ends with the rig
	return "http://" + ln.Addr().String(), nil
}

// frame writes one message of Connect's streams.
func frame(w io.Writer, flags byte, body string) {
	_, _ = w.Write(append(binary.BigEndian.AppendUint32([]byte{flags}, uint32(len(body))), body...))
}

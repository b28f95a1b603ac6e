package service_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// TestStreamsEnd: whatever goes on for as long as somebody listens ends with the
// server, which would else wait for who listens, and what waits is answered.
func TestStreamsEnd(t *testing.T) {
	t.Parallel()
	a := ofAlice(t)
	session, execution := "/v1/sessions/work", "/v1/executions/"+a.ids["execution"]
	var tasks sync.WaitGroup
	begun := make(chan struct{}, 8)
	streams := []string{"/v1/events", "/v1/changes", session + "/files/watch?recursive=true", session + "/execs/" + a.ids["exec"] + "/output?follow=true"}
	for _, path := range streams {
		tasks.Go(func() {
			res := a.open(t.Context(), t, "alice", http.MethodGet, path, "")
			begun <- struct{}{}
			defer res.Body.Close()
			text, err := io.ReadAll(res.Body)
			if kind := res.Header.Get("Content-Type"); err != nil || res.StatusCode != http.StatusOK || kind != "text/event-stream" {
				t.Errorf("%s: %d %s %q, %v", path, res.StatusCode, kind, text, err)
			}
		})
	}
	for range streams {
		<-begun
	}
	tasks.Go(func() {
		status, body := a.send(t.Context(), t, "alice", http.MethodGet, execution+"?wait=10m", "")
		if status != http.StatusOK || !strings.Contains(body, `"state":"queued"`) {
			t.Errorf("a long poll: %d %s", status, body)
		}
	})
	a.end()
	tasks.Wait()
	view, err := a.Session(t.Context(), "alice~work")
	if err != nil || len(view.Execs) != 1 || !view.Execs[0].Ended.IsZero() {
		t.Errorf("what runs went with it: %+v, %v", view.Execs, err)
	}
}

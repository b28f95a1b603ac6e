package server_test

import (
	"net/http"
	"testing"

	"github.com/caisson-dev/caisson/api/server"
	"github.com/caisson-dev/caisson/sandbox"
)

// hello is a wire that says who asks.
type hello struct{}

func (hello) Patterns() []string { return []string{"GET /hello/{name}"} }

func (hello) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = w.Write([]byte(sandbox.CallerFrom(r.Context()).Owner + " to " + r.PathValue("name")))
}

func (hello) Refuse(w http.ResponseWriter, status int, err error) { http.Error(w, err.Error(), status) }

// TestWires has wires answer beside the API, those who are let in, and refuse the
// others in their own form.
func TestWires(t *testing.T) {
	t.Parallel()
	ts := serve(t, server.Config{Service: &fake{}, Wires: []server.Wire{hello{}}, Authenticate: func(r *http.Request) (sandbox.Caller, error) {
		if r.Header.Get("X-Api-Key") != "right" {
			return sandbox.Caller{}, sandbox.Errorf(sandbox.Denied, "who are you")
		}
		return sandbox.Caller{Owner: "ann"}, nil
	}})
	if res, body := ask(t, "GET", ts.URL+"/hello/bob", "", "X-Api-Key", "right"); res.StatusCode != 200 || body != "ann to bob" {
		t.Errorf("%d %q", res.StatusCode, body)
	}
	if res, body := ask(t, "GET", ts.URL+"/hello/bob", ""); res.StatusCode != 401 || body != "who are you\n" {
		t.Errorf("without a token: %d %q", res.StatusCode, body)
	}
	if res, _ := ask(t, "POST", ts.URL+"/hello/bob", "", "X-Api-Key", "right"); res.StatusCode != 405 {
		t.Errorf("another method: %d", res.StatusCode)
	}
}

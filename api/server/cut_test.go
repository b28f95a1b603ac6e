package server_test

import (
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/caisson-dev/caisson/api/server"
)

// breaking is a wire whose answer is cut off. It counts its ends.
type breaking struct{ ends int }

func (*breaking) Patterns() []string { return []string{"/breaking"} }

func (*breaking) Refuse(w http.ResponseWriter, status int, _ error) { w.WriteHeader(status) }

func (b *breaking) EndStreams() { b.ends++ }

func (*breaking) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	_, _ = w.Write([]byte("half of it"))
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// TestCutOff: an answer that is cut off does not look whole, and wires hear of the
// end of streams.
func TestCutOff(t *testing.T) {
	t.Parallel()
	b := &breaking{}
	cfg := server.Config{Service: &fake{}, Wires: []server.Wire{b}}
	ts := serve(t, cfg)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, ts.URL+"/breaking", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); !errors.Is(err, io.ErrUnexpectedEOF) || string(body) != "half of it" {
		t.Errorf("%q, %v", body, err)
	}
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if s.EndStreams(); b.ends != 1 {
		t.Errorf("told of its end %d times", b.ends)
	}
}

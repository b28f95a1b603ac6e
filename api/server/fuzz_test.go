package server_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/api/server"
	"github.com/caisson-dev/caisson/api/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// FuzzBody: whatever is sent as a run is run as it was written, or refused in the
// one form of errors.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{
		`{"code":"1","language":"python"}`, `{"files":[{"path":"a","data_base64":"/w=="}],"network":"none"}`, `{"network":{"mode":"bridge","allow":["x"]}}`,
		`{"limits":{"memory_bytes":1e99}}`, `{"code":`, `[]`, `null`, `{"env":[1]}`, `{"stdin_base64":"?"}`, "\xff", strings.Repeat("[", 20000),
	} {
		f.Add(seed)
	}
	s, err := server.New(server.Config{Service: &fake{run: func(_ context.Context, run sandbox.Run, _ sandbox.Streams) (sandbox.Result, error) {
		return sandbox.Result{ExecID: "1", Language: run.Language}, nil
	}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body string) {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", "/v1/runs", strings.NewReader(body)))
		if w.Code == 200 {
			var sent struct{ Language string }
			var res sandbox.Result
			if json.Unmarshal([]byte(body), &sent) != nil || json.Unmarshal(w.Body.Bytes(), &res) != nil || res.Language != sent.Language {
				t.Errorf("%q was run: %s", body, w.Body)
			}
			return
		}
		var p wire.Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Code != w.Code || w.Code >= 500 || p.Kind != "invalid" || p.Message == "" {
			t.Errorf("%q is answered %d: %s", body, w.Code, w.Body)
		}
	})
}

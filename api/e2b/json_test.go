package e2b

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestWorded: who sends JSON of another shape is told so in the words of JSON.
func TestWorded(t *testing.T) {
	t.Parallel()
	for sent, want := range map[string]string{
		`{"timeout": "soon"}`:                    "timeout takes a whole number, not a string",
		`{"timeout": 1.5}`:                       "timeout takes a whole number, not 1.5",
		`{"metadata": {"a": 1}}`:                 "metadata takes a string, not a number",
		`{"envVars": []}`:                        "envVars takes an object, not an array",
		`{"autoPause": "no"}`:                    "autoPause takes a boolean, not a string",
		`{"network": {"allowOut": "0.0.0.0/0"}}`: "network.allowOut takes an array, not a string",
		`[]`:                                     "it takes an object, not an array",
		`{"network": {"allowPublicTraffic": "yes"}}`: "network.allowPublicTraffic takes a boolean, not a string",
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/sandboxes", strings.NewReader(sent))
		err := body(httptest.NewRecorder(), r, &created{})
		if err == nil || err.Error() != "the body of the request: "+want {
			t.Errorf("%s: %v", sent, err)
		}
		if err := (plainJSON{}).Unmarshal([]byte(sent), &created{}); err == nil || err.Error() != want {
			t.Errorf("%s in a procedure: %v", sent, err)
		}
	}
}

package tools

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/sandbox"
)

func open(t *testing.T, text string) ([]sandbox.Callable, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "tools.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	entries, err := Load(name)
	if err != nil {
		return nil, err
	}
	return Open(entries, name, func(name string) string { return map[string]string{"KEY": "s3cret"}[name] })
}

// TestEntries reads what files declare, and names what is wrong there.
func TestEntries(t *testing.T) {
	t.Parallel()
	got, err := open(t, `
tools:
  - {name: a, description: d, command: [cat], timeout: 1500ms, concurrency: 3, verdict: ask, rate: 60/m, owner_budget: 1000/d, budget: 7,
     parameters: {type: object, properties: {x: {type: string}}}, result: {type: object}}`)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(got[0].Tool)
	want := `{"name":"a","description":"d","parameters":{"properties":{"x":{"type":"string"}},"type":"object"},"result":{"type":"object"},"timeout_ms":1500,` +
		`"concurrency":3,"verdict":"ask","rate":{"calls":60,"per_ms":60000},"owner_budget":{"calls":1000,"per_ms":86400000},"budget":7}`
	if err != nil || string(b) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, b, want)
	}
	for text, want := range map[string]string{
		"tools: [{name: a}]":                                          "exactly one of command and url",
		"tools: [{name: a b, command: [x]}]":                          "not a name",
		"tools: [{name: a, command: [x], what: 1}]":                   "what",
		"tools: [{name: a, command: [x], rate: many}]":                "no rate",
		"tools: [{name: a, command: [x], owner_budget: 1000}]":        "no rate",
		"tools: [{name: a, command: [x], timeout: soon}]":             "not a time",
		"tools: [{name: a, command: [x], verdict: maybe}]":            "verdict",
		"tools: [{name: a, url: 'ftp://x/'}]":                         "no address",
		"tools: [{name: a, url: 'http://x/', headers: {A: '${NO}'}}]": "needs the variable NO",
	} {
		if _, err := open(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{
		"tools: [{name: a, command: [cat], parameters: {type: string}}]", "tools: [{name: a, command: [cat], result: {type: 7}}]",
		"tools: [{name: a-b, command: [cat]}, {name: a_b, command: [cat]}]",
	} {
		callables, err := open(t, text)
		if err == nil {
			_, err = New(callables...)
		}
		if err == nil {
			t.Errorf("%s passes", text)
		}
	}
}

// TestCommand runs one in its folder, and says what it said where it fails.
func TestCommand(t *testing.T) {
	t.Parallel()
	got, err := open(t, `
tools:
  - {name: here, command: [sh, -c, 'cat; cat tools.yaml | wc -l']}
  - {name: fails, command: [sh, -c, 'echo why >&2; exit 3']}
  - {name: missing, command: [/no/such/program]}
  - {name: floods, command: [sh, -c, 'head -c 101000000 /dev/zero']}
  - {name: leaves, command: [sh, -c, 'sleep 1000 & echo 1']}
  - {name: hangs, command: [sh, -c, 'sleep 1000'], timeout: 100ms}`)
	if err != nil {
		t.Fatal(err)
	}
	w, _ := newWay(t, got...)
	for _, tt := range []struct{ tool, want string }{
		{"here", `"{\"x\":1}7\n"`}, {"fails", "exit status 3: why"}, {"missing", "no such file"}, {"leaves", "1"}, {"floods", "it printed more than"}, {"hangs", "has not answered within 100ms"},
	} {
		result, err := w.Call(t.Context(), tt.tool, []byte(`{"x":1}`))
		if err != nil {
			result = []byte(err.Error())
		}
		if !strings.Contains(string(result), tt.want) {
			t.Errorf("%s: %s", tt.tool, result)
		}
	}
}

// TestEndpoint posts arguments, and classes what comes back.
func TestEndpoint(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Do string }
		_ = json.NewDecoder(r.Body).Decode(&in)
		switch in.Do {
		case "json":
			_, _ = w.Write([]byte(`{"key":"` + r.Header.Get("Authorization") + `","type":"` + r.Header.Get("Content-Type") + `"}`))
		case "text":
			_, _ = w.Write([]byte("plain"))
		case "bytes":
			_, _ = w.Write([]byte{0xff, 0xfe})
		case "forbidden":
			http.Error(w, "not you", http.StatusForbidden)
		case "away":
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		case "flood":
			for piece := make([]byte, 1<<20); ; {
				if _, err := w.Write(piece); err != nil {
					return // the reader has had enough
				}
			}
		case "die":
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("half"))
		case "hang":
			<-r.Context().Done()
		}
	}))
	defer srv.Close()
	got, err := open(t, `
tools:
  - {name: web, url: '`+srv.URL+`', headers: {Authorization: 'Bearer ${KEY}'}}
  - {name: slow, url: '`+srv.URL+`', timeout: 100ms}
  - {name: gone, url: 'http://127.0.0.1:1/path?key=s3cret'}`)
	if err != nil {
		t.Fatal(err)
	}
	w, _ := newWay(t, got...)
	for _, tt := range []struct {
		tool, do, want string
		kind           error
	}{
		{"web", "json", `{"key":"Bearer s3cret","type":"application/json"}`, nil}, {"web", "text", `"plain"`, nil}, {"web", "bytes", `"//4="`, nil}, {"web", "nothing", "null", nil},
		{"web", "forbidden", "403 Forbidden: not you", sandbox.Denied}, {"web", "away", "302", sandbox.Internal},
		{"web", "flood", "answered more than", sandbox.Exhausted}, {"web", "die", "read the answer", sandbox.Unavailable}, {"slow", "hang", "has not answered within 100ms", sandbox.TimedOut},
		{"gone", "json", "does not answer", sandbox.Unavailable},
	} {
		result, err := w.Call(t.Context(), tt.tool, []byte(`{"do":"`+tt.do+`"}`))
		if err != nil {
			result = []byte(err.Error())
		}
		if !strings.Contains(string(result), tt.want) || tt.kind != nil && !errors.Is(err, tt.kind) || strings.Contains(string(result), "?key") {
			t.Errorf("%s %s: %s", tt.tool, tt.do, result)
		}
	}
}

package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/caisson-dev/caisson/api/server"
	"github.com/caisson-dev/caisson/sandbox"
)

// inside is a service with one session, which has a server of its own on port 80.
type inside struct {
	fake
	http *httptest.Server
}

func (s *inside) DialPort(ctx context.Context, session string, port int) (net.Conn, error) {
	if session != "a b" || port != 80 {
		return nil, sandbox.Errorf(sandbox.Unavailable, "nothing listens")
	}
	return new(net.Dialer).DialContext(ctx, "tcp", s.http.Listener.Addr().String())
}

// TestPreview hands requests on to a server in a session, without what shows who asks,
// and has its pages act for nobody.
func TestPreview(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
		w.Header().Set("Content-Security-Policy", "default-src *")
		w.Header().Set("X-Own", "yes")
		w.WriteHeader(http.StatusTeapot)
		for _, name := range []string{"Authorization", "X-Api-Key", "Cookie"} {
			if v := r.Header.Get(name); v != "" {
				fmt.Fprint(w, name, v)
			}
		}
		fmt.Fprintf(w, "%s %s %s %s", r.Method, r.Host, r.RequestURI, b)
	})
	mux.HandleFunc("/ws", func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = ws.CloseNow() }() // its client closes it
		kind, b, err := ws.Read(r.Context())
		if err == nil {
			_ = ws.Write(r.Context(), kind, append(b, b...))
			_, _, _ = ws.Read(r.Context())
		}
	})
	svc := &inside{http: httptest.NewServer(mux)}
	defer svc.http.Close()
	ts := serve(t, server.Config{Service: svc, Authenticate: func(r *http.Request) (sandbox.Caller, error) {
		if r.Header.Get("Authorization") != "Bearer right" {
			return sandbox.Caller{}, sandbox.Errorf(sandbox.Denied, "who are you")
		}
		return sandbox.Caller{}, nil
	}})
	base := ts.URL + "/v1/sessions/a%20b/ports/80"
	res, body := ask(t, "PUT", base+"/x%2Fy/?q=1&q=2", "sent", "Authorization", "Bearer right", "Cookie", "c=d", "X-API-Key", "k")
	if res.StatusCode != http.StatusTeapot || body != "PUT localhost:80 /x%2Fy/?q=1&q=2 sent" {
		t.Errorf("%d %q", res.StatusCode, body)
	}
	policies := res.Header.Values("Content-Security-Policy")
	if len(policies) != 2 || !strings.HasPrefix(policies[1], "sandbox ") || strings.Contains(policies[1], "same-origin") || res.Header.Get("Set-Cookie") != "" || res.Header.Get("X-Own") != "yes" {
		t.Errorf("%v", res.Header)
	}
	for at, want := range map[string]int{base + "/": http.StatusTeapot, ts.URL + "/v1/sessions/a%20b/ports/81/": 503, ts.URL + "/v1/sessions/a%20b/ports/x/": 400} {
		if res, body := ask(t, "GET", at, "", "Authorization", "Bearer right"); res.StatusCode != want {
			t.Errorf("%s: %d %s", at, res.StatusCode, body)
		}
	}
	if res, _ := ask(t, "GET", base+"/", ""); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a token: %d", res.StatusCode)
	}
	ws, _, err := websocket.Dial(t.Context(), base+"/ws", &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer right"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := ws.Write(t.Context(), websocket.MessageText, []byte("ab")); err != nil {
		t.Fatal(err)
	}
	if _, b, err := ws.Read(t.Context()); err != nil || string(b) != "abab" {
		t.Errorf("%q, %v", b, err)
	}
	if err := ws.Close(websocket.StatusNormalClosure, ""); err != nil {
		t.Error(err)
	}
}

// TestPreviewIsCut: what a server in a session sends without end ends with the server.
func TestPreviewIsCut(t *testing.T) {
	t.Parallel()
	svc := &inside{http: httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "first\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))}
	defer svc.http.Close()
	s, err := server.New(server.Config{Service: svc})
	if err != nil {
		t.Fatal(err)
	}
	ts := httptest.NewServer(s)
	defer ts.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, ts.URL+"/v1/sessions/a%20b/ports/80/", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewReader(res.Body)
	if line, err := lines.ReadString('\n'); line != "first\n" {
		t.Fatalf("%q, %v", line, err)
	}
	s.EndStreams()
	if rest, err := io.ReadAll(lines); err == nil || len(rest) > 0 {
		t.Errorf("%q, %v", rest, err)
	}
}

// host is a wire that owns all requests to one host.
type host struct{ hello }

func (host) Owns(r *http.Request) bool { return r.Host == "own.localhost" }

func (host) ServeHTTP(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "own ", r.URL.Path) }

// TestHosts has a wire answer everything that is asked at its host, to those who are
// let in there, and never the API's own answer.
func TestHosts(t *testing.T) {
	t.Parallel()
	ts := serve(t, server.Config{Service: &fake{}, Wires: []server.Wire{host{}}, Authenticate: func(r *http.Request) (sandbox.Caller, error) {
		if r.Header.Get("X-Api-Key") != "right" {
			return sandbox.Caller{}, sandbox.Errorf(sandbox.Denied, "who are you")
		}
		return sandbox.Caller{}, nil
	}})
	at := func(path, key string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, ts.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "own.localhost"
		r.Header.Set("X-Api-Key", key)
		res, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		return res.StatusCode, string(b)
	}
	for _, path := range []string{"/", "/healthz", "/docs", "/openapi.json", "/v1/sessions", "/hello/x"} {
		if status, body := at(path, "right"); status != 200 || body != "own "+path {
			t.Errorf("%s: %d %q", path, status, body)
		}
		if status, body := at(path, "wrong"); status != 401 || body != "who are you\n" {
			t.Errorf("%s by a stranger: %d %q", path, status, body)
		}
	}
}

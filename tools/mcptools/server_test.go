package mcptools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/tools"
)

// entry is one whose server is this program.
func entry(t *testing.T, peer string, env map[string]string) tools.Entry {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"MCPTOOLS_PEER": peer}
	for name, value := range env {
		all[name] = value
	}
	return tools.Entry{MCP: &tools.Server{Command: []string{self}, Env: all}}
}

// logged is a log that tests read.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// opened is the set of the tools of entries, and their servers.
func opened(t *testing.T, log *logged, entries ...tools.Entry) (*tools.Set, []*Server) {
	t.Helper()
	handler := slog.New(slog.NewTextHandler(log, nil))
	servers, err := Open(entries, filepath.Join(t.TempDir(), "tools.yaml"), func(name string) string { return map[string]string{"KEY": "s3cret"}[name] }, handler)
	if err != nil {
		t.Fatal(err)
	}
	var sources []tools.Source
	for _, s := range servers {
		sources = append(sources, s)
		t.Cleanup(func() { _ = s.Close() })
	}
	return (*tools.Set)(nil).From(handler, sources...), servers
}

// way is one for the tools that there are now.
func way(t *testing.T, set *tools.Set) *tools.Way {
	t.Helper()
	return tools.NewWay(tools.Config{
		Set: set.Now(t.Context()),
		Judge: func(context.Context, tools.Question) (sandbox.Decision, error) {
			return sandbox.Decision{Verdict: sandbox.Allow}, nil
		},
		Record: func(context.Context, sandbox.ToolCall, *sandbox.ToolSpend) error { return nil },
	})
}

func names(set *tools.Set) string {
	var all []string
	for _, t := range set.Tools() {
		all = append(all, t.Name)
	}
	return strings.Join(all, " ")
}

// until waits for something a minute.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("a minute has passed, and not: %s", what)
		}
	}
}

// TestServer calls the tools of a program, which has their schemas, and reads its
// results.
func TestServer(t *testing.T) {
	t.Parallel()
	e := entry(t, "honest", map[string]string{"MCPTOOLS_SAYS": "+${KEY}"})
	e.Name, e.Timeout, e.Budget = "peer", "1m", 3
	set, _ := opened(t, &logged{}, e)
	if got := names(set); got != "" {
		t.Errorf("before it has begun: %s", got)
	}
	now := set.Now(t.Context())
	if got, want := names(now), "peer_die peer_dotted_name_2 peer_fails peer_forget peer_hangs peer_nothing peer_say"; got != want {
		t.Fatalf("it has %s, want %s", got, want)
	}
	for _, one := range now.Tools() {
		if one.Name != "peer_say" {
			continue
		}
		if b, err := json.Marshal(one); err != nil || !strings.Contains(string(b), `"description":"what to say"`) || !strings.Contains(string(b), `"said":{"type":"string"}`) ||
			one.Description != "Says it." || one.Budget != 3 || one.Timeout != sandbox.Duration(time.Minute) {
			t.Errorf("%v: %s", err, b)
		}
	}
	w := way(t, set)
	for _, tt := range []struct {
		tool, arguments, want string
		kind                  error
	}{
		{"peer_say", `{"text":"a"}`, `{"said":"a+s3cret"}`, nil}, {"peer_say", `{"text":7}`, "do not fit", sandbox.Invalid},
		{"peer_dotted_name_2", `{}`, `[{"text":"a","type":"text"},{"data":"YWJj","mimeType":"image/png","type":"image"}]`, nil},
		{"peer_nothing", `{}`, `null`, nil}, {"peer_fails", `{}`, "it is broken", sandbox.Internal}, {"say", `{}`, "there is no tool", sandbox.NotFound},
	} {
		result, err := w.Call(t.Context(), tt.tool, []byte(tt.arguments))
		if err != nil {
			result = []byte(err.Error())
		}
		if !strings.Contains(string(result), tt.want) || !errors.Is(err, tt.kind) {
			t.Errorf("%s %s: %s", tt.tool, tt.arguments, result)
		}
	}
}

// TestLists has a server tell that its list has changed: what it no longer lists does
// not exist for programs that run, and those that begin do not see it.
func TestLists(t *testing.T) {
	t.Parallel()
	set, _ := opened(t, &logged{}, entry(t, "honest", nil))
	w := way(t, set)
	if _, err := w.Call(t.Context(), "forget", nil); err != nil {
		t.Fatal(err)
	}
	until(t, "it is forgotten", func() bool { return !strings.Contains(names(set.Now(t.Context())), "nothing") })
	if _, err := w.Call(t.Context(), "nothing", nil); !errors.Is(err, sandbox.NotFound) {
		t.Errorf("a tool that is listed no more: %v", err)
	}
	// One that hangs is told when nobody waits any more, and others go on.
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := w.Call(ctx, "hangs", nil)
		done <- err
	}()
	if got, err := w.Call(t.Context(), "say", []byte(`{"text":"b"}`)); err != nil || string(got) != `{"said":"b"}` {
		t.Errorf("beside one that hangs: %s, %v", got, err)
	}
	until(t, "it hangs", func() bool { return strings.Contains(names(set.Now(t.Context())), "hanging") })
	cancel()
	if err := <-done; !errors.Is(err, sandbox.Unavailable) {
		t.Errorf("given up: %v", err)
	}
	until(t, "it is told", func() bool { return strings.Contains(names(set.Now(t.Context())), "cancelled") })
}

// TestDies has a server die while it answers, and list another tool when it is back.
func TestDies(t *testing.T) {
	t.Parallel()
	log := &logged{}
	set, _ := opened(t, log, entry(t, "dies", map[string]string{"MCPTOOLS_LIVES": filepath.Join(t.TempDir(), "lives")}))
	first := way(t, set)
	if got, err := first.Call(t.Context(), "life1", []byte(`{"a":1}`)); err != nil || string(got) != `"{\"a\":1}"` {
		t.Fatalf("%s, %v", got, err)
	}
	if _, err := first.Call(t.Context(), "die", nil); !errors.Is(err, sandbox.Unavailable) {
		t.Errorf("while it answered: %v", err)
	}
	until(t, "it is back", func() bool { return strings.Contains(names(set.Now(t.Context())), "life2") })
	if got, want := names(set.Now(t.Context())), "die life2 say"; got != want {
		t.Errorf("it has %s now, want %s", got, want)
	}
	if _, err := first.Call(t.Context(), "life1", nil); !errors.Is(err, sandbox.NotFound) {
		t.Errorf("a tool of its first life: %v", err)
	}
	if _, err := first.Call(t.Context(), "say", []byte(`{"text":"a"}`)); err != nil {
		t.Errorf("a tool that it has again: %v", err)
	}
	if _, err := way(t, set).Call(t.Context(), "life2", nil); err != nil {
		t.Errorf("a tool of its second life: %v", err)
	}
	if got := log.String(); !strings.Contains(got, "exit status 3: told to die") {
		t.Errorf("the log says %s", got)
	}
}

// TestWithstands has servers that never begin, say what is nothing, too long or too
// much, and answer twice.
func TestWithstands(t *testing.T) {
	t.Parallel()
	for peer, want := range map[string]string{"never": "exit status 7: for you", "garbage": "invalid character", "long": "maximum line length"} {
		t.Run(peer, func(t *testing.T) {
			t.Parallel()
			set, servers := opened(t, &logged{}, entry(t, peer, nil))
			begin := servers[0].open
			servers[0].open = func() mcp.Transport {
				p := begin().(*program)
				p.most = 1 << 20
				return p
			}
			if got := names(set.Now(t.Context())); got != "" {
				t.Errorf("it has %s", got)
			}
			if err := servers[0].Err(); !errors.Is(err, sandbox.Unavailable) || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		})
	}
	for _, peer := range []string{"twice", "talks"} {
		t.Run(peer, func(t *testing.T) {
			t.Parallel()
			log := &logged{}
			set, _ := opened(t, log, entry(t, peer, nil))
			w := way(t, set)
			for range 20 {
				for _, arguments := range []string{`{"a":1}`, `{"b":[2]}`} {
					if got, err := w.Call(t.Context(), "echo", []byte(arguments)); err != nil || string(got) != arguments {
						t.Fatalf("%s: %s, %v", arguments, got, err)
					}
				}
			}
			if got := names(set.Now(t.Context())); got != "echo" {
				t.Errorf("it has %s", got)
			}
			if got := strings.Count(log.String(), "left out"); got != 2 {
				t.Errorf("%d tools are left out:\n%s", got, log)
			}
		})
	}
}

// TestHTTP calls tools over HTTP, with headers, and goes on where the server has
// forgotten its sessions. It is not sent elsewhere.
func TestHTTP(t *testing.T) {
	t.Parallel()
	var sessions, calls atomic.Int32
	handler := func(says string) http.Handler {
		server := newPeer(says)
		server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				switch method {
				case "initialize":
					sessions.Add(1)
				case "tools/call":
					calls.Add(1)
				}
				return next(ctx, method, req)
			}
		})
		return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	}
	var now atomic.Pointer[http.Handler]
	life := handler("1")
	now.Store(&life)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/away":
			http.Redirect(w, r, "/mcp", http.StatusTemporaryRedirect)
		case r.Header.Get("Authorization") != "Bearer s3cret":
			http.Error(w, "not you", http.StatusUnauthorized)
		default:
			(*now.Load()).ServeHTTP(w, r)
		}
	}))
	t.Cleanup(srv.Close)
	headers := map[string]string{"Authorization": "Bearer ${KEY}"}
	set, _ := opened(t, &logged{}, tools.Entry{MCP: &tools.Server{URL: srv.URL + "/mcp", Headers: headers}})
	w := way(t, set)
	if got, err := w.Call(t.Context(), "say", []byte(`{"text":"a"}`)); err != nil || string(got) != `{"said":"a1"}` {
		t.Fatalf("%s, %v", got, err)
	}
	life2 := handler("2")
	now.Store(&life2)
	if got, err := w.Call(t.Context(), "say", []byte(`{"text":"a"}`)); err != nil || string(got) != `{"said":"a2"}` {
		t.Errorf("after it has forgotten: %s, %v", got, err)
	}
	if sessions.Load() != 2 || calls.Load() != 2 {
		t.Errorf("%d sessions, %d calls", sessions.Load(), calls.Load())
	}
	for path, headers := range map[string]map[string]string{"/away": headers, "/mcp": nil} {
		set, servers := opened(t, &logged{}, tools.Entry{MCP: &tools.Server{URL: srv.URL + path, Headers: headers}})
		if got := names(set.Now(t.Context())); got != "" || !errors.Is(servers[0].Err(), sandbox.Unavailable) {
			t.Errorf("%s %v: %s, %v", path, headers, got, servers[0].Err())
		}
	}
}

// TestEntries names what is wrong with entries.
func TestEntries(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]tools.Entry{
		"beside mcp":             {Command: []string{"x"}, MCP: &tools.Server{Command: []string{"x"}}},
		"the server has its own": {Description: "d", MCP: &tools.Server{Command: []string{"x"}}},
		"exactly one":            {MCP: &tools.Server{Command: []string{"x"}, URL: "http://x/"}},
		"env is for a command":   {MCP: &tools.Server{URL: "http://x/", Env: map[string]string{"a": "b"}}},
		"no address":             {MCP: &tools.Server{URL: "ftp://x/"}},
		"needs the variable NO":  {MCP: &tools.Server{URL: "http://x/", Headers: map[string]string{"a": "${NO}"}}},
		"not a name":             {Name: "a b", MCP: &tools.Server{URL: "http://x/"}},
	} {
		_, err := Open([]tools.Entry{e}, "tools.yaml", func(string) string { return "" }, nil)
		if !errors.Is(err, sandbox.Invalid) || !strings.Contains(err.Error()+sandbox.HintOf(err), want) {
			t.Errorf("%+v: %v, want %s", e, err, want)
		}
	}
}

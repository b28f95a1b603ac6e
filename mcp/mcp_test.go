package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/mcp"
	"github.com/caisson-dev/caisson/sandbox"
)

// double is a service whose runs are a test's.
type double struct {
	api.Service
	run func(ctx context.Context, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error)
}

func (d double) Run(ctx context.Context, run sandbox.Run, streams sandbox.Streams) (sandbox.Result, error) {
	return d.run(ctx, run, streams)
}

func (d double) Sessions(context.Context, sandbox.SessionFilter) ([]sandbox.SessionView, error) {
	return []sandbox.SessionView{{Session: sandbox.Session{Name: "work"}}}, nil
}

func (d double) Session(_ context.Context, name string) (sandbox.SessionView, error) {
	if name != "work" {
		return sandbox.SessionView{}, sandbox.Errorf(sandbox.NotFound, "no session %q", name).WithHint("make it")
	}
	return sandbox.SessionView{}, nil
}

func (d double) RemoveSession(ctx context.Context, name string, _ bool) error {
	_, err := d.Session(ctx, name)
	return err
}

func (d double) Events(_ context.Context, f sandbox.EventFilter) iter.Seq2[sandbox.Event, error] {
	return func(yield func(sandbox.Event, error) bool) {
		for i := range int64(1200) {
			if !yield(sandbox.Event{Seq: i + 1, Session: f.Session}, nil) {
				return
			}
		}
	}
}

func exited(code int, stdout string) sandbox.Result {
	return sandbox.Result{ExecID: "e1", Exit: sandbox.Exit{Code: code, Reason: sandbox.ReasonExited}, Stdout: []byte(stdout)}
}

func serve(t *testing.T, d double) *mcp.Server {
	t.Helper()
	s, err := mcp.New(mcp.Config{Service: d, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// connect has a client speak with a server by pipes, as over stdio.
func connect(t *testing.T, s *mcp.Server, opts *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	over := make(chan error, 1)
	go func() { over <- s.Run(t.Context(), toServer, fromServer) }()
	c, err := sdk.NewClient(&sdk.Implementation{Name: "tester", Version: "1"}, opts).Connect(t.Context(), &sdk.IOTransport{Reader: toClient, Writer: fromClient}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		_ = fromClient.Close()
		if err := <-over; err != nil {
			t.Errorf("the server ends with %v", err)
		}
	})
	return c
}

type outcome struct {
	Status, Stdout, Refused string
	ExitCode                int    `json:"exit_code"`
	ExitReason              string `json:"exit_reason"`
	Cut                     []string
	Error                   *sandbox.Problem
	Findings                []struct{ ID, Remediation string }
	Artifacts               []struct{ Path, URI string }
}

// call calls a tool, and reads its answer twice: as an object and as a text.
func call(t *testing.T, c *sdk.ClientSession, name string, args any) (*sdk.CallToolResult, outcome) {
	t.Helper()
	res, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var o, text outcome
	b, err := json.Marshal(res.StructuredContent)
	if err := errors.Join(err, json.Unmarshal(b, &o)); err != nil {
		t.Fatal(err)
	}
	said, ok := res.Content[0].(*sdk.TextContent)
	if !ok || json.Unmarshal([]byte(said.Text), &text) != nil || text.Status != o.Status {
		t.Fatalf("%s: the text says something else: %+v", name, res.Content[0])
	}
	return res, o
}

func TestStatuses(t *testing.T) {
	t.Parallel()
	asking := sandbox.Decision{Verdict: sandbox.Ask, Refused: "question 12 waits: caisson approvals approve 12", Findings: []sandbox.Finding{{ID: "X-1", Severity: sandbox.High, Verdict: sandbox.Ask, Remediation: "do not"}}}
	for name, tt := range map[string]struct {
		res    sandbox.Result
		err    error
		status string
		code   int
	}{
		"success": {exited(0, "hi\n"), nil, "success", 0},
		"failed":  {exited(3, ""), nil, "error", 3},
		"timeout": {sandbox.Result{ExecID: "e1", Exit: sandbox.Exit{Code: 124, Reason: sandbox.ReasonTimeout}}, nil, "error", 124},
		"refused": {sandbox.Result{ExecID: "e1", Decision: asking}, &sandbox.DeniedError{Decision: asking}, "rejected", 126},
		"broken":  {sandbox.Result{}, sandbox.Errorf(sandbox.Unavailable, "no engine").WithHint("start it"), "error", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := connect(t, serve(t, double{run: func(_ context.Context, run sandbox.Run, _ sandbox.Streams) (sandbox.Result, error) {
				if run.Language != "python" || run.Code != "x" || strings.Join(run.Env, " ") != "A=1 B=2" || len(run.Files) != 1 || string(run.Files[0].Data) != "d" || run.Approve != sandbox.ApproveLater {
					t.Errorf("%+v", run)
				}
				return tt.res, tt.err
			}}), nil)
			res, o := call(t, c, "run_code", map[string]any{"language": "python", "code": "x", "env": map[string]string{"B": "2", "A": "1"}, "files": []map[string]string{{"path": "f", "text": "d"}}})
			if o.Status != tt.status || o.ExitCode != tt.code || o.Stdout != string(tt.res.Stdout) || res.IsError != (tt.status != "success") {
				t.Errorf("%+v", o)
			}
			if tt.status == "rejected" && (o.Refused != asking.Refused || o.ExitReason != "denied" || len(o.Findings) != 1 || o.Findings[0].Remediation != "do not") {
				t.Errorf("%+v", o)
			}
			if name == "broken" && (o.Error == nil || o.Error.Kind != "unavailable" || o.Error.Hint != "start it") {
				t.Errorf("%+v", o)
			}
		})
	}
}

// What an answer cuts, its resources have whole; pictures are shown.
func TestWholeOutputs(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 40_000) + "end"
	png := []byte("\x89PNG\r\n\x1a\nx")
	c := connect(t, serve(t, double{run: func(context.Context, sandbox.Run, sandbox.Streams) (sandbox.Result, error) {
		r := exited(0, long)
		r.Stderr = []byte("a\xff")
		r.Artifacts = []sandbox.Artifact{{Path: "artifacts/a b.png", Size: int64(len(png)), Type: "image/png", Data: png}, {Path: "artifacts/big", Left: "too large"}}
		return r, nil
	}}), nil)
	res, o := call(t, c, "run_code", map[string]any{"language": "python", "code": "x"})
	if len(o.Stdout) > 20<<10 || !strings.HasPrefix(o.Stdout, "ä") || !strings.HasSuffix(o.Stdout, "end") || strings.Contains(o.Stdout, "\uFFFD") || len(o.Cut) != 2 || len(o.Artifacts) != 2 || o.Artifacts[1].URI != "" {
		t.Fatalf("%d bytes, %+v, %+v", len(o.Stdout), o.Cut, o.Artifacts)
	}
	links, pictures := 0, 0
	for _, part := range res.Content {
		switch part := part.(type) {
		case *sdk.ResourceLink:
			links++
		case *sdk.ImageContent:
			pictures++
			if !bytes.Equal(part.Data, png) {
				t.Errorf("%q", part.Data)
			}
		}
	}
	if links != 3 || pictures != 1 {
		t.Errorf("%d links, %d pictures", links, pictures)
	}
	for uri, want := range map[string]string{o.Cut[0]: long, o.Cut[1]: "a\xff", o.Artifacts[0].URI: string(png)} {
		got, err := c.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
		if err != nil || got.Contents[0].Text+string(got.Contents[0].Blob) != want {
			t.Errorf("%s: %v", uri, err)
		}
	}
	if _, err := c.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "caisson://outputs/e2/stdout"}); err == nil {
		t.Error("there is a resource of another run")
	}
}

// What a program returns stands in its answer; a long one as a resource.
func TestPrograms(t *testing.T) {
	t.Parallel()
	long := `"` + strings.Repeat("x", 20<<10) + `"`
	for code, tt := range map[string]struct {
		program sandbox.ProgramResult
		status  string
		said    string
	}{
		"small": {sandbox.ProgramResult{Success: true, Value: json.RawMessage(`{"a":1}`)}, "success", `"program":{"success":true,"value":{"a":1}},"calls":[{"tool":"f","duration_ms":0}]`},
		"long":  {sandbox.ProgramResult{Success: true, Value: json.RawMessage(long)}, "success", `"cut":["caisson://outputs/e1/value"]`},
		"none":  {sandbox.ProgramResult{Error: &sandbox.ProgramError{Kind: "conflict", Message: "two"}}, "error", `"program":{"success":false,"error":{"kind":"conflict","message":"two"}}`},
	} {
		c := connect(t, serve(t, double{run: func(_ context.Context, run sandbox.Run, _ sandbox.Streams) (sandbox.Result, error) {
			if !run.Program {
				t.Error("it is no program")
			}
			res := exited(0, "")
			res.Program, res.Calls = &tt.program, []sandbox.ToolCall{{Tool: "f"}}
			return res, nil
		}}), nil)
		res, o := call(t, c, "run_code", map[string]any{"language": "python", "code": code, "program": true})
		if text := res.Content[0].(*sdk.TextContent).Text; o.Status != tt.status || !strings.Contains(text, tt.said) || len(text) > 18<<10 {
			t.Errorf("%s: %.500s", code, text)
		}
		if code != "long" {
			continue
		}
		read, err := c.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: o.Cut[0]})
		if err != nil || read.Contents[0].Text != long || read.Contents[0].MIMEType != "application/json" {
			t.Errorf("%+v, %v", read, err)
		}
	}
}

// Whose client shows forms is asked by one, and only a clear yes is a yes.
func TestApprovals(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		said   *sdk.ElicitResult
		yes    bool
		always bool
	}{
		"once":     {&sdk.ElicitResult{Action: "accept", Content: map[string]any{"answer": "run it once"}}, true, false},
		"always":   {&sdk.ElicitResult{Action: "accept", Content: map[string]any{"answer": "always run this very program"}}, true, true},
		"never":    {&sdk.ElicitResult{Action: "accept", Content: map[string]any{"answer": "do not run it"}}, false, false},
		"declined": {&sdk.ElicitResult{Action: "decline"}, false, false},
		"canceled": {&sdk.ElicitResult{Action: "cancel"}, false, false},
		"no form":  {nil, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shown := ""
			opts := &sdk.ClientOptions{}
			if tt.said != nil {
				opts.ElicitationHandler = func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
					shown = r.Params.Message
					return tt.said, nil
				}
			}
			c := connect(t, serve(t, double{run: func(ctx context.Context, _ sandbox.Run, streams sandbox.Streams) (sandbox.Result, error) {
				if (streams.Ask == nil) != (tt.said == nil) {
					t.Errorf("whether anybody is asked: %v", streams.Ask != nil)
				}
				if streams.Ask == nil {
					return exited(0, ""), nil
				}
				ans, err := streams.Ask(ctx, sandbox.Approval{ID: "q1", Question: sandbox.ApprovalQuestion{Kind: "exec", Texts: []sandbox.ApprovalText{{Text: "rm\x1b[2J" + strings.Repeat("x\n", 10_000), Size: 9}}}})
				if err != nil || ans.ID != "q1" || ans.Approve != tt.yes || ans.Always != tt.always || ans.Via != "mcp" || ans.By != "the user of tester" {
					t.Errorf("%+v, %v", ans, err)
				}
				return exited(0, ""), nil
			}}), opts)
			call(t, c, "run_code", map[string]any{"language": "python", "code": "x"})
			if tt.said != nil && (!strings.Contains(shown, `rm\x1b[2J`) || !strings.Contains(shown, "bytes more are not shown") || len(shown) > 13<<10) {
				t.Errorf("%d bytes: %.300q", len(shown), shown)
			}
		})
	}
}

// A client that waits is told how it goes; one that gives up ends what runs.
func TestProgressAndCancel(t *testing.T) {
	t.Parallel()
	told := make(chan string, 100)
	ended := make(chan error, 1)
	c := connect(t, serve(t, double{run: func(ctx context.Context, _ sandbox.Run, streams sandbox.Streams) (sandbox.Result, error) {
		_, _ = io.WriteString(streams.Stdout, "step one\nunfinish")
		<-ctx.Done()
		ended <- ctx.Err()
		return sandbox.Result{Exit: sandbox.Exit{Reason: sandbox.ReasonCanceled}}, ctx.Err()
	}}), &sdk.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { told <- r.Params.Message }})
	ctx, cancel := context.WithCancel(t.Context())
	params := &sdk.CallToolParams{Name: "run_code", Arguments: map[string]any{"language": "python", "code": "x"}}
	params.SetProgressToken("p1")
	answered := make(chan error, 1)
	go func() {
		_, err := c.CallTool(ctx, params)
		answered <- err
	}()
	for message := range told {
		if strings.Contains(message, "17 bytes of output: step one") {
			break
		}
	}
	cancel()
	if err := <-answered; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("what ran: %v", err)
	}
}

// What runs for a client ends with the server, and with its connection.
func TestEnds(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"context", "input", "delete", "close"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			begun, ended := make(chan struct{}), make(chan struct{})
			s := serve(t, double{run: func(ctx context.Context, _ sandbox.Run, _ sandbox.Streams) (sandbox.Result, error) {
				close(begun)
				<-ctx.Done()
				close(ended)
				return sandbox.Result{}, ctx.Err()
			}})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			toServer, fromClient := io.Pipe()
			toClient, fromServer := io.Pipe()
			over := make(chan error, 1)
			var transport sdk.Transport = &sdk.IOTransport{Reader: toClient, Writer: fromClient}
			var srv *httptest.Server
			if how == "delete" || how == "close" {
				srv = httptest.NewServer(s.Handler())
				defer srv.Close()
				transport = &sdk.StreamableClientTransport{Endpoint: srv.URL}
				over <- nil
			} else {
				go func() { over <- s.Run(ctx, toServer, fromServer) }()
			}
			c, err := sdk.NewClient(&sdk.Implementation{Name: "tester"}, nil).Connect(t.Context(), transport, nil)
			if err != nil {
				t.Fatal(err)
			}
			answered := make(chan struct{})
			go func() {
				defer close(answered)
				_, _ = c.CallTool(t.Context(), &sdk.CallToolParams{Name: "run_code", Arguments: map[string]any{"language": "python", "code": "x"}})
			}()
			<-begun
			switch how {
			case "context":
				cancel()
			case "input":
				_ = fromClient.Close()
			case "close":
				s.Close()
			case "delete":
				r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, srv.URL, nil)
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Mcp-Session-Id", c.ID())
				if _, err := http.DefaultClient.Do(r); err != nil {
					t.Error(err)
				}
			}
			<-ended
			if err := <-over; err != nil {
				t.Errorf("the server ends with %v", err)
			}
			_ = fromServer.Close()
			<-answered
		})
	}
}

func TestResourcesAndErrors(t *testing.T) {
	t.Parallel()
	c := connect(t, serve(t, double{}), nil)
	tools := 0
	for tool, err := range c.Tools(t.Context(), nil) {
		if err != nil || tool.Description == "" || tool.Title == "" || tool.Annotations == nil {
			t.Errorf("%+v, %v", tool, err)
		}
		tools++
	}
	if tools != 17 {
		t.Errorf("%d tools", tools)
	}
	uris := map[string]bool{}
	for r, err := range c.Resources(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		uris[r.URI] = true
	}
	if !uris["caisson://sessions/work/files"] || !uris["caisson://sessions/work/changes"] || !uris["caisson://sessions/work/audit"] {
		t.Errorf("%v", uris)
	}
	got, err := c.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "caisson://sessions/work/audit"})
	if err != nil {
		t.Fatal(err)
	}
	var events struct{ Items []sandbox.Event }
	if err := json.Unmarshal([]byte(got.Contents[0].Text), &events); err != nil || len(events.Items) != 1000 || events.Items[999].Seq != 1200 {
		t.Errorf("%d events, %v", len(events.Items), err)
	}
	for _, uri := range []string{"caisson://sessions/other/audit", "caisson://sessions/work/else", "file:///etc/passwd"} {
		if _, err := c.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri}); err == nil {
			t.Errorf("%s can be read", uri)
		}
	}
	res, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "session_remove", Arguments: map[string]any{"session": "other"}})
	if err != nil || !res.IsError || !strings.Contains(res.Content[0].(*sdk.TextContent).Text, `"hint":"make it"`) {
		t.Errorf("%+v, %v", res, err)
	}
	res, err = c.CallTool(t.Context(), &sdk.CallToolParams{Name: "session_remove", Arguments: map[string]any{"sesion": "work"}})
	if err != nil || !res.IsError {
		t.Errorf("an argument that there is not: %+v, %v", res, err)
	}
}

// Over HTTP a connection is its caller's: another can neither speak by it, listen
// to it, end it, nor read what its runs have left.
func TestOwners(t *testing.T) {
	t.Parallel()
	s := serve(t, double{run: func(ctx context.Context, _ sandbox.Run, _ sandbox.Streams) (sandbox.Result, error) {
		return exited(0, sandbox.CallerFrom(ctx).Owner+strings.Repeat(".", 20_000)), nil
	}})
	h := s.Handler()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		owner := r.Header.Get("Authorization")
		h.ServeHTTP(w, r.WithContext(sandbox.WithCaller(r.Context(), sandbox.Caller{Owner: owner, Name: owner})))
	}))
	defer srv.Close()
	defer s.Close()
	as := func(owner string) *sdk.ClientSession {
		c, err := sdk.NewClient(&sdk.Implementation{Name: "tester"}, nil).Connect(t.Context(), &sdk.StreamableClientTransport{
			Endpoint: srv.URL, HTTPClient: &http.Client{Transport: asOwner(owner)},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	ann, bob := as("ann"), as("bob")
	_, o := call(t, ann, "run_code", map[string]any{"language": "python", "code": "x"})
	if !strings.HasPrefix(o.Stdout, "ann.") || len(o.Cut) != 1 {
		t.Fatalf("%.20q, %v", o.Stdout, o.Cut)
	}
	if _, err := ann.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: o.Cut[0]}); err != nil {
		t.Error(err)
	}
	if _, err := bob.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: o.Cut[0]}); err == nil {
		t.Error("bob reads what ann's run put out")
	}
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		r, err := http.NewRequestWithContext(t.Context(), method, srv.URL, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Mcp-Session-Id", ann.ID())
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		res, err := (&http.Client{Transport: asOwner("bob"), Timeout: time.Minute}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusForbidden {
			t.Errorf("%s by another: %d", method, res.StatusCode)
		}
	}
	if err := ann.Ping(t.Context(), nil); err != nil {
		t.Errorf("ann's connection: %v", err)
	}
}

type asOwner string

func (o asOwner) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", string(o))
	return http.DefaultTransport.RoundTrip(r)
}

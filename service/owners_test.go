package service_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/api/client"
	"github.com/caisson-dev/caisson/api/server"
	"github.com/caisson-dev/caisson/bridge"
	"github.com/caisson-dev/caisson/functions"
	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/service"
	"github.com/caisson-dev/caisson/store/sqlite"
)

// marker is in all that alice has, and in nothing that bob may be told.
const marker = "marked-as-of-alice"

// asked is how bob asks for what is alice's, by the routes of the API. A route that
// is not in [routes] names in its path whose it is, and has to be a 404.
type asked struct {
	query, body string
	// want is the status; 0 is that of what is not there. A list is 200 and has nothing
	// of another's in it.
	want int
	// open says why bob may ask, and need not be kept from anything: "" is nothing.
	open string
}

// govern are routes of an admin alone.
var govern = []string{
	"GET /metrics", "GET /v1/audit/check", "GET /v1/doctor", "GET /v1/images/check", "GET /v1/images/roots", "GET /v1/pool", "GET /v1/state", "GET /v1/tokens", "DELETE /v1/tokens/{token}",
	"POST /v1/audit/prune", "POST /v1/audit/reanchor", "POST /v1/images/make", "POST /v1/images/pin", "POST /v1/images/prune", "POST /v1/images/pull", "POST /v1/images/unpack", "POST /v1/sweep", "POST /v1/tokens",
}

var routes = map[string]asked{
	// Lists.
	"GET /v1/alerts": {want: 200}, "GET /v1/approvals": {want: 200}, "GET /v1/audit": {want: 200}, "GET /v1/dead-letters": {want: 200}, "GET /v1/execs": {want: 200},
	"GET /v1/executions": {want: 200}, "GET /v1/functions": {want: 200}, "GET /v1/readings": {want: 200}, "GET /v1/sessions": {want: 200},
	// What names another's in its body or query.
	"POST /v1/executions":       {body: `{"run": {"session": "SESSION", "command": ["true"]}}`},
	"POST /v1/functions/invoke": {body: `{"function": "fn"}`},
	"POST /v1/audit/prune":      {body: `{}`}, "POST /v1/images/pin": {body: `{}`}, "POST /v1/images/prune": {body: `{}`}, "POST /v1/sweep": {body: `{}`}, "POST /v1/tokens": {body: `{}`},
	"POST /v1/audit/reanchor": {body: `{"reason": "x"}`}, "POST /v1/images/make": {body: `{"name": "shell"}`}, "POST /v1/images/pull": {body: `{"name": "shell"}`}, "POST /v1/images/unpack": {body: `{"name": "shell"}`},
	// What names it in the path, and asks for more.
	"GET /v1/executions/{execution}/artifacts":                 {query: "path=x"},
	"POST /v1/approvals/{approval}/answer":                     {body: `{"approve": true}`},
	"POST /v1/approvals/{approval}/revoke":                     {body: `{}`},
	"POST /v1/sessions/{session}/execs":                        {body: `{"command": ["true"]}`},
	"POST /v1/sessions/{session}/execs/background":             {body: `{"command": ["true"]}`},
	"POST /v1/sessions/{session}/execs/{exec}/input":           {body: `{"data_base64": "eA=="}`},
	"POST /v1/sessions/{session}/execs/{exec}/resize":          {body: `{"rows": 1, "cols": 1}`},
	"POST /v1/sessions/{session}/execs/{exec}/signal":          {body: `{"signal": 9}`},
	"POST /v1/sessions/{session}/files":                        {body: `{"files": [{"path": "x", "data": "eA=="}]}`},
	"PUT /v1/sessions/{session}/files/content":                 {query: "path=kept", body: "x"},
	"GET /v1/sessions/{session}/files/content":                 {query: "path=kept"},
	"GET /v1/sessions/{session}/files/stat":                    {query: "path=kept"},
	"DELETE /v1/sessions/{session}/files":                      {query: "path=kept"},
	"POST /v1/sessions/{session}/files/mkdir":                  {query: "path=x"},
	"POST /v1/sessions/{session}/files/move":                   {query: "from=kept&to=x"},
	"PUT /v1/sessions/{session}/files/attributes":              {query: "path=kept", body: `{"attributes": {}}`},
	"POST /v1/sessions/{session}/fork":                         {body: `{}`},
	"POST /v1/sessions/{session}/renew":                        {body: `{"ttl_ms": 1000}`},
	"POST /v1/sessions/{session}/network":                      {body: `{"allow": ["example.com"]}`},
	"POST /v1/sessions/{session}/shells":                       {body: `{"name": "x"}`},
	"POST /v1/sessions/{session}/shells/{shell}/run":           {body: `{"text": "true"}`},
	"POST /v1/sessions/{session}/snapshots":                    {body: `{"name": "x"}`},
	"POST /v1/sessions/{session}/undo":                         {body: `{"exec": "EXEC"}`},
	"POST /2015-03-31/functions/{function}/invocations":        {body: `{}`},
	"DELETE /v1/sessions/{session}":                            {query: "force=true"},
	"DELETE /v1/sessions/{session}/shells/{shell}":             {},
	"DELETE /v1/sessions/{session}/snapshots/{snapshot}":       {},
	"GET /v1/sessions/{session}/execs/{exec}/output":           {},
	"GET /v1/sessions/{session}/files/watch":                   {query: "recursive=true"},
	"POST /v1/sessions/{session}/snapshots/{snapshot}/restore": {},
	// The rest has nobody's, or only what whoever asks makes.
	"GET /v1/languages": {open: "what can be run"}, "GET /v1/languages/of": {open: "what can be run"}, "POST /v1/images/ensure": {open: "images are everybody's"},
	"POST /v1/images/prewarm": {open: "images are everybody's"}, "POST /v1/policy/check": {open: "judges the text in its body"}, "POST /v1/runs": {open: "makes a sandbox of its own"},
	"POST /v1/batches": {open: "makes sandboxes of its own"}, "POST /v1/tests": {open: "makes a sandbox of its own"}, "POST /v1/sessions": {open: "names are each owner's own"}, "POST /v1/functions": {open: "names are each owner's own"},
	// Streams, which have tests of their own below and in TestOthersLists.
	"GET /v1/events": {open: "TestOthersEvents"}, "GET /v1/alerts/news": {open: "TestOthersRoutes, at its end"}, "GET /v1/changes": {open: "TestOthersFeed"}, "GET /v1/connect": {open: "TestOthersConnect"},
}

// alices is a server with something of everything that is alice's.
type alices struct {
	place
	http *httptest.Server
	end  func()            // as a server that stops does
	ids  map[string]string // by the parameters of paths

	changes *bridge.Bridge
}

// alerts tell of one of each owner's, and end.
type alerts struct{ none }

func (alerts) Subscribe(context.Context) iter.Seq[sandbox.AlertNews] {
	return slices.Values([]sandbox.AlertNews{
		{Alert: sandbox.Alert{ID: sandbox.NewID(), Owner: "alice", Session: "alice~work", Severity: sandbox.Low, Why: marker}},
		{Alert: sandbox.Alert{ID: sandbox.NewID(), Owner: "bob", Session: "bob~mine", Severity: sandbox.Low, Why: "of bob"}},
	})
}

func ofAlice(t *testing.T) alices {
	t.Helper()
	a := alices{}
	p := open(t, func(c *service.Config) {
		journal, locks := c.Keys.(*sqlite.Store), t.TempDir()
		c.Functions = func(s *service.Service) (service.Functions, error) {
			return functions.New(functions.Config{Sandboxes: s, Store: journal, LockDir: locks})
		}
		c.Watch, a.changes = alerts{}, c.Bridge
	})
	a.place = p
	ctx, labels := as(t.Context(), "alice", ""), sandbox.Labels{"m": marker}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := p.CreateSession(ctx, api.SessionOptions{Name: "work", Labels: labels, Workspace: sandbox.Workspace{Kind: sandbox.WorkspaceTmpfs}}, sandbox.Local{})
	must(err)
	t.Cleanup(func() { _ = p.RemoveSession(t.Context(), "alice~work", true) }) // it is all in memory
	rec, err := p.StartExec(ctx, "work", sandbox.Run{Command: []string{"sleep", "600"}, Labels: labels}, sandbox.Local{})
	must(err)
	e, err := p.SubmitExecution(ctx, sandbox.ExecutionOptions{Run: sandbox.Run{Session: "work", Command: []string{"true"}, Labels: labels}}, sandbox.Local{})
	must(err)
	dead, err := p.SubmitExecution(ctx, sandbox.ExecutionOptions{
		Run: sandbox.Run{Session: "work", Command: []string{"true"}, Labels: labels}, Callback: &sandbox.CallbackOptions{URL: "https://callbacks.example/"},
	}, sandbox.Local{})
	must(err)
	dead.State, dead.Callback.State = sandbox.ExecutionCanceled, sandbox.CallbackDead
	must(p.store.Apply(ctx, sandbox.Transaction{MoveExecution: &sandbox.ExecutionMove{From: []sandbox.ExecutionState{sandbox.ExecutionQueued}, To: dead}}))
	_, err = p.PutFunction(ctx, sandbox.FunctionOptions{
		Name: "fn", Language: "python", Handler: "main.handler", Labels: labels, Files: []sandbox.File{{Path: "main.py", Data: []byte(marker)}},
	}, sandbox.Local{})
	must(err)
	question := sandbox.Approval{ID: sandbox.NewID(), Digest: "d", State: sandbox.ApprovalPending, Owner: "alice", Actor: marker, Session: "alice~work", Expires: farAway}
	must(p.store.Apply(ctx, sandbox.Transaction{AskApproval: &question}))
	alert := sandbox.Alert{Owner: "alice", ID: sandbox.NewID(), Rule: "r", Severity: sandbox.Low, Session: "alice~work", Sandbox: sandbox.NewID(), Why: marker}
	reading := sandbox.Reading{Owner: "alice", Sandbox: sandbox.NewID(), Session: "alice~work", Labels: labels}
	must(p.store.Apply(ctx, sandbox.Transaction{FireAlert: &alert, PutReadings: []sandbox.Reading{reading}}))
	a.ids = map[string]string{
		"session": "work", "exec": string(rec.ID), "execution": string(e.ID), "approval": string(question.ID), "function": "fn", "snapshot": "snap", "shell": "sh", "token": "none", "port": "80", "path...": "x",
	}
	handler, err := server.New(server.Config{Service: p.Service, Authenticate: func(r *http.Request) (sandbox.Caller, error) {
		return sandbox.Caller{Owner: strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), Name: "token", Access: sandbox.AccessUser}, nil
	}})
	must(err)
	a.http = httptest.NewServer(handler)
	t.Cleanup(a.http.Close)
	t.Cleanup(handler.EndStreams)
	a.end = handler.EndStreams
	return a
}

// ask asks as an owner for one route.
func (a alices) ask(t *testing.T, owner, route, session string) (status int, body string) {
	t.Helper()
	method, path, _ := strings.Cut(route, " ")
	for name, id := range a.ids {
		path = strings.ReplaceAll(path, "{"+name+"}", id)
	}
	in := routes[route]
	path = strings.Replace(path, "/sessions/work", "/sessions/"+session, 1) + "?" + in.query
	text := strings.NewReplacer("SESSION", session, "EXEC", a.ids["exec"]).Replace(in.body)
	// Nothing waits for anything here: a stream that would go on is one that was let in.
	ctx, cancel := context.WithTimeout(t.Context(), enginetest.Patience)
	defer cancel()
	return a.send(ctx, t, owner, method, path, text)
}

func (a alices) send(ctx context.Context, t *testing.T, owner, method, path, text string) (status int, body string) {
	t.Helper()
	res := a.open(ctx, t, owner, method, path, text)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return res.StatusCode, string(b)
}

// open sends a request, whose answer the caller closes.
func (a alices) open(ctx context.Context, t *testing.T, owner, method, path, text string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, a.http.URL+path, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+owner)
	switch {
	case strings.Contains(path, "follow=true"):
		r.Header.Set("Accept", "text/event-stream")
	case strings.HasPrefix(path, "/v1/events"):
		r.Header.Set("Last-Event-ID", "0")
	case strings.HasPrefix(text, "{"):
		r.Header.Set("Content-Type", "application/json")
	}
	res, err := a.http.Client().Do(r)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return res
}

// described are the routes of the API's document, and those beside it.
func (a alices) described(t *testing.T) []string {
	t.Helper()
	_, text := a.send(t.Context(), t, "bob", http.MethodGet, "/openapi.json", "")
	var doc struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	list := []string{"POST /2015-03-31/functions/{function}/invocations", "POST /v1/sessions/{session}/ports/{port}/{path...}"}
	for path, calls := range doc.Paths {
		for method := range calls {
			list = append(list, strings.ToUpper(method)+" "+path)
		}
	}
	if len(list) < 80 {
		t.Fatalf("the document has %d routes", len(list))
	}
	slices.Sort(list)
	return list
}

// TestOthersRoutes has one owner ask for what is another's by every route that the
// API describes: it is not found, or not in the list, and afterwards it is as it was.
// A new route fails here until the table says what comes of it.
func TestOthersRoutes(t *testing.T) {
	t.Parallel()
	a := ofAlice(t)
	all := a.described(t)
	for route := range routes {
		if !slices.Contains(all, route) {
			t.Errorf("the table has %s, which the API has not", route)
		}
	}
	for _, route := range all {
		in, known := routes[route]
		if in.open != "" {
			continue
		}
		governs := slices.Contains(govern, route)
		if !known && !governs && !strings.Contains(route, "{") {
			t.Errorf("no test knows whether %s keeps one owner from another", route)
			continue
		}
		want := cmp.Or(in.want, http.StatusNotFound)
		if governs {
			want = http.StatusForbidden
		}
		for _, session := range []string{"work", "alice~work", "~work", "bob~alice~work"} {
			status, body := a.ask(t, "bob", route, session)
			if status != want || strings.Contains(body, marker) || want == http.StatusOK && !strings.Contains(body, `"items":[]`) {
				t.Errorf("%s by another, of %s: %d, not %d: %s", route, session, status, want, body)
			}
		}
		// Asked by its owner, the lists have it: else they would be empty for everybody.
		if in.want == http.StatusOK {
			if status, body := a.ask(t, "alice", route, "work"); status != http.StatusOK || !strings.Contains(body, marker) {
				t.Errorf("%s by its owner: %d: %s", route, status, body)
			}
		}
	}
	for _, route := range []string{"GET /v1/sessions/{session}", "GET /v1/executions/{execution}", "GET /v1/functions/{function}", "GET /v1/approvals/{approval}"} {
		if status, body := a.ask(t, "alice", route, "work"); status != http.StatusOK || !strings.Contains(body, marker) {
			t.Errorf("afterwards %s is %d: %s", route, status, body)
		}
	}
	view, err := a.Session(t.Context(), "alice~work")
	if err != nil || len(view.Execs) != 1 || !view.Execs[0].Ended.IsZero() {
		t.Errorf("afterwards the session is %+v, %v", view, err)
	}
	if status, body := a.ask(t, "bob", "GET /v1/alerts/news", ""); status != http.StatusOK || strings.Contains(body, marker) || !strings.Contains(body, "of bob") {
		t.Errorf("news of alerts: %d: %s", status, body)
	}
}

// TestOthersByOwnSession has nobody reach another's exec by a session of their own.
func TestOthersByOwnSession(t *testing.T) {
	t.Parallel()
	a := ofAlice(t)
	_, err := a.CreateSession(as(t.Context(), "bob", ""), api.SessionOptions{Name: "mine", Workspace: sandbox.Workspace{Kind: sandbox.WorkspaceTmpfs}}, sandbox.Local{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.RemoveSession(t.Context(), "bob~mine", true) }) // as above
	tried := 0
	for _, route := range a.described(t) {
		if !strings.Contains(route, "{exec}") {
			continue
		}
		tried++
		if status, body := a.ask(t, "bob", route, "mine"); status != http.StatusNotFound || strings.Contains(body, marker) {
			t.Errorf("%s: %d: %s", route, status, body)
		}
	}
	if tried < 5 {
		t.Errorf("only %d routes are about execs", tried)
	}
}

// TestOthersEvents follows everything from the beginning, and is told of nothing
// that is another's.
func TestOthersEvents(t *testing.T) {
	t.Parallel()
	a := ofAlice(t)
	if _, err := a.Run(as(t.Context(), "bob", ""), sandbox.Run{Language: "shell", Command: []string{"echo"}}, sandbox.Streams{}); err != nil {
		t.Fatal(err)
	}
	follow := func(owner, until string) string {
		t.Helper()
		res := a.open(t.Context(), t, owner, http.MethodGet, "/v1/events", "")
		defer res.Body.Close()
		return readUntil(res.Body, until)
	}
	if told := follow("bob", "event: exec.ended"); strings.Contains(told, "alice") || strings.Contains(told, a.ids["exec"]) {
		t.Errorf("bob is told %s", told)
	}
	if told := follow("alice", a.ids["exec"]); !strings.Contains(told, a.ids["exec"]) {
		t.Errorf("alice is told %s", told)
	}
}

// touched is a workspace in which one folder was made.
type touched string

func (f touched) Observe(_ context.Context, _ sandbox.ObserveOptions, take func(*sandbox.Observation) error) error {
	return take(&sandbox.Observation{Entries: []sandbox.Touched{{Path: string(f), State: sandbox.FileState{Kind: sandbox.KindDir, Mode: 0o755, Inode: 7}}}})
}

func (touched) Restore(context.Context, []sandbox.Restore) error { return nil }

// TestOthersFeed follows changes, and is told of nobody else's.
func TestOthersFeed(t *testing.T) {
	t.Parallel()
	a := ofAlice(t)
	res := a.open(t.Context(), t, "bob", http.MethodGet, "/v1/changes", "")
	defer res.Body.Close()
	for _, made := range []struct{ session, folder string }{{"alice~work", marker}, {"bob~mine", "of-bob"}} {
		id := sandbox.NewID()
		for _, o := range []sandbox.RecordOptions{{Baseline: true, Session: made.session}, {Exec: sandbox.NewID(), Session: made.session}} {
			w := touched(made.folder)
			if o.Baseline {
				w = "before"
			}
			if _, _, err := a.changes.Record(t.Context(), id, w, o); err != nil {
				t.Fatal(err)
			}
		}
	}
	if told := readUntil(res.Body, "of-bob"); strings.Contains(told, marker) || strings.Contains(told, "alice") || !strings.Contains(told, "of-bob") {
		t.Errorf("bob is told %s", told)
	}
}

// readUntil reads lines up to one with a text in it.
func readUntil(r io.Reader, until string) string {
	var all strings.Builder
	for lines := bufio.NewScanner(r); lines.Scan(); {
		all.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), until) {
			break
		}
	}
	return all.String()
}

// TestOthersConnect: a run over a WebSocket goes into no session of another's.
func TestOthersConnect(t *testing.T) {
	t.Parallel()
	a := ofAlice(t)
	c, err := client.New(client.Config{Host: a.http.URL, Token: "bob"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // idle connections alone
	run := sandbox.Run{Command: []string{"echo", marker}}
	for _, name := range []string{"work", "alice~work"} {
		files, err := c.Files(t.Context(), name)
		if err == nil {
			err = files.Put(t.Context(), []sandbox.File{{Path: "x"}}, sandbox.Local{})
		}
		for call, err := range map[string]error{
			"exec": second(c.Exec(t.Context(), name, run, sandbox.Streams{})), "start": second(c.StartExec(t.Context(), name, run, sandbox.Local{})), "files": err,
			"shell":  second(c.RunShell(t.Context(), name, "sh", sandbox.ShellRun{Text: "true"}, sandbox.Streams{})),
			"submit": second(c.SubmitExecution(t.Context(), sandbox.ExecutionOptions{Run: sandbox.Run{Session: name, Command: run.Command}}, sandbox.Local{})),
			"invoke": second(c.InvokeFunction(t.Context(), sandbox.Invocation{Function: "fn"}, sandbox.Local{})),
		} {
			if !errors.Is(err, sandbox.NotFound) {
				t.Errorf("%s of %s: %v", call, name, err)
			}
		}
	}
}

package e2b

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/sandbox"
)

// double is a service with tokens and sessions alone: whatever else is asked of it
// is a fault of the test.
type double struct {
	Service
	tokens []sandbox.Token
	views  []sandbox.SessionView
}

func (d *double) RemoveSession(ctx context.Context, name string, _ bool) error {
	who, left := sandbox.CallerFrom(ctx), len(d.views)
	d.views = slices.DeleteFunc(d.views, func(v sandbox.SessionView) bool { return v.Name == who.Kept(name) && who.Sees(v.Owner) })
	if len(d.views) == left {
		return sandbox.NotFound
	}
	return nil
}

func (d *double) Tokens(ctx context.Context) ([]sandbox.Token, error) {
	if !sandbox.CallerFrom(ctx).IsAdmin() {
		return nil, sandbox.Denied
	}
	return d.tokens, nil
}

func (d *double) Sessions(ctx context.Context, f sandbox.SessionFilter) ([]sandbox.SessionView, error) {
	who := sandbox.CallerFrom(ctx)
	var list []sandbox.SessionView
	for _, v := range d.views {
		if v.Labels.Has(f.Labels) && (f.Name == "" || v.Name == who.Kept(f.Name)) && who.Sees(v.Owner) && (f.Owner == nil || *f.Owner == v.Owner) {
			v.Name = who.Shown(v.Name)
			list = append(list, v)
		}
	}
	return list, nil
}

// now is the time of all tests.
var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func view(owner, name string, age, left time.Duration, labels sandbox.Labels) sandbox.SessionView {
	all := sandbox.Labels{labelWire: "true", labelTemplate: baseTemplate}
	for k, v := range labels {
		all[k] = v
	}
	return sandbox.SessionView{
		Session:   sandbox.Session{ID: sandbox.NewID(), Name: sandbox.SessionName(owner, name), Owner: owner, Labels: all, Created: now.Add(-age), TTL: sandbox.Duration(time.Hour)},
		Sandboxes: []sandbox.SandboxRecord{{State: sandbox.StateReady, Expires: now.Add(left)}},
	}
}

func server(t *testing.T, d *double) *Server {
	t.Helper()
	s, err := New(Config{Service: d, Key: make([]byte, 32), Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestPasses: a pass lets in who holds a token that is good, for the sandbox that it
// was made for; so does what is signed with it.
func TestPasses(t *testing.T) {
	t.Parallel()
	ann := sandbox.Token{ID: sandbox.NewID(), Name: "ann-1", Owner: "ann", Access: sandbox.AccessUser}
	bob := sandbox.Token{ID: sandbox.NewID(), Name: "bob-1", Owner: "bob", Access: sandbox.AccessUser, Expires: now.Add(-time.Second)}
	d := &double{tokens: []sandbox.Token{ann, bob}, views: []sandbox.SessionView{view("ann", "i1", 0, time.Hour, nil), view("ann", "i2", 0, time.Hour, nil), view("bob", "i3", 0, time.Hour, nil)}}
	s := server(t, d)
	if id, err := s.tokenOf(sandbox.WithCaller(t.Context(), ann.Caller())); err != nil || id != ann.ID {
		t.Fatal(id, err)
	}
	pass := s.pass("i1", ann.ID)
	signed := func(path, op, pass, until string) string {
		q := url.Values{"path": {"f"}, "signature": {signature(path, op, "", pass, until)}}
		if until != "" {
			q.Set("signature_expiration", until)
		}
		return "/files?" + q.Encode()
	}
	for name, c := range map[string]struct {
		method, target, box, pass string
		want                      sandbox.Caller
		in                        string // the sandbox, "" is that nobody is let in
	}{
		"a pass":             {target: "/health", box: "i1", pass: pass, want: ann.Caller(), in: "i1"},
		"of another":         {target: "/health", box: "i2", pass: pass},
		"with another token": {target: "/health", box: "i1", pass: string(bob.ID) + pass[len(ann.ID):]},
		"an expired token's": {target: "/health", box: "i3", pass: s.pass("i3", bob.ID)},
		"a revoked token's":  {target: "/health", box: "i1", pass: s.pass("i1", "gone")},
		"the local user's":   {target: "/health", box: "i1", pass: s.pass("i1", localToken), in: "i1"},
		"nonsense":           {target: "/health", box: "i1", pass: "x"},
		"signed":             {target: signed("f", "read", pass, ""), want: ann.Caller(), in: "i1"},
		"signed, not over":   {target: signed("f", "read", pass, "1800000000"), want: ann.Caller(), in: "i1"},
		"signed, over":       {target: signed("f", "read", pass, "1700000000"), box: "i1"},
		"signed for writing": {method: http.MethodPost, target: signed("f", "write", pass, ""), want: ann.Caller(), in: "i1"},
		"another operation":  {target: signed("f", "write", pass, "")},
		"another path":       {target: signed("g", "read", pass, "")},
		"another sandbox":    {target: signed("f", "read", pass, ""), box: "i2"},
		"signed when over":   {target: signed("f", "read", s.pass("i3", bob.ID), "")},
	} {
		r := httptest.NewRequestWithContext(t.Context(), firstOf(c.method, http.MethodGet), c.target, nil)
		r.Header.Set(sandboxHeader, c.box)
		if c.pass != "" {
			r.Header.Set(accessHeader, c.pass)
		}
		who, knows, err := s.Caller(r)
		if !knows {
			t.Errorf("%s: it is not known", name)
		}
		if c.in == "" {
			if !errors.Is(err, sandbox.Denied) || statusOf(err) != http.StatusUnauthorized {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		box, _, reachErr := s.reach(r)
		if err != nil || reachErr != nil || who != c.want || box != c.in {
			t.Errorf("%s: %q, %+v, %v, %v", name, box, who, err, reachErr)
		}
	}
	if _, err := s.tokenOf(sandbox.WithCaller(t.Context(), sandbox.Caller{Owner: "eve", Name: "gone"})); !errors.Is(err, sandbox.Denied) {
		t.Errorf("a pass for a token that is gone: %v", err)
	}
}

// TestPreviewPasses: the name of a preview lets in to one sandbox, while its token is
// good; and a pass for previews is none for the sandbox itself, nor the other way about.
func TestPreviewPasses(t *testing.T) {
	t.Parallel()
	ann := sandbox.Token{ID: sandbox.NewID(), Name: "ann-1", Owner: "ann", Access: sandbox.AccessUser}
	d := &double{tokens: []sandbox.Token{ann}, views: []sandbox.SessionView{view("ann", "i1", 0, time.Hour, nil), view("ann", "i2", 0, time.Hour, nil)}}
	s := server(t, d)
	pass := s.previewPass("i1", ann.ID)
	if len(pass) > 63 {
		t.Errorf("%s is no part of a name", pass)
	}
	for host, c := range map[string]struct {
		header string
		owns   bool
		want   string // whose it is; "-" is nobody's
	}{
		"80-i1." + pass + ".localhost:7373":                            {owns: true, want: "ann"},
		"80-I1." + strings.ToUpper(pass) + ".LOCALHOST":                {owns: true, want: "ann"},
		"80-i2." + pass + ".localhost:7373":                            {owns: true, want: "-"},
		"80-i1." + s.previewPass("i1", "gone") + ".localhost":          {owns: true, want: "-"},
		"80-i1." + s.previewPass("i1", sandbox.NewID()) + ".localhost": {owns: true, want: "-"},
		"80-i1." + s.previewPass("i1", localToken) + ".localhost":      {owns: true},
		"80-i1.localhost":    {owns: true, want: "-"},
		"81-i1.box.example":  {owns: true, header: pass, want: "ann"},
		"82-i1.box.example":  {owns: true, header: s.pass("i1", ann.ID), want: "-"},
		"localhost:7373":     {},
		"80-i1":              {},
		"0-i1.localhost":     {},
		"65536-i1.localhost": {},
		"my-box.example":     {},
		"127.0.0.1:7373":     {},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v2/sandboxes", nil)
		r.Host = host
		r.Header.Set(trafficHeader, c.header)
		who, knows, err := s.Caller(r)
		if s.Owns(r) != c.owns || knows != c.owns {
			t.Errorf("%s: owned %v, known %v", host, s.Owns(r), knows)
		}
		if c.want == "-" {
			if statusOf(err) != http.StatusUnauthorized {
				t.Errorf("%s: %v", host, err)
			}
		} else if err != nil || who.Owner != c.want {
			t.Errorf("%s: %+v, %v", host, who, err)
		}
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/health", nil)
	r.Header.Set(sandboxHeader, "i1")
	r.Header.Set(accessHeader, pass)
	if _, _, err := s.Caller(r); statusOf(err) != http.StatusUnauthorized {
		t.Errorf("a preview's pass reaches the sandbox: %v", err)
	}
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func TestPaths(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"": "/workspace", "a": "/workspace/a", "/home/user": "/workspace", "/home/user/a/../b": "/workspace/b", "~": "/workspace", "~/x": "/workspace/x",
		"/tmp/x": "/tmp/x", "/home/sandbox/.x": "/home/sandbox/.x", "/workspace/y": "/workspace/y", "/home/user2": "", "/etc/passwd": "", "../../etc/x": "", "/tmp/../etc": "",
		"a\x00b": "",
	} {
		got, err := placeOf(given)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", given, got, err)
		}
	}
	for given, want := range map[string]string{".": "/home/user", "a/b": "/home/user/a/b", "/workspace/a": "/home/user/a", "/tmp/x": "/tmp/x"} {
		if got := shown(given); got != want {
			t.Errorf("%q is shown as %q", given, got)
		}
	}
}

// TestListed: a list has what lives and is its asker's, by pages whose order holds.
func TestListed(t *testing.T) {
	t.Parallel()
	paused := view("ann", "i2", 2*time.Minute, -time.Hour, nil)
	paused.Sandboxes[0].State = sandbox.StatePaused
	died := view("ann", "i5", time.Minute, time.Hour, nil)
	died.Sandboxes = nil
	other := view("ann", "mine", time.Minute, time.Hour, nil)
	delete(other.Labels, labelWire)
	d := &double{views: []sandbox.SessionView{
		view("ann", "i1", time.Minute, time.Hour, sandbox.Labels{"k": "a b&c"}), paused, view("ann", "i3", 3*time.Minute, time.Hour, nil),
		view("ann", "i4", time.Minute, -time.Second, nil), died, other, view("bob", "i6", time.Minute, time.Hour, nil), view("ann", "i7", 3*time.Minute, time.Hour, nil),
	}}
	s := server(t, d)
	list := func(query string) (ids []string, next string, status int) {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(sandbox.WithCaller(t.Context(), sandbox.Caller{Owner: "ann", Name: "n"}), http.MethodGet, query, nil)
		s.ServeHTTP(w, r)
		var page []listed
		decode(t, w, &page)
		for _, l := range page {
			ids = append(ids, l.ID)
		}
		return ids, w.Header().Get("X-Next-Token"), w.Code
	}
	for query, want := range map[string][]string{
		"/v2/sandboxes": {"i1", "i2", "i7", "i3"}, "/sandboxes": {"i1", "i7", "i3"}, "/v2/sandboxes?state=paused": {"i2"},
		"/v2/sandboxes?order=asc&state=running": {"i3", "i7", "i1"}, "/v2/sandboxes?template=other": nil,
		"/v2/sandboxes?metadata=" + url.QueryEscape(url.Values{url.QueryEscape("k"): {url.PathEscape("a b&c")}}.Encode()): {"i1"},
		"/v2/sandboxes?startedAfter=" + url.QueryEscape(now.Add(-150*time.Second).Format(time.RFC3339)):                   {"i1", "i2"},
	} {
		if got, _, status := list(query); status != http.StatusOK || !cmp.Equal(got, want) {
			t.Errorf("%s: %d, %v", query, status, got)
		}
	}
	var all []string
	for query := "/v2/sandboxes?limit=1"; query != ""; {
		ids, next, _ := list(query)
		all = append(all, ids...)
		query = ""
		if next != "" {
			query = "/v2/sandboxes?limit=1&nextToken=" + next
		}
	}
	if want := []string{"i1", "i2", "i7", "i3"}; !cmp.Equal(all, want) {
		t.Errorf("page by page: %v", all)
	}
	for _, bad := range []string{"limit=x", "limit=0", "nextToken=!", "startedAfter=x", "metadata=%25zz"} {
		if _, _, status := list("/v2/sandboxes?" + bad); status != http.StatusBadRequest {
			t.Errorf("%s: %d", bad, status)
		}
	}
}

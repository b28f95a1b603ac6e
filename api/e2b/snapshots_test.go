package e2b

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

// TestSnapshotLists: who asks has their own snapshots, the newest first, by pages, by
// sandbox and by name. One whose time is over is none, and is removed.
func TestSnapshotLists(t *testing.T) {
	t.Parallel()
	snap := func(owner, name string, age, life time.Duration, labels sandbox.Labels) sandbox.SessionView {
		v := view(owner, name, age, 0, labels)
		delete(v.Labels, labelWire)
		v.Labels[labelSnapshot], v.TTL, v.Sandboxes = "true", sandbox.Duration(life), nil
		return v
	}
	d := &double{views: []sandbox.SessionView{
		snap("ann", "s1", 4*time.Hour, 0, sandbox.Labels{labelOrigin: "i1"}),
		snap("ann", "s2", 3*time.Hour, 4*time.Hour, sandbox.Labels{labelOrigin: "i2", labelName: "mine"}),
		snap("ann", "s3", 2*time.Hour, time.Hour, nil), // over
		snap("ann", "s4", time.Hour, 0, sandbox.Labels{labelOrigin: "i1"}),
		snap("bob", "s5", time.Hour, 0, nil),
		view("ann", "i1", time.Hour, time.Hour, nil),
	}}
	s := server(t, d)
	ann := sandbox.Caller{Owner: "ann", Name: "ann-1", Access: sandbox.AccessUser}
	ask := func(method, target string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequestWithContext(sandbox.WithCaller(t.Context(), ann), method, target, nil))
		return w
	}
	for query, want := range map[string]string{
		"": "s4 mine s1", "limit=2": "s4 mine", "sandboxID=i1": "s4 s1", "name=mine": "mine", "name=s2": "mine", "name=s3": "", "name=s5": "",
	} {
		var got []snapshotOf
		w := ask(http.MethodGet, "/snapshots?"+query)
		decode(t, w, &got)
		var ids []string
		for _, one := range got {
			ids = append(ids, one.ID)
		}
		if strings.Join(ids, " ") != want || (w.Header().Get("X-Next-Token") != "") != (query == "limit=2") {
			t.Errorf("%s: %v, %v", query, ids, w.Header())
		}
	}
	var rest []snapshotOf
	decode(t, ask(http.MethodGet, "/snapshots?limit=2&nextToken="+ask(http.MethodGet, "/snapshots?limit=2").Header().Get("X-Next-Token")), &rest)
	if len(rest) != 1 || rest[0].ID != "s1" {
		t.Errorf("the second page: %+v", rest)
	}
	for id, want := range map[string]int{"s3": http.StatusNotFound, "s5": http.StatusNotFound, "i1": http.StatusNotFound, "s2": http.StatusNotFound, "mine": http.StatusNoContent} {
		if w := ask(http.MethodDelete, "/templates/"+id); w.Code != want {
			t.Errorf("delete %s: %d, %s", id, w.Code, w.Body)
		}
	}
	if err := s.sweepSnapshots(asLocal(t.Context())); err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, v := range d.views {
		left = append(left, v.Name)
	}
	if got := strings.Join(left, " "); got != "ann~s1 ann~s4 bob~s5 ann~i1" {
		t.Errorf("left: %s", got)
	}
}

// thawed is a service with a sandbox that was frozen when it was looked at, and goes on
// before it is told to.
type thawed struct {
	double
	renewed sandbox.Duration
}

func (d *thawed) ResumeSession(context.Context, string) error {
	d.views[0].Sandboxes = []sandbox.SandboxRecord{{State: sandbox.StateReady, Expires: now.Add(time.Minute)}}
	return sandbox.Conflict
}

func (d *thawed) RenewSession(_ context.Context, _ string, o api.RenewOptions) error {
	d.renewed = *o.TTL
	return nil
}

// TestConnectFrozen connects to a sandbox that is frozen while it is copied: it is
// handed out, and its end put off.
func TestConnectFrozen(t *testing.T) {
	t.Parallel()
	d := &thawed{double: double{views: []sandbox.SessionView{view("", "i1", time.Hour, time.Minute, nil)}}}
	d.views[0].Sandboxes[0].State = sandbox.StatePaused
	s, err := New(Config{Service: d, Key: make([]byte, 32), Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v2/sandboxes/i1/connect", strings.NewReader(`{"timeout": 300}`)))
	if w.Code != http.StatusCreated || d.renewed != sandbox.Duration(300*time.Second) {
		t.Errorf("%d, %s; renewed for %s", w.Code, w.Body, time.Duration(d.renewed))
	}
}

// TestRests: a sandbox without anything that runs is paused where it has no end, and
// otherwise over.
func TestRests(t *testing.T) {
	t.Parallel()
	s := server(t, &double{})
	v := view("", "i1", time.Hour, time.Hour, nil)
	v.Sandboxes, v.TTL = nil, 0
	if !isPaused(v) || !s.lives(v) || s.ends(v).Before(now) {
		t.Error("one without an end is gone")
	}
	v.TTL = sandbox.Duration(time.Hour)
	if isPaused(v) || s.lives(v) || s.ends(v).After(now) {
		t.Error("one whose end has come is there")
	}
}

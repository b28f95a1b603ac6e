package e2b

import (
	"cmp"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// mostListed bounds a page of a list.
const mostListed = 100

// wanted says which sandboxes a list has.
type wanted struct {
	metadata sandbox.Labels
	states   []string
	template string
	after    time.Time
	oldest   bool // first
	limit    int
	from     cursor
	last     cursor // that a page of snapshots has
}

// cursor is the last sandbox of the page before; the zero value is none.
type cursor struct {
	started time.Time
	id      string
}

// list answers the sandboxes of whoever asks, the newest first.
func (s *Server) list(w http.ResponseWriter, r *http.Request) error {
	want, err := wants(r)
	if err != nil {
		return err
	}
	who := sandbox.CallerFrom(r.Context())
	want.metadata[labelWire] = "true"
	views, err := s.svc.Sessions(r.Context(), sandbox.SessionFilter{Owner: &who.Owner, Labels: want.metadata, Running: true})
	if err != nil {
		return err
	}
	page := []listed{}
	for _, v := range views {
		if l := s.listed(r, v); s.lives(v) && want.has(l) {
			page = append(page, l)
		}
	}
	slices.SortFunc(page, want.compare)
	if len(page) > want.limit {
		page = page[:want.limit]
		last := page[want.limit-1]
		w.Header().Set("X-Next-Token", cursor{last.Started, last.ID}.String())
	}
	answer(w, http.StatusOK, page)
	return nil
}

// compare orders a list.
func (want wanted) compare(a, b listed) int {
	c := cmp.Or(a.Started.Compare(b.Started), strings.Compare(a.ID, b.ID))
	if !want.oldest {
		c = -c
	}
	return c
}

func (want wanted) has(l listed) bool {
	return slices.Contains(want.states, l.State) && (want.template == "" || want.template == l.Template) && l.Started.After(want.after) &&
		(want.from.id == "" || want.compare(l, listed{Started: want.from.started, ID: want.from.id}) > 0)
}

// wants reads what a list is asked for. The first version of it has what runs alone.
func wants(r *http.Request) (want wanted, err error) {
	q := r.URL.Query()
	want = wanted{metadata: sandbox.Labels{}, states: []string{"running", "paused"}, template: q.Get("template"), oldest: q.Get("order") == "asc", limit: mostListed}
	if !strings.HasPrefix(r.URL.Path, "/v2/") {
		want.states, want.limit = []string{"running"}, 1<<30
	}
	if states := q.Get("state"); states != "" {
		want.states = strings.Split(states, ",")
	}
	bad := func(name string, err error) error {
		return sandbox.Errorf(sandbox.Invalid, "%s of the list: %w", name, err)
	}
	if limit := q.Get("limit"); limit != "" {
		n, err := strconv.Atoi(limit)
		if err != nil || n < 1 {
			return want, sandbox.Errorf(sandbox.Invalid, "limit of the list: %q", limit).WithHint("ask for 1 to %d", mostListed)
		}
		want.limit = min(n, mostListed)
	}
	if after := q.Get("startedAfter"); after != "" {
		if want.after, err = time.Parse(time.RFC3339, after); err != nil {
			return want, bad("startedAfter", err)
		}
	}
	if token := q.Get("nextToken"); token != "" {
		if want.from, err = parseCursor(token); err != nil {
			return want, bad("nextToken", err)
		}
	}
	// Keys and values are encoded by themselves, and the whole once more.
	pairs, err := url.ParseQuery(q.Get("metadata"))
	if err != nil {
		return want, bad("metadata", err)
	}
	for k, values := range pairs {
		key, err := url.QueryUnescape(k)
		if err != nil {
			return want, bad("metadata", err)
		}
		if want.metadata[key], err = url.QueryUnescape(values[0]); err != nil {
			return want, bad("metadata", err)
		}
	}
	return want, nil
}

// String is c as a client hands it back.
func (c cursor) String() string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(c.started.UnixNano(), 10) + ":" + c.id))
}

func parseCursor(text string) (cursor, error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return cursor{}, err
	}
	nanos, id, _ := strings.Cut(string(b), ":")
	n, err := strconv.ParseInt(nanos, 10, 64)
	return cursor{time.Unix(0, n).UTC(), id}, err
}

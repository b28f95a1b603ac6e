package egress_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/egress"
	"github.com/caisson-dev/caisson/sandbox"
)

// TestBytes ends what has moved too much, both ways, and lets nothing more begin until
// the day is over.
func TestBytes(t *testing.T) {
	t.Parallel()
	o, port, network := here(t, httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/small" {
			_, _ = io.WriteString(w, "small")
			return
		}
		for range 64 {
			_, _ = w.Write(make([]byte, 64<<10))
		}
	})))
	var late atomic.Int64
	now := func() time.Time { return time.Unix(late.Load(), 0) }
	o.meters = []*egress.Meter{egress.NewMeter("the owner", sandbox.NetworkLimits{Bytes: 1 << 20}, 24*time.Hour, now)}
	w, proxy := o.proxy(t, network)
	get := func(path string) string {
		return say(t, proxy, fmt.Sprintf("GET http://a.test:%s%s HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n", port, path))
	}
	if got := get("/small"); !strings.HasSuffix(got, "small") {
		t.Errorf("within the limit: %s", got)
	}
	if got := get("/large"); len(got) > 2<<20 {
		t.Errorf("%d bytes came", len(got))
	}
	get("/small")
	told := until(t, w, 3)
	const why = "the owner has moved all of the 1.0 MiB that it may"
	for i, want := range []string{"", why, why} {
		if told[i].Why != want || (told[i].Verdict == sandbox.Deny) != (want != "") {
			t.Errorf("%d: told %+v", i, told[i])
		}
	}
	if sum := w.Totals(); sum.Allowed != 1 || sum.Refused != 2 || sum.Received < 1<<20 || sum.Sent == 0 {
		t.Errorf("all in all %+v", sum)
	}
	late.Store(25 * 3600)
	if got := get("/small"); !strings.HasSuffix(got, "small") {
		t.Errorf("the day after: %s", got)
	}
}

// TestConnectionsAtOnce has those wait that are too many, for all ways that share a
// meter.
func TestConnectionsAtOnce(t *testing.T) {
	t.Parallel()
	var most, open atomic.Int32
	o, port, network := here(t, httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := open.Add(1)
		for {
			m := most.Load()
			if n <= m || most.CompareAndSwap(m, n) {
				break
			}
		}
		time.Sleep(time.Millisecond) // for the others to come, where they may
		open.Add(-1)
		_, _ = io.WriteString(w, "hello")
	})))
	o.meters = []*egress.Meter{egress.NewMeter("the owner", sandbox.NetworkLimits{Connections: 2}, 0, nil)}
	_, one := o.proxy(t, network)
	_, two := o.proxy(t, network)
	var all sync.WaitGroup
	var answered atomic.Int32
	for i := range 20 {
		all.Go(func() {
			got := say(t, []string{one, two}[i%2], fmt.Sprintf("GET http://a.test:%s/ HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n", port))
			if strings.HasSuffix(got, "hello") {
				answered.Add(1)
			}
		})
	}
	all.Wait()
	if answered.Load() != 20 || most.Load() > 2 {
		t.Errorf("%d were answered, %d were open at once", answered.Load(), most.Load())
	}
}

// TestRate takes no less time than the rate asks for.
func TestRate(t *testing.T) {
	t.Parallel()
	o, port, network := here(t, httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(make([]byte, 300<<10))
	})))
	o.meters = []*egress.Meter{egress.NewMeter("the exec", sandbox.NetworkLimits{Rate: 200 << 10}, 0, nil)}
	_, proxy := o.proxy(t, network)
	began := time.Now()
	got := say(t, proxy, "GET http://a.test:"+port+"/ HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")
	// A second's worth passes at once, and half a second's has to be waited for.
	if took := time.Since(began); len(got) < 300<<10 || took < 450*time.Millisecond {
		t.Errorf("%d bytes took %v", len(got), took)
	}
}

package server_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/api/server"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/telemetry"
)

// gib is as large as what a test sends and fetches.
const gib = int64(1) << 30

// bulk is a workspace that takes and gives what is large, and remembers none of it.
type bulk struct {
	api.Service
	most  atomic.Uint64 // of the heap, while bytes went through
	begun chan struct{} // told of bytes that came; nil is not
	gone  chan error    // told how a call whose client vanished has ended
	part  int64         // what is given before it waits for its client to vanish; 0 is all
}

func (b *bulk) Files(context.Context, string) (api.Files, error) { return bulkFiles{bulk: b}, nil }

// bulkFiles are its files.
type bulkFiles struct {
	api.Files
	bulk *bulk
}

// look notes what is in memory.
func (b *bulk) look() {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.most.Store(max(b.most.Load(), m.HeapAlloc))
}

func (b *bulk) take(r io.Reader) (n int64, err error) {
	buf := make([]byte, 1<<20)
	for looks := 0; err == nil; looks++ {
		var k int
		k, err = io.ReadFull(r, buf)
		if n += int64(k); looks%64 == 0 {
			b.look()
		}
		select {
		case b.begun <- struct{}{}:
		default:
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) && n == gib {
		return n, nil
	}
	b.gone <- err
	return n, err
}

func (b *bulk) give(ctx context.Context, w io.Writer) (n int64, err error) {
	buf := make([]byte, 1<<20)
	for ; n < gib; n += int64(len(buf)) {
		if b.part > 0 && n >= b.part {
			<-ctx.Done()
			b.gone <- ctx.Err()
			return n, ctx.Err()
		}
		if _, err := w.Write(buf); err != nil {
			return n, err
		}
		if n>>20%64 == 0 {
			b.look()
		}
	}
	return n, nil
}

func (f bulkFiles) Write(_ context.Context, _ string, _ uint32, r io.Reader) (int64, error) {
	return f.bulk.take(r)
}

func (f bulkFiles) PutTar(_ context.Context, _ string, r io.Reader) (sandbox.Moved, error) {
	n, err := f.bulk.take(r)
	return sandbox.Moved{Bytes: n}, err
}

func (f bulkFiles) Read(ctx context.Context, _ string, _, _ int64, w io.Writer) (int64, error) {
	return f.bulk.give(ctx, w)
}

func (f bulkFiles) Get(ctx context.Context, _ string, _ []string, w io.Writer) (sandbox.Moved, error) {
	n, err := f.bulk.give(ctx, w)
	return sandbox.Moved{Bytes: n}, err
}

// zeros are so many bytes.
type zeros struct{ left int64 }

func (z *zeros) Read(p []byte) (int, error) {
	if z.left == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), z.left)
	clear(p[:n])
	z.left -= n
	return int(n), nil
}

// TestLarge has files and tar streams of 1 GiB go through in both directions, of
// which the server holds little: neither side knows how long they are.
func TestLarge(t *testing.T) {
	b := &bulk{gone: make(chan error, 1)}
	ts := serve(t, server.Config{Service: b})
	send := func(method, path string, body io.Reader) int64 {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, ts.URL+"/v1/sessions/x/files"+path, body)
		if err != nil {
			t.Fatal(err)
		}
		res, err := ts.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		n, err := io.Copy(io.Discard, res.Body)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Errorf("%s %s: %d, %v", method, path, res.StatusCode, err)
		}
		return n
	}
	runtime.GC()
	b.look()
	before := b.most.Load()
	for _, path := range []string{"/content?path=f", "/tar?dir=d"} {
		up := &zeros{gib}
		if send(http.MethodPut, path, up); up.left != 0 {
			t.Errorf("PUT %s: %d bytes were not taken", path, up.left)
		}
		if n := send(http.MethodGet, path, nil); n != gib {
			t.Errorf("GET %s: %d bytes", path, n)
		}
	}
	// Garbage included: a collection comes when the heap has doubled.
	if held := b.most.Load() - before; held > 48<<20 {
		t.Errorf("%d MiB were held", held>>20)
	}
}

// TestVanished: a client that is gone in the middle ends its call, which is told, and
// holds nothing back.
func TestVanished(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{}, 1)
	b := &bulk{begun: begun, gone: make(chan error, 1), part: 1 << 20}
	running := &fake{run: func(ctx context.Context, _ sandbox.Run, _ sandbox.Streams) (sandbox.Result, error) {
		begun <- struct{}{}
		<-ctx.Done()
		b.gone <- ctx.Err()
		return sandbox.Result{}, ctx.Err()
	}}
	files := serve(t, server.Config{Service: b})
	runs := serve(t, server.Config{Service: running})
	for name, tt := range map[string]struct {
		ts           *httptest.Server
		method, path string
		body         func() io.Reader // nil is none
		accept       string
	}{
		"a run":             {runs, "POST", "/v1/runs", func() io.Reader { return strings.NewReader(`{"code":"x"}`) }, ""},
		"a run as events":   {runs, "POST", "/v1/runs", func() io.Reader { return strings.NewReader(`{"code":"x"}`) }, "text/event-stream"},
		"an upload":         {files, "PUT", "/v1/sessions/x/files/content?path=f", func() io.Reader { return &zeros{1 << 50} }, ""},
		"a tar upload":      {files, "PUT", "/v1/sessions/x/files/tar", func() io.Reader { return &zeros{1 << 50} }, ""},
		"a download":        {files, "GET", "/v1/sessions/x/files/content?path=f", nil, ""},
		"a download of tar": {files, "GET", "/v1/sessions/x/files/tar", nil, ""},
	} {
		ctx, vanish := context.WithCancel(t.Context())
		var body io.Reader
		if tt.body != nil {
			body = tt.body()
		}
		req, err := http.NewRequestWithContext(ctx, tt.method, tt.ts.URL+tt.path, body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", tt.accept)
		go func() {
			if tt.method == http.MethodGet {
				return
			}
			<-begun
			vanish()
		}()
		res, err := tt.ts.Client().Do(req)
		if tt.method == http.MethodGet {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if _, err := io.ReadFull(res.Body, make([]byte, 1<<20)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			vanish()
		}
		if err == nil {
			_, _ = io.Copy(io.Discard, res.Body) // it is cut off
			_ = res.Body.Close()
		}
		if err := <-b.gone; err == nil {
			t.Errorf("%s: the call ends as if all had been well", name)
		}
		vanish()
		select {
		case <-begun: // bytes came until it was gone
		default:
		}
	}
}

// TestTraceparent: what a call does belongs to the trace that its caller names; one
// that is no trace is as if it were not there.
func TestTraceparent(t *testing.T) {
	t.Parallel()
	ts := serve(t, server.Config{Service: &fake{session: func(ctx context.Context, _ string) (sandbox.SessionView, error) {
		next := http.Header{}
		telemetry.Inject(ctx, next)
		return sandbox.SessionView{Session: sandbox.Session{Image: "trace " + next.Get("Traceparent")}}, nil
	}}})
	const good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for header, want := range map[string]string{good: good, "": "", good[:40] + "x": "", "ff-" + strings.Repeat("x", 5000): ""} {
		res, body := ask(t, "GET", ts.URL+"/v1/sessions/name", "", "Traceparent", header)
		if res.StatusCode != 200 || !strings.Contains(body, `"trace `+want+`"`) {
			t.Errorf("%.60q: %d %s", header, res.StatusCode, body)
		}
	}
}

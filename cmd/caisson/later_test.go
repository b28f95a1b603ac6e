package main

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCallsForLater kills a server while calls that nobody waits for run and wait: by
// the next one those that wait are each made once, and the one that ran is not made again.
func TestCallsForLater(t *testing.T) {
	t.Parallel()
	kit, base := place(t)
	kit.Image(t, "python")
	serve := func() (*process, string) {
		t.Helper()
		srv := start(t, kit, base, "serve", "--no-auth", "--listen", "127.0.0.1:0")
		line, err := srv.out.ReadString('\n')
		if err != nil {
			t.Fatalf("%v; %s", err, srv.errs)
		}
		return srv, strings.TrimSpace(line)
	}
	invoke := func(address, how, event string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/2015-03-31/functions/notes/invocations", strings.NewReader(event))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Amz-Invocation-Type", how)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		all, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(all)
	}
	server, address := serve()
	code := "import os, subprocess\n" +
		"def handler(event, context):\n" +
		"    if event == 'read':\n        return open('/tmp/notes').read().split() if os.path.exists('/tmp/notes') else []\n" +
		"    print(event, file=open('/tmp/notes', 'a'))\n" +
		"    if event == 'stays':\n        subprocess.run(['sleep', '600'])\n"
	if status := ask(t, address, "POST", "/v1/functions", "", map[string]any{"name": "notes", "handler": "main.handler", "language": "python", "timeout_ms": 600000, "concurrency": 1, "files": []map[string]string{
		{"path": "main.py", "data_base64": base64.StdEncoding.EncodeToString([]byte(code))},
	}}, nil); status > 299 {
		t.Fatal(status)
	}
	want := []string{"stays"}
	for i := range 6 {
		event := "stays"
		if i > 0 {
			event = fmt.Sprint("waits-", i)
			want = append(want, event)
		}
		if status, text := invoke(address, "Event", `"`+event+`"`); status != http.StatusAccepted || text != "" {
			t.Fatal(status, text)
		}
		if i == 0 {
			until(t, "the first call runs", func() bool {
				for _, id := range sandboxes(base) {
					if text, err := kit.API.ContainerTop(t.Context(), "caisson-"+id, nil); err == nil && strings.Contains(fmt.Sprint(text.Processes), "sleep 600") {
						return true
					}
				}
				return false
			})
		}
	}
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = server.Wait() // it was killed
	_, address = serve()
	var got string
	until(t, "those that waited were made", func() bool {
		status, text := invoke(address, "RequestResponse", `"read"`)
		got = text
		return status == http.StatusOK && strings.Count(text, "waits-") >= len(want)-1
	})
	made := strings.Fields(strings.NewReplacer("[", "", "]", "", ",", "", `"`, "").Replace(got))
	slices.Sort(made)
	if d := cmp.Diff(want, made); d != "" {
		t.Error(d)
	}
	if status := ask(t, address, "DELETE", "/v1/functions/notes", "", nil, nil); status > 299 {
		t.Error(status)
	}
	until(t, "nothing is left", func() bool { return len(sandboxes(base)) == 0 })
}

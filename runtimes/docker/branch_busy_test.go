package docker

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/docker/docker/client"
)

// TestReadVolumeBusy has an engine that cannot mount layers for a while, or never, and
// one that refuses for another reason, which is told at once.
func TestReadVolumeBusy(t *testing.T) {
	t.Parallel()
	const busy = "failed to mount local volume: device or resource busy"
	for name, c := range map[string]struct {
		message         string
		failures, asked int
		fails           bool
	}{
		"for a while": {busy, 2, 3, false},
		"for good":    {busy, 1000, mountAttempts, true},
		"else":        {"no", 1000, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if asked++; asked <= c.failures {
					w.WriteHeader(http.StatusInternalServerError)
					_, _ = io.WriteString(w, `{"message":"`+c.message+`"}`)
					return
				}
				w.Header().Set("X-Docker-Container-Path-Stat", "e30=")
				_, _ = io.WriteString(w, "files")
			}))
			defer ts.Close()
			api, err := client.NewClientWithOpts(client.WithHost("tcp://"+strings.TrimPrefix(ts.URL, "http://")), client.WithVersion("1.41"))
			if err != nil {
				t.Fatal(err)
			}
			stream, err := readVolume(t.Context(), api, "x")
			if (err != nil) != c.fails || asked != c.asked {
				t.Fatalf("the engine was asked %d times, and it came to %v", asked, err)
			}
			if err == nil {
				b, err := io.ReadAll(stream)
				if err != nil || string(b) != "files" || stream.Close() != nil {
					t.Errorf("%q, %v", b, err)
				}
			}
		})
	}
}

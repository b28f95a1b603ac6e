package docker_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caisson-dev/caisson/internal/dockerclient/dockertest"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/docker"
	"github.com/caisson-dev/caisson/sandbox"
)

// TestDestroyWhileRemoved has somebody else's removal going on, which then fails
// without a word to those who wait, or with one, or succeeds.
func TestDestroyWhileRemoved(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]func(w http.ResponseWriter, r *http.Request){
		"fails in silence": func(w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		},
		"fails": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"StatusCode":0,"Error":{"Message":"no"}}`)
		},
		"succeeds": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"StatusCode":0}`) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var removals atomic.Int64
			engine := dockertest.Fake(t, "1.41", func(w http.ResponseWriter, r *http.Request) {
				switch {
				case strings.HasSuffix(r.URL.Path, "/wait"):
					wait(w, r)
				case r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/containers/"):
					if removals.Add(1) == 1 {
						w.WriteHeader(http.StatusConflict)
						_, _ = io.WriteString(w, `{"message":"removal of container x is already in progress"}`)
						return
					}
					w.WriteHeader(http.StatusNoContent)
				case strings.HasSuffix(r.URL.Path, "/json"):
					_, _ = io.WriteString(w, `{"State":{"Running":true}}`)
				default:
					w.WriteHeader(http.StatusNotFound)
					_, _ = io.WriteString(w, `{"message":"no such thing"}`)
				}
			})
			rt, err := docker.New(docker.Config{Engine: engine, Agent: "/agent", Base: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			inst, err := rt.Attach(t.Context(), runtimes.Handle{
				Version: runtimes.HandleVersion, Runtime: docker.Name, Kind: runtimes.KindSandbox, ID: sandbox.NewID(),
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := inst.Destroy(t.Context()); err != nil {
				t.Fatal(err)
			}
			want := int64(2)
			if name == "succeeds" {
				want = 1
			}
			if n := removals.Load(); n != want {
				t.Errorf("the engine was asked %d times to remove it, not %d", n, want)
			}
		})
	}
}

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
			inst := attach(t, removing(&removals, http.StatusConflict, "removal of container x is already in progress", wait))
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

// TestDestroyRefilled has an engine that writes into the container's folder while
// it removes it; any other failure is told as it is, at once.
func TestDestroyRefilled(t *testing.T) {
	t.Parallel()
	for why, want := range map[string]int64{"directory not empty": 2, "no space left": 1} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			var removals atomic.Int64
			message := "unable to remove filesystem for x: unlinkat /var/lib/docker/containers/x: " + why
			inst := attach(t, removing(&removals, http.StatusInternalServerError, message, func(w http.ResponseWriter, r *http.Request) {
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			}))
			if err := inst.Destroy(t.Context()); (err == nil) != (want == 2) {
				t.Error(err)
			}
			if n := removals.Load(); n != want {
				t.Errorf("the engine was asked %d times to remove it, not %d", n, want)
			}
		})
	}
}

// attach attaches to a sandbox of an engine that answers as handle does.
func attach(t *testing.T, handle http.HandlerFunc) runtimes.Instance {
	t.Helper()
	rt, err := docker.New(docker.Config{Engine: dockertest.Fake(t, "1.41", handle), Agent: "/agent", Base: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	inst, err := rt.Attach(t.Context(), runtimes.Handle{
		Version: runtimes.HandleVersion, Runtime: docker.Name, Kind: runtimes.KindSandbox, ID: sandbox.NewID(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return inst
}

// removing is an engine that removes a container when it is asked for the second
// time, and fails as it is told when it is for the first.
func removing(removals *atomic.Int64, status int, message string, wait http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/wait"):
			wait(w, r)
		case r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/containers/"):
			if removals.Add(1) == 1 {
				w.WriteHeader(status)
				_, _ = io.WriteString(w, `{"message":"`+message+`"}`)
				return
			}
			w.WriteHeader(http.StatusNoContent)
		case strings.HasSuffix(r.URL.Path, "/json"):
			_, _ = io.WriteString(w, `{"State":{"Running":true}}`)
		default:
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"message":"no such thing"}`)
		}
	}
}

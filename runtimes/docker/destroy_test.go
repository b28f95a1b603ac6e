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

// TestDestroyAgain has an engine that fails for a reason that passes: it wrote
// into the container's folder while it removed it, or the container took longer
// to die than it waits. Any other failure is told as it is, at once.
func TestDestroyAgain(t *testing.T) {
	t.Parallel()
	const (
		filesystem = "unable to remove filesystem for x: unlinkat /var/lib/docker/containers/x: "
		kill       = "Could not kill running container x, cannot remove - "
	)
	for name, c := range map[string]struct {
		message string
		want    int64
	}{
		"refilled":   {filesystem + "directory not empty", 2},
		"full":       {filesystem + "no space left", 1},
		"dying":      {kill + "tried to kill container, but did not receive an exit event", 2},
		"not killed": {kill + "cannot kill container: x: permission denied", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var removals atomic.Int64
			inst := attach(t, removing(&removals, http.StatusInternalServerError, c.message, func(w http.ResponseWriter, r *http.Request) {
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			}))
			if err := inst.Destroy(t.Context()); (err == nil) != (c.want == 2) {
				t.Error(err)
			}
			if n := removals.Load(); n != c.want {
				t.Errorf("the engine was asked %d times to remove it, not %d", n, c.want)
			}
		})
	}
}

// attach attaches to a sandbox of an engine that answers as handle does.
func attach(t *testing.T, handle http.HandlerFunc) runtimes.Instance {
	t.Helper()
	rt, err := docker.New(docker.Config{Engine: dockertest.Fake(t, "1.41", handle), Agent: "/agent", Base: "/nowhere"})
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

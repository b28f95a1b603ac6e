package docker_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// TestPauseBusy has an engine that cannot freeze a container for a while, or never,
// and one that refuses for another reason, which is told at once.
func TestPauseBusy(t *testing.T) {
	t.Parallel()
	const busy = "OCI runtime pause failed: unable to freeze: unknown"
	for name, c := range map[string]struct {
		message  string
		failures int64
		asked    int64
		kind     sandbox.Kind
	}{
		"for a while": {busy, 2, 3, 0},
		"for good":    {busy, 1000, 5, sandbox.Unavailable},
		"else":        {"no", 1000, 1, sandbox.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			inst := attach(t, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case !strings.HasSuffix(r.URL.Path, "/pause"):
					_, _ = io.WriteString(w, `{"State":{"Running":true}}`)
				case asked.Add(1) <= c.failures:
					w.WriteHeader(http.StatusInternalServerError)
					_, _ = io.WriteString(w, `{"message":"`+c.message+`"}`)
				default:
					w.WriteHeader(http.StatusNoContent)
				}
			})
			p, is := inst.(runtimes.Pauser)
			if !is {
				t.Fatal("it cannot pause")
			}
			err := p.Pause(t.Context())
			if (c.kind == 0) != (err == nil) || err != nil && !errors.Is(err, c.kind) || asked.Load() != c.asked {
				t.Errorf("the engine was asked %d times, and it came to %v", asked.Load(), err)
			}
		})
	}
}

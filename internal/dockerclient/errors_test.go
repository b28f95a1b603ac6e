package dockerclient_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/internal/dockerclient"
	"github.com/caisson-dev/caisson/sandbox"
)

func TestWrapOfAnswers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status  int
		message string
		kind    sandbox.Kind
		hint    string
	}{
		{404, "No such container: x", sandbox.NotFound, ""},
		{409, "the name is in use", sandbox.Conflict, ""},
		{400, "invalid mount", sandbox.Invalid, ""},
		{401, "unauthorized", sandbox.Denied, ""},
		{403, "forbidden", sandbox.Denied, ""},
		{501, "not here", sandbox.Unsupported, ""},
		{503, "shutting down", sandbox.Unavailable, ""},
		{500, "write /var/lib/docker/tmp/x: no space left on device", sandbox.Exhausted, "docker system df"},
		{500, "unlinkat /var/lib/docker/overlay2/x/merged: device or resource busy", sandbox.Internal, "umount"},
		{500, "boom", sandbox.Internal, ""},
	}
	for _, tc := range tests {
		t.Run(fmt.Sprint(tc.status, tc.message), func(t *testing.T) {
			t.Parallel()
			host, _ := fakeEngine(t, "1.41", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(tc.status)
				_, _ = fmt.Fprintf(w, `{"message":%q}`, tc.message)
			})
			api, err := newClient(t, dockerclient.Config{Host: host}).API(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			_, err = api.ContainerInspect(t.Context(), "x")
			err = dockerclient.Wrap(err, "inspect %s", "x")
			wantError(t, err, tc.kind, "inspect x: "+tc.message, tc.hint)
			if strings.Contains(err.Error(), "Error response from daemon") {
				t.Errorf("error keeps the SDK's preamble: %v", err)
			}
		})
	}
}

func TestWrapKeepsWhatIsKnown(t *testing.T) {
	t.Parallel()
	if err := dockerclient.Wrap(nil, "nothing"); err != nil {
		t.Errorf("nil became %v", err)
	}
	classed := sandbox.Errorf(sandbox.Unsupported, "old").WithHint("upgrade")
	if err := dockerclient.Wrap(classed, "start"); sandbox.KindOf(err) != sandbox.Unsupported || sandbox.HintOf(err) != "upgrade" {
		t.Errorf("a classed error became %v, %q", sandbox.KindOf(err), sandbox.HintOf(err))
	}
	if err := dockerclient.Wrap(context.Canceled, "start"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v does not wrap context.Canceled", err)
	}
	if err := dockerclient.Wrap(io.ErrUnexpectedEOF, "read"); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v does not wrap its cause", err)
	}
}

// TestEngineLost loses the engine between two calls.
func TestEngineLost(t *testing.T) {
	t.Parallel()
	host, _ := fakeEngine(t, "1.41", func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_ = conn.Close()
	})
	api, err := newClient(t, dockerclient.Config{Host: host}).API(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = api.ContainerInspect(t.Context(), "x")
	wantError(t, dockerclient.Wrap(err, "inspect x"), sandbox.Unavailable, "inspect x", "start the engine")
}

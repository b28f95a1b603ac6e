package docker

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/volume"
	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/internal/dockerclient/dockertest"
	"github.com/caisson-dev/caisson/sandbox"
)

// A volume gets a quota where the engine has them. One that has none is asked
// once, and what holds a workspace is told as it is.
func TestQuota(t *testing.T) {
	t.Parallel()
	for _, has := range []bool{true, false} {
		var asked []string
		made := map[string]volume.Volume{}
		engine := dockertest.Fake(t, "1.41", func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				v, ok := made[r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]]
				if !ok {
					w.WriteHeader(http.StatusNotFound)
				}
				_ = json.NewEncoder(w).Encode(v)
				return
			}
			var ask volume.CreateOptions
			if err := json.NewDecoder(r.Body).Decode(&ask); err != nil {
				t.Error(err)
			}
			asked = append(asked, ask.Name+" "+ask.DriverOpts["size"])
			if !has && ask.DriverOpts != nil {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, `{"message":"create x: quota size requested but no quota support"}`)
				return
			}
			made[ask.Name] = volume.Volume{Name: ask.Name, Options: ask.DriverOpts}
			w.WriteHeader(http.StatusCreated)
			_ = json.NewEncoder(w).Encode(made[ask.Name])
		})
		r, err := New(Config{Engine: engine, Agent: "/agent", Base: "/tmp/x"})
		if err != nil {
			t.Fatal(err)
		}
		api, err := engine.API(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "caisson-up-b"} {
			if _, err := r.newVolume(t.Context(), api, name, nil, 4*sandbox.KiB); err != nil {
				t.Fatal(err)
			}
		}
		want, by := []string{"a 4096", "caisson-up-b 4096"}, sandbox.HeldByFileSystem
		if !has {
			want, by = slices.Insert([]string{"a ", "caisson-up-b "}, 0, "a 4096"), sandbox.HeldByAgent
		}
		if diff := cmp.Diff(want, asked); diff != "" {
			t.Errorf("quotas %v: -want +got\n%s", has, diff)
		}
		for w, want := range map[*sandbox.Workspace]sandbox.HeldBy{
			{Kind: sandbox.WorkspaceVolume, Source: "a"}:             by,
			{Kind: sandbox.WorkspaceOverlay, Source: "caisson-ws-b"}: by,
			{Kind: sandbox.WorkspaceVolume, Source: "c"}:             "",
			{Kind: sandbox.WorkspaceTmpfs}:                           sandbox.HeldByFileSystem,
			{Kind: sandbox.WorkspaceHost, Source: "/srv"}:            "",
		} {
			if got, err := r.HeldBy(t.Context(), *w); got != want || err != nil {
				t.Errorf("quotas %v: %+v is held by %q, want %q, %v", has, *w, got, want, err)
			}
		}
	}
}

// A volume that a container holds which is not listed yet is removed once that
// is over; one that a listed container holds is a conflict at once.
func TestRemoveVolumeInUse(t *testing.T) {
	t.Parallel()
	for _, listed := range []bool{false, true} {
		removals := 0
		engine := dockertest.Fake(t, "1.41", func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method != http.MethodDelete && listed:
				_, _ = io.WriteString(w, `[{"Id":"x"}]`)
			case r.Method != http.MethodDelete:
				_, _ = io.WriteString(w, `[]`)
			default:
				if removals++; removals < 3 {
					w.WriteHeader(http.StatusConflict)
					_, _ = io.WriteString(w, `{"message":"volume is in use - [x]"}`)
				}
			}
		})
		api, err := engine.API(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		err = removeVolume(t.Context(), api, "caisson-ws-a")
		if listed && (!errors.Is(err, sandbox.Conflict) || removals != 1) || !listed && (err != nil || removals != 3) {
			t.Errorf("listed %t: %v after %d tries", listed, err, removals)
		}
	}
}

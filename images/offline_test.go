package images_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/docker"
	"github.com/caisson-dev/caisson/images"
	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/sandbox"
)

// TestOffline makes the three languages on an engine that reaches no network: a
// stand-in for mmdebstrap makes their trees. That no registry answers is found
// out once, within five seconds, and said in one line.
func TestOffline(t *testing.T) {
	kit := enginetest.NewRemote(t)
	tools, runs := t.TempDir(), filepath.Join(t.TempDir(), "runs")
	tool := fmt.Sprintf("#!/bin/sh\necho run >> %s\ncd %s && mkdir -p usr && echo x > usr/x && touch -d 2020-01-01 usr/x && tar -c usr\n", runs, t.TempDir())
	if err := os.WriteFile(filepath.Join(tools, "mmdebstrap"), []byte(tool), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", tools+":"+os.Getenv("PATH"))
	var mu sync.Mutex
	said := map[string]time.Duration{}
	var lines []string
	began := time.Now()
	store, err := images.New(images.Config{Engine: kit.Engine, StateDir: t.TempDir(), DockerConfig: t.TempDir(), Dockerfiles: docker.Languages, Progress: func(p sandbox.Progress) {
		mu.Lock()
		defer mu.Unlock()
		if p.Text != "" {
			said[p.Text] = time.Since(began)
			lines = append(lines, p.Ref+": "+p.Text)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	for language, want := range map[string]string{"python": "caisson/python:3.11", "node": "caisson/node:18", "shell": "caisson/shell:12"} {
		l, err := store.Language(language)
		if err != nil {
			t.Fatal(err)
		}
		if img, err := store.Ensure(t.Context(), l.Image); err != nil || img.Ref != want {
			t.Errorf("%s: %+v, %v; want %s", language, img, err, want)
		}
	}
	found := 0
	for text, at := range said {
		if strings.Contains(text, "does not answer") {
			found++
			if at > time.Minute || !strings.Contains(text, "docker.io") || !strings.Contains(text, "assembling from Debian packages instead") {
				t.Errorf("after %s: %q", at, text)
			}
		}
	}
	if all := strings.Join(lines, "\n"); found != 1 || strings.Count(all, "does not answer") != 1 {
		t.Errorf("that it does not answer is said otherwise than once:\n%s", all)
	}
	// One base for all three, and what two of them add.
	if data, err := os.ReadFile(runs); err != nil || strings.Count(string(data), "run") != 3 {
		t.Errorf("the tool ran %q, %v", data, err)
	}
}

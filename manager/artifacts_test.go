package manager_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/sandbox"
)

type taken struct {
	bytes.Buffer
	closed bool
}

func (t *taken) Close() error { t.closed = true; return nil }

// TestArtifacts collects files of a run: into the Result, and elsewhere.
func TestArtifacts(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.create(t, sandbox.SessionOptions{Name: "work"})
	script := `mkdir -p out/deep artifacts; echo 1 > out/a.txt; printf '\0\377' > out/deep/b.png; ln -s /etc/passwd out/link
mkfifo out/pipe; echo 2 > top.txt; echo '{}' > artifacts/r.json; truncate -s 9M out/big`
	for _, tc := range []struct {
		patterns []string
		want     string
	}{
		{nil, "artifacts/r.json 3 application/json"},
		{[]string{"out/**"}, "out/a.txt 2 text/plain; out/big 9437184 - left; out/deep/b.png 2 image/png"},
		{[]string{"/workspace/out/*"}, "out/a.txt 2 text/plain; out/big 9437184 - left"},
		{[]string{"*.txt", "**/*.png"}, "out/deep/b.png 2 image/png; top.txt 2 text/plain"},
		{[]string{"none/**", "top.txt/x"}, ""},
		{[]string{}, ""},
	} {
		// What it has not changed is no artifact of its by default.
		run := sandbox.Run{Command: []string{"sh", "-c", "rm -rf out artifacts; " + script}, Artifacts: tc.patterns}
		res, err := p.ExecIn(t.Context(), "work", run, sandbox.Streams{})
		if err != nil || res.Code != 0 || res.ArtifactsError != "" {
			t.Fatalf("%q: %+v, %v, %s %s", tc.patterns, res.Exit, err, res.ArtifactsError, res.Stderr)
		}
		var got []string
		for _, a := range res.Artifacts {
			kind, _, _ := strings.Cut(a.Type, ";")
			if kind == "" {
				kind = "-"
			}
			line := strings.Join([]string{a.Path, sizeOf(a.Size), kind}, " ")
			if a.Left != "" {
				line += " left"
			} else if int64(len(a.Data)) != a.Size {
				t.Errorf("%s has %d bytes", line, len(a.Data))
			}
			got = append(got, line)
		}
		slices.Sort(got)
		if list := strings.Join(got, "; "); list != tc.want {
			t.Errorf("%q: %s, want %s", tc.patterns, list, tc.want)
		}
	}
	if res, err := p.ExecIn(t.Context(), "work", sandbox.Run{Command: []string{"true"}}, sandbox.Streams{}); err != nil || len(res.Artifacts) > 0 {
		t.Errorf("of a run that made none: %+v, %v", res.Artifacts, err)
	}
	// Elsewhere, without a bound; a taker that fails does not fail the run.
	got := map[string]*taken{}
	take := func(a sandbox.Artifact) (io.WriteCloser, error) {
		if a.Path == "out/a.txt" {
			return nil, errors.New("no room for a.txt")
		}
		got[a.Path] = &taken{}
		return got[a.Path], nil
	}
	res, err := p.ExecIn(t.Context(), "work", sandbox.Run{Command: []string{"true"}, Artifacts: []string{"out/**"}}, sandbox.Streams{Artifact: take})
	if err != nil || len(res.Artifacts) != 3 || !strings.Contains(res.ArtifactsError, "no room") {
		t.Fatalf("%+v, %v", res, err)
	}
	if b := got["out/big"]; b == nil || b.Len() != 9<<20 || !b.closed {
		t.Errorf("%v", got)
	}
	for _, bad := range []string{"", "../x", "/etc/*", "a["} {
		if _, err := p.ExecIn(t.Context(), "work", sandbox.Run{Command: []string{"true"}, Artifacts: []string{bad}}, sandbox.Streams{}); !errors.Is(err, sandbox.Invalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	// A sandbox of its own too.
	one, err := p.Run(t.Context(), sandbox.Run{Command: []string{"sh", "-c", "mkdir artifacts; echo hi > artifacts/x"}}, sandbox.Streams{})
	if err != nil || len(one.Artifacts) != 1 || string(one.Artifacts[0].Data) != "hi\n" {
		t.Errorf("%+v, %v", one, err)
	}
}

func sizeOf(n int64) string { return strconv.FormatInt(n, 10) }

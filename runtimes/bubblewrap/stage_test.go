//go:build linux

package bubblewrap_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/sandbox"
)

// Whatever of the host is mounted in a sandbox is read-only, with all that is mounted
// below it, and gives neither devices nor rights.
func TestMountsAreClosed(t *testing.T) {
	t.Parallel()
	both(t, mountsAreClosed)
}

func mountsAreClosed(t *testing.T) {
	p := newPlace(t)
	m := p.manager(t, p.runtime(t, "", p.agent))
	res, err := m.Run(t.Context(), sandbox.Run{Language: "shell", Command: []string{"cat", "/proc/self/mountinfo"}}, sandbox.Streams{})
	if err != nil || res.Code != 0 {
		t.Fatalf("%v, %+v, %s", err, res.Exit, res.Stderr)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(res.Stdout)) {
		fields := strings.Fields(line)
		at, options := fields[4], strings.Split(fields[5], ",")
		_, first, _ := strings.Cut(at, "/")
		first, _, _ = strings.Cut(first, "/")
		if !slices.Contains([]string{"", "usr", "etc", "sys"}, first) && at != "/run/caisson/agent" {
			continue // it is the sandbox's own
		}
		seen[first] = true
		for _, want := range []string{"ro", "nosuid", "nodev"} {
			if !slices.Contains(options, want) {
				t.Errorf("%s is mounted with %q", at, options)
			}
		}
	}
	for _, first := range []string{"", "usr", "etc"} {
		if !seen[first] {
			t.Errorf("nothing is mounted at /%s:\n%s", first, res.Stdout)
		}
	}
}

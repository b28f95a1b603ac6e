//go:build linux

package pid1

import "testing"

// TestBelow: the workspace has many names, and nothing outside of it has one.
func TestBelow(t *testing.T) {
	t.Parallel()
	for p, want := range map[string]string{
		"": ".", ".": ".", "/workspace": ".", "/workspace/": ".", "/workspace//": ".", "/workspace/.": ".", "a/..": ".",
		"a": "a", "a/": "a", "./a//b": "a/b", "/workspace/a": "a", "/workspace//a": "a", "workspace": "workspace", "/workspace/workspace": "workspace",
		"/": "", "..": "", "../a": "", "a/../..": "", "/workspace/..": "", "/workspace/../a": "", "/workspaces": "", "/etc": "",
	} {
		if got, err := below(p); got != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q, %v; want %q", p, got, err, want)
		}
	}
}

package sandbox_test

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/caisson-dev/caisson/sandbox"
)

// TestEventKinds has every kind in the list: what is not could not be asked for.
func TestEventKinds(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("event.go")
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	for _, m := range regexp.MustCompile(`(?m)^\tEvent\w+ += "(.*?)"`).FindAllSubmatch(source, -1) {
		named = append(named, string(m[1]))
	}
	if len(named) == 0 || !slices.Equal(named, sandbox.EventKinds()) {
		t.Errorf("there are %q, and listed are %q", named, sandbox.EventKinds())
	}
}

package recipe_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/internal/recipe"
)

// TestScanner: what tests and benchmarks build is what make does.
func TestScanner(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	made := regexp.MustCompile(`(?s)\nOURS := (\S+)\n.*?SCANNER := CGO_ENABLED=1 \$\(GO\) build (.*?)\n\n`).FindStringSubmatch(string(text) + "\n\n")
	if made == nil {
		t.Fatal("the Makefile says nowhere how the scanner is built")
	}
	plain := strings.NewReplacer("$(OURS)", made[1], "\\\n", " ", "'", "", `"`, "", "=", " ")
	want := strings.Fields(plain.Replace(made[2]))
	got := strings.Fields(plain.Replace(strings.Join(recipe.Scanner, " ")))
	if !slices.Equal(got, want) {
		t.Errorf("%q\nmake:  %q", got, want)
	}
}

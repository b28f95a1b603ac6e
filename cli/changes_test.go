package cli

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/sandbox"
)

// A terminal gets colours, and no escape of the files' own in either case.
func TestPrintDiffColours(t *testing.T) {
	t.Parallel()
	d := sandbox.FileDiff{
		FileChange: sandbox.FileChange{Path: "a\x1b[2Jb", Op: sandbox.OpModified},
		Unified:    "@@ -1 +1 @@\n-old\x1b[31m\n+new\n same\n",
	}
	var plainly, coloured bytes.Buffer
	printDiff(&plainly, d, false)
	printDiff(&coloured, d, true)
	if strings.Contains(plainly.String(), "\x1b") {
		t.Errorf("without colours: %q", plainly.String())
	}
	bare := coloured.String()
	for _, c := range []string{bold, red, green, cyan} {
		if !strings.Contains(bare, c) {
			t.Errorf("no %q in %q", c, coloured.String())
		}
	}
	for _, c := range []string{bold, red, green, cyan, plain} {
		bare = strings.ReplaceAll(bare, c, "")
	}
	if bare != plainly.String() {
		t.Errorf("colours changed the text: %q, not %q", bare, plainly.String())
	}
	if !strings.Contains(coloured.String(), green+"+new"+plain) || strings.Contains(coloured.String(), green+" same") {
		t.Errorf("the wrong lines are coloured: %q", coloured.String())
	}
}

func TestColoured(t *testing.T) {
	t.Parallel()
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	none := func(string) (string, bool) { return "", false }
	for name, cfg := range map[string]Config{
		"a buffer": {IO: IOStreams{Out: &bytes.Buffer{}}, LookupEnv: none},
		"a file":   {IO: IOStreams{Out: file}, LookupEnv: none},
	} {
		if colored(cfg) {
			t.Errorf("%s gets colours", name)
		}
	}
}

package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/testloop"
)

// TestResumed keeps whole results, and takes out half a line and errors, so that
// their problems run again.
func TestResumed(t *testing.T) {
	t.Parallel()
	const good, bad = `{"id":"a","all_passed":true}` + "\n", `{"id":"7","all_passed":false}` + "\n"
	const broken = `{"id":"b","all_passed":false,"error":{"kind":"unavailable","message":"m"}}` + "\n"
	for name, tt := range map[string]struct {
		before, after string
		count, passed int
		err           error
	}{
		"nothing":            {"", "", 0, 0, nil},
		"whole":              {good + bad, good + bad, 2, 1, nil},
		"half a line":        {good + `{"id":"7","all_pa`, good, 1, 1, nil},
		"a line but its end": {good + strings.TrimSpace(bad), good, 1, 1, nil},
		"an error":           {good + broken + bad, good + bad, 2, 1, nil},
		"twice":              {good + good, good, 1, 1, nil},
		"something else":     {"name,score\n", "name,score\n", 0, 0, sandbox.Invalid},
	} {
		file := filepath.Join(t.TempDir(), "results.jsonl")
		if err := os.WriteFile(file, []byte(tt.before), 0o600); err != nil {
			t.Fatal(err)
		}
		o := batchOptions{output: file, resume: true}
		out, stand, err := o.openOutput(nil)
		if !errors.Is(err, tt.err) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			if err := errors.Join(writeLine(out, testloop.Judged{ID: "new"}), out.Close()); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		rest, added := strings.CutPrefix(string(got), tt.after)
		if !added || (tt.err == nil) != strings.HasPrefix(rest, `{"id":"new",`) || tt.err == nil && (stand.count != tt.count || stand.passed != tt.passed) {
			t.Errorf("%s: %q, %+v", name, got, stand)
		}
	}
}

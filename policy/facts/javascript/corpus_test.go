package javascript_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/caisson-dev/caisson/policy/facts"
)

// Every evasion of the development corpus must leave a fact that rules can
// hold on to: code that was unfolded, a command, or data that is sent.
func TestCorpus(t *testing.T) {
	t.Parallel()
	f, err := os.Open(filepath.Join("..", "..", "..", "..", "shared", "corpora", "evasions_dev.jsonl"))
	if err != nil {
		t.Skip("no corpus: ", err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var row struct{ ID, Language, Code string }
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		if row.Language != string(facts.JavaScript) {
			continue
		}
		t.Run(row.ID, func(t *testing.T) {
			t.Parallel()
			d := scan(t, facts.JavaScript, row.Code)
			sent := false
			for _, n := range d.Net {
				sent = sent || len(n.Carries) > 0
			}
			if len(d.Dynamic) == 0 && len(d.Commands) == 0 && !sent {
				t.Errorf("%s: no fact of weight in %v", row.Code, d)
			}
		})
	}
}

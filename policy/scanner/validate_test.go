package scanner

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/policy/facts"
)

// An answer is counted before it is believed: what it would be in memory is many
// times what was sent.
func TestSwellingAnswersAreNotDecoded(t *testing.T) {
	body := []byte(`{"document":{"calls":[` + strings.Repeat("{},", MaxAnswer/4) + `{}]}}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := decode(body, facts.Limits{})
	runtime.ReadMemStats(&after)
	if err == nil {
		t.Fatal("decoded")
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20 {
		t.Errorf("%d bytes were used to refuse it", used)
	}
}

func TestObjectsAreCounted(t *testing.T) {
	value := map[string]any{"{": `"{\`, `\"{`: []any{map[string]any{}, "{{", `\\`, map[string]any{"x": "{"}}}
	body, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if n := objects(body); n != 3 {
		t.Errorf("%d objects in %s", n, body)
	}
}

// What the limit on facts allows passes, with more about each than most have.
func TestFullAnswersAreDecoded(t *testing.T) {
	redirs := make([]facts.Redir, 6)
	doc := &facts.Document{Commands: make([]facts.Command, 2000)}
	for i := range doc.Commands {
		doc.Commands[i] = facts.Command{Name: "{", Values: map[string]string{"o": `"{`}, Redirs: redirs}
	}
	body, err := json.Marshal(Answer{ID: 1, Document: doc})
	if err != nil {
		t.Fatal(err)
	}
	a, err := decode(body, facts.Limits{Facts: 2000})
	if err != nil || len(a.Document.Commands) != 2000 {
		t.Fatalf("%v", err)
	}
}

package onedoc

import (
	"strings"
	"testing"
)

func TestDecode(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a: 1\n":             "",
		"---\na: 1\n...\n":   "",
		"":                   "",
		"# nothing\n":        "",
		"a: 1\n---\na: 2\n":  "line 2: a further document begins",
		"a: 1\n---\n":        "a further document begins",
		"a: 1\n---\n[\n":     "line",
		"b: 1\n":             "field b not found",
		"a: 1\n--- \nb: 2\n": "a further document begins",
	} {
		var in struct{ A int }
		err := Decode([]byte(text), &in)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

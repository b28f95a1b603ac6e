package tables

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"reflect"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/caisson-dev/caisson/policies"
)

// plain is what YAML's own way gives, with keys as text.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = plain(e)
		}
	case map[any]any:
		m := map[string]any{}
		for k, e := range v {
			m[fmt.Sprint(k)] = plain(e)
		}
		return m
	case []any:
		for i, e := range v {
			v[i] = plain(e)
		}
	}
	return v
}

// TestToJSON: it is what YAML's own values are as JSON.
func TestToJSON(t *testing.T) {
	texts := map[string]string{
		"empty": "", "null": "~", "text": "a b", "quoted": `"\t\"\\é\x01"`, "numbers": "[1, 0x10, 1.5, -3, 1e3, 0o17]", "booleans": "[true, False, yes, no, on]",
		"keys": "{1: a, true: b, 1.5: c, ~: d, 7z: e, no: f}", "aliases": "a: &x {b: [1, 2]}\nc: *x\nd: [*x, *x]", "nested": "a:\n  - b: {}\n    c: []\n  - |\n    two\n    lines\n",
		"markup": `["<a>&", "1", "null", "é漢"]`,
	}
	err := fs.WalkDir(policies.FS, "data", func(name string, d fs.DirEntry, err error) error {
		if err == nil && path.Ext(name) == ".yaml" {
			var text []byte
			text, err = fs.ReadFile(policies.FS, name)
			texts[name] = string(text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range texts {
		var doc, want, got any
		if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
			t.Fatal(err)
		}
		j, err := json.Marshal(plain(doc))
		if err != nil {
			t.Fatal(err)
		}
		own, err := toJSON([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := errors.Join(json.Unmarshal(j, &want), json.Unmarshal(own, &got)); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, own)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %s, not %s", name, own, j)
		}
	}
}

func TestToJSONRefuses(t *testing.T) {
	// Twenty-five lists, each twice what the one before comes to.
	bomb := "a0: &x0 [x]\n"
	for i := range 25 {
		bomb += fmt.Sprintf("a%d: &x%d [*x%d, *x%d]\n", i+1, i+1, i, i)
	}
	for text, want := range map[string]string{
		bomb:                        "aliases",
		"{a: 1, a: 2}":              "twice",
		"a: &x [*x]":                "",
		"{[1]: 2}":                  "plain word",
		"a: &x {b: 1}\nc: {<<: *x}": "plain word",
		strings.Repeat("[", 100) + strings.Repeat("]", 100): "deep",
		"a: [": "",
	} {
		if j, err := toJSON([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s, %v", text, j, err)
		}
	}
}

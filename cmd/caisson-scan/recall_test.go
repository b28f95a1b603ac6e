package main

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"

	"github.com/caisson-dev/caisson/policy"
	"github.com/caisson-dev/caisson/sandbox"
)

// sample is a line of testdata: a capability, however it is spelt, or an
// everyday program.
type sample struct {
	Language string `json:"language"`
	Code     string `json:"code"`
}

func programs(t *testing.T, name string) []sample {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []sample
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var p sample
		if err := json.Unmarshal(sc.Bytes(), &p); err != nil {
			t.Fatalf("%s: %v", sc.Text(), err)
		}
		out = append(out, p)
	}
	if len(out) < 50 {
		t.Fatalf("%s has %d programs", name, len(out))
	}
	return out
}

// TestHarmful asks about every way to do harm that testdata lists.
func TestHarmful(t *testing.T) {
	p := newPolicy(t)
	for _, c := range programs(t, "testdata/harmful.jsonl") {
		d := p.Judge(t.Context(), policy.Request{Language: c.Language, Code: []byte(c.Code)})
		if d.Level < sandbox.High {
			t.Errorf("%s %q is %s: %v", c.Language, c.Code, d.Level, d.Findings)
		}
	}
}

// TestBenign does not ask about everyday programs.
func TestBenign(t *testing.T) {
	p := newPolicy(t)
	for _, c := range programs(t, "testdata/benign.jsonl") {
		d := p.Judge(t.Context(), policy.Request{Language: c.Language, Code: []byte(c.Code)})
		if d.Level >= sandbox.High {
			t.Errorf("%s %q is %s: %v", c.Language, c.Code, d.Level, d.Findings)
		}
	}
}

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

// confusables are characters that look like a letter of "eval".
var confusables = map[byte]string{
	'e': "еҽ℮ℯⅇｅ𝐞𝑒𝒆𝓮𝔢𝕖𝖊𝖾𝗲𝘦𝙚𝚎ꬲ",
	'v': "νѵⅴｖ𝐯𝑣𝒗𝓋𝓿𝔳𝕧𝖛𝗏𝘃𝘷𝙫𝚟ᴠꮩ",
	'a': "аαａɑ𝐚𝑎𝒂𝒶𝓪𝔞𝕒𝖆𝖺𝗮𝘢𝙖𝚊⍺",
	'l': "ӏｌⅼℓ𝐥𝑙𝒍𝓁𝓵𝔩𝕝𝖑𝗅𝗹𝘭𝙡𝚕ⵏꓲІⲓ",
}

// TestConfusables asks about every spelling of eval that passes for it, in
// both languages that have it.
func TestConfusables(t *testing.T) {
	p := newPolicy(t)
	check := func(word string) {
		t.Helper()
		for lang, code := range map[string]string{"python": word + "(input())\n", "javascript": word + "(process.argv[2])\n"} {
			if d := p.Judge(t.Context(), policy.Request{Language: lang, Code: []byte(code)}); d.Level < sandbox.High {
				t.Errorf("%s %q (%+q) is %s", lang, word, word, d.Level)
			}
		}
	}
	for i := range len("eval") {
		for _, r := range confusables["eval"[i]] {
			check("eval"[:i] + string(r) + "eval"[i+1:])
		}
	}
	for n := range 16 { // all letters at once
		word := ""
		for i := range len("eval") {
			all := []rune(confusables["eval"[i]])
			word += string(all[n%len(all)])
		}
		check(word)
	}
}

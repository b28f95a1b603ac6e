package main

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/caisson-dev/caisson/policy"
	"github.com/caisson-dev/caisson/sandbox"
)

// sample is a line of testdata: a capability, however it is spelt, or an
// everyday program.
type sample struct {
	ID       string `json:"id"`
	Language string `json:"language"`
	Code     string `json:"code"`
	// Rule must find it, where it is harmful.
	Rule string `json:"rule"`
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

// TestHarmful asks about every way to do harm that testdata lists, by the rule
// that each names.
func TestHarmful(t *testing.T) {
	p := newPolicy(t)
	for _, c := range programs(t, "testdata/harmful.jsonl") {
		d := p.Judge(t.Context(), policy.Request{Language: c.Language, Code: []byte(c.Code)})
		if !slices.ContainsFunc(d.Findings, func(f sandbox.Finding) bool { return f.ID == c.Rule && f.Severity >= sandbox.High }) {
			t.Errorf("%s %q is %s, and not by %s: %v", c.Language, c.Code, d.Level, c.Rule, d.Findings)
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

// TestEveryday asks about few programs as models write them for their users, and
// denies none, in the sandbox that caisson makes where nobody asks for another.
func TestEveryday(t *testing.T) {
	const most = 2.0 // percent
	p := newPolicy(t)
	n, asked := 0, []string{}
	for _, file := range []string{"python", "javascript", "shell"} {
		for _, c := range programs(t, "../../policies/testdata/everyday/"+file+".jsonl") {
			n++
			d := p.Contain(t.Context(), p.Judge(t.Context(), policy.Request{Language: c.Language, Code: []byte(c.Code)}), sandbox.Walls)
			switch d.Verdict {
			case sandbox.Allow:
			case sandbox.Ask:
				asked = append(asked, c.ID)
			default:
				t.Errorf("%s: %s: %+v", c.ID, d.Verdict, d.Findings)
			}
		}
	}
	if n < 300 || float64(len(asked)) > most/100*float64(n) {
		t.Errorf("%d of %d are asked about: %v", len(asked), n, asked)
	}
}

package swerex

import (
	"errors"
	"testing"
)

func TestDecoded(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ bytes, encoding, onError, want, raises string }{
		{"a\r\nb\rc", "", "", "a\nb\nc", ""},
		{"\xc3\xa4", "utf_8", "strict", "ä", ""},
		{"\xe4", "Latin-1", "", "ä", ""},
		{"a\xff", "", "", "", anyError},
		{"a\xff", "utf-8", "ignore", "a", ""},
		{"a\xff", "utf-8", "replace", "a\uFFFD", ""},
		{"a\xff", "utf-8", "backslashreplace", `a\xff`, ""},
		{"a\xff", "utf-8", "shrug", "", unknownEncoding},
		{"\xc3\xa4", "ascii", "", "", anyError},
		{"a", "klingon", "", "", unknownEncoding},
	} {
		got, err := decoded([]byte(tt.bytes), tt.encoding, tt.onError)
		class := ""
		if r, ok := errors.AsType[*raised](err); ok {
			class = r.class
		}
		if got != tt.want || class != tt.raises {
			t.Errorf("%q in %s, %s: %q, %v", tt.bytes, tt.encoding, tt.onError, got, err)
		}
	}
}

func TestBlank(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]bool{"": true, " \n\t\n": true, "# x": true, " # x\n\n#y": true, "x # y": false, "#x\ny": false} {
		if blank(command) != want {
			t.Errorf("%q", command)
		}
	}
}

// What matches first counts, and what is no pattern of ours is taken as it stands.
func TestFirstMatch(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		shown    string
		expect   []string
		from, to int
		which    string
	}{
		{"a >>> b (Pdb) ", []string{`\(Pdb\) `, ">>> "}, 2, 6, ">>> "},
		{"(?!x) y", []string{"(?!x)"}, 0, 5, "(?!x)"},
		{"nothing", []string{"", "z"}, 0, 0, ""},
	} {
		if from, to, which := firstMatch([]byte(tt.shown), patterns(tt.expect)); from != tt.from || to != tt.to || which != tt.which {
			t.Errorf("%q in %q: %d, %d, %q", tt.expect, tt.shown, from, to, which)
		}
	}
	if got := plainText([]byte("\x1b[?2004h\x1b[1;31mred\x1b[0m\r\n\xff")); got != "red\n\\xff" {
		t.Errorf("%q", got)
	}
}

func TestShellName(t *testing.T) {
	t.Parallel()
	for name, plain := range map[string]bool{"default": true, "a.b-c_1": true, "My Shell": false, "": false, "a/b": false, "-x": false} {
		if got := shellName(name); (got == name) != plain || !plainName().MatchString(got) {
			t.Errorf("%q is %q", name, got)
		}
	}
	if shellName("A") == shellName("B") {
		t.Error("two names are one")
	}
}

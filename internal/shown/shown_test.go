package shown_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/caisson-dev/caisson/internal/shown"
)

func TestShown(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, as, code string }{
		{"print('ä\\n', r'\\d', \"C:\\\\dir\")", "", ""},
		{"\x1b[2J", `\x1b[2J`, ""},
		{`\x1b[2J`, `\\x1b[2J`, ""},
		{`\\x1b`, `\\\\x1b`, ""},
		{"\\\x1b", `\\\x1b`, ""},
		{"\\\xff\xc3\xa4", `\\\xffä`, ""},
		{"\u202e\\u202e", `\u202e\\u202e`, ""},
		{"\U000e0100\\U\u3164\u0085", `\U000e0100\\U\u3164\u0085`, ""},
		{"\uFFFD", "\uFFFD", ""},
		{"\tx\\\t→\\→", `\x09x\\\x09→\→`, `→   x\→   \u2192\\\u2192`},
	} {
		if tt.as == "" {
			tt.as = tt.text
		}
		if tt.code == "" {
			tt.code = tt.as
		}
		if got := shown.Text(tt.text); got != tt.as {
			t.Errorf("%q is shown as %s, not %s", tt.text, got, tt.as)
		}
		if got := shown.Code(tt.text); got != tt.code {
			t.Errorf("in code, %q is shown as %s, not %s", tt.text, got, tt.code)
		}
	}
}

// TestNoTwoLookTheSame shows all short texts of the pieces that matter.
func TestNoTwoLookTheSame(t *testing.T) {
	t.Parallel()
	pieces := []string{`\`, "x", "1b", "u", "202e", "\x1b", "\u202e", "\t", "→", "   ", "\xe2", "\n"}
	for name, show := range map[string]func(string) string{"text": shown.Text, "code": shown.Code} {
		seen, level := map[string]string{}, []string{""}
		for range 4 {
			var next []string
			for _, text := range level {
				for _, p := range pieces {
					next = append(next, text+p)
				}
			}
			for _, text := range next {
				got := show(text)
				if other, ok := seen[got]; ok && other != text {
					t.Fatalf("%s: %q and %q are both shown as %s", name, text, other, got)
				}
				seen[got] = text
				if i := strings.IndexFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
					t.Fatalf("%s: %q is shown as %q", name, text, got)
				}
			}
			level = next
		}
	}
}

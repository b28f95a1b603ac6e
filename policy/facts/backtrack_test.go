package facts_test

import (
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/policy/facts"
)

func TestBacktracks(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 40) + "!"
	for _, tt := range []struct {
		pattern, text string
		want          bool
	}{
		{`^(a+)+$`, long, true},
		{`([a-zA-Z]+)*$`, long, false}, // it matches at the end
		{`^([a-zA-Z]+)*$`, long, true},
		{`^(a|aa)+$`, long, true},
		{`^(\w+\s?)*$`, strings.Repeat("aaaa ", 30) + "!", true},
		{`^(a+)+$`, "aaaa!", false},
		{`^(a+)+`, long, false},
		{`^a+$`, long, false},
		{`^(a+,)+$`, strings.Repeat("a,", 40) + "!", false},
		{`^(?:\w+\.)+\w+$`, strings.Repeat("a.", 40) + "!", false},
		{`^(a+)+$`, strings.Repeat("b", 40), false},
		{`^(?=a)(a+)+$`, long, false}, // not of Go's words
	} {
		if got := facts.Backtracks(tt.pattern, tt.text, false, false); got != tt.want {
			t.Errorf("%s on %s: %v", tt.pattern, tt.text, got)
		}
	}
}

package python

import (
	"strconv"
	"strings"
	"testing"
)

// TestAgain: a function that others call is left once it does nothing new, and
// what comes late and is new is seen.
func TestAgain(t *testing.T) {
	t.Parallel()
	const dull = "x = 'a'\ng()\nx = 'b'\ng()\n"
	const start = "import os\nx = ''\ndef f():\n    os.remove(x)\ndef g():\n    f()\n"
	n := 0
	for _, c := range scan(t, start+strings.Repeat(dull, 100)).Calls {
		if c.Name == "os.remove" {
			n++
		}
	}
	if n == 0 || n > 2*sameRuns {
		t.Errorf("followed %d times", n)
	}
	var code strings.Builder
	for i := range 70 {
		code.WriteString("x = 'a" + strconv.Itoa(i) + "'\ng()\n")
	}
	check(t, []example{{"late after the same", start + strings.Repeat(dull, 100) + "x = '/etc/x'\ng()\n", []string{"delete /etc/x"}}})
	check(t, []example{{"late", start + code.String() + "x = '/etc/x'\ng()\n", []string{"delete /etc/x"}}})
}

package python

import (
	"strings"
	"testing"
)

// TestAgain: functions that keep registers are followed until they do nothing
// new, and what comes late and is new is seen.
func TestAgain(t *testing.T) {
	t.Parallel()
	var calls strings.Builder
	for i := range 60 {
		calls.WriteString("    register('a" + strings.Repeat("x", i) + "')\n")
	}
	code := "import os, shutil\nseen = None\ndef register(name):\n    global seen\n    if seen is None:\n        fill()\n    seen.append(name)\n    shutil.which(name)\n" +
		"def fill():\n    global seen\n    seen = []\n    os.environ.get('DISPLAY')\n" + calls.String() + "register('b')\nregister('c')\n"
	d := scan(t, code)
	if d.Meta.Truncated || d.Meta.Nodes > 400_000 {
		t.Errorf("truncated %v after %d nodes", d.Meta.Truncated, d.Meta.Nodes)
	}
	var late strings.Builder
	for i := range 70 {
		late.WriteString("x = 'a" + strings.Repeat("y", i) + "'\ng()\n")
	}
	code = "import os\nx = ''\ndef f():\n    os.remove(x)\ndef g():\n    f()\n" + late.String() + "x = '/etc/x'\ng()\n"
	check(t, []example{{"late", code, []string{"delete /etc/x"}}})
}

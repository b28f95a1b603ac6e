package manager

import "testing"

// TestReplay takes out what a terminal would answer, and nothing else.
func TestReplay(t *testing.T) {
	t.Parallel()
	for _, asks := range []string{
		"\x05", "\x1bZ", "\x1b[c", "\x1b[0c", "\x1b[>c", "\x1b[=0c", "\x1b[5n", "\x1b[6n", "\x1b[?6n", "\x1b[?2026$p", "\x1b[4$p", "\x1b[x",
		"\x1b[>q", "\x1b[>0q", "\x1b[?u", "\x1b[?1;1;0S", "\x1b[14t", "\x1b[18t", "\x1b[21t", "\x1b[1;1;1;1;1;1*y", "\x1b[1$w", "\x1b['|",
		"\x1b]10;?\x07", "\x1b]11;?\x1b\\", "\x1b]4;1;?\x07", "\x1b]4;1;?;2;?\x07", "\x1b]52;c;?\x07", "\x1bP$qm\x1b\\", "\x1bP+q544e\x1b\\", "\x1b_Gi=31,a=q;AAAA\x1b\\",
	} {
		if shown, rest := replayOf([]byte("a"+asks+"b"), false); string(shown) != "ab" || rest != 0 {
			t.Errorf("%q is shown as %q, %d", asks, shown, rest)
		}
	}
	for _, stays := range []string{
		"plain\r\n", "é世", "\x1b[31mred\x1b[0m", "\x1b[2J\x1b[H", "\x1b[?1049h", "\x1b[2 q", "\x1b[u", "\x1b[3S", "\x1b[22;0t", "\x1b]0;why? so\x07", "\x1b]8;;http://x/?q\x1b\\",
		"\x1b[1;2r", "\x1b(B", "\x1b[4h",
	} {
		if shown, rest := replayOf([]byte(stays), false); string(shown) != stays || rest != 0 {
			t.Errorf("%q is shown as %q, %d", stays, shown, rest)
		}
	}
	for _, half := range []string{"\x1b", "\x1b[", "\x1b[?6", "\x1b]11;?", "\x1b]11;?\x1b", "\x1bP$q"} {
		if shown, rest := replayOf([]byte("x"+half), false); string(shown) != "x" || rest != len(half) {
			t.Errorf("%q at the end is shown as %q, %d", half, shown, rest)
		}
	}
	if shown, _ := replayOf([]byte("1;31mhalf\r\nwhole"), true); string(shown) != "\nwhole" {
		t.Errorf("a beginning that was cut is shown as %q", shown)
	}
}

package gate

import (
	"slices"
	"strings"
	"testing"
)

// TestEarlier has the texts of a shell that leave something in it, in their order, and
// the newest of them where they are many; asked again it says the same of more.
func TestEarlier(t *testing.T) {
	t.Parallel()
	large := "x=" + strings.Repeat("1", mostEarlier/3)
	var k keeping
	for _, c := range []struct {
		texts []string
		want  string
	}{
		{nil, ""},
		{[]string{"true", "ls"}, ""},
		{[]string{"x=1", "true", "cd /tmp"}, "x=1\ncd /tmp\n"},
		{[]string{"x=1", "true", "cd /tmp", "ls", "true", "f() { true; }"}, "x=1\ncd /tmp\nf() { true; }\n"},
		{[]string{"a=1", large, large, "true", "b=1"}, "a=1\n" + large + "\n" + large + "\nb=1\n"},
		{[]string{"a=1", large, large, large, "b=1"}, large + "\n" + large + "\nb=1\n"},
	} {
		for range 2 {
			if got := string(k.earlier(c.texts)); got != c.want {
				t.Errorf("%.40q: %.40q, want %.40q", c.texts, got, c.want)
			}
		}
	}
	if is, known := k.known["true"]; !known || is {
		t.Error("it is not remembered that true keeps nothing")
	}
}

// TestKeepingIsBounded has no more of texts be remembered than there may.
func TestKeepingIsBounded(t *testing.T) {
	t.Parallel()
	var k keeping
	for i := range 10 {
		text := strings.Repeat(string(rune('a'+i)), mostKeeping/8+i)
		for range 2 {
			if k.of(text) {
				t.Fatalf("%d: it keeps something", i)
			}
		}
		size := 0
		for text := range k.known {
			size += len(text)
		}
		if size != k.size || size > mostKeeping {
			t.Fatalf("%d: %d bytes, counted %d", i, size, k.size)
		}
	}
	if !k.of("x=1") || !slices.Equal(k.earlier([]string{"x=1"}), []byte("x=1\n")) {
		t.Error("x=1 keeps nothing")
	}
}

package manager

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/sandbox"
)

// TestExpect has what the caller gives come first, and then an answer to each question,
// in whatever pieces and on whichever output it comes: once where that is asked for.
func TestExpect(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	s, finish := expecting([]sandbox.Expect{{Pattern: "Sure[?]", Reply: "yes\n", Once: true}, {Pattern: "Name: $", Reply: "Ada\n"}},
		sandbox.Streams{Stdin: strings.NewReader("given\n"), Stdout: &out, Stderr: &errs})
	for _, piece := range []struct {
		to   io.Writer
		text string
	}{{s.Stdout, "Sure? Su"}, {s.Stdout, "re? "}, {s.Stderr, "Na"}, {s.Stdout, "me: "}, {s.Stderr, "me: "}, {s.Stderr, "Name: "}, {s.Stdout, "Sure?"}} {
		if _, err := io.WriteString(piece.to, piece.text); err != nil {
			t.Fatal(err)
		}
	}
	const want = "given\nyes\nAda\nAda\n"
	answers := make([]byte, len(want))
	if _, err := io.ReadFull(s.Stdin, answers); err != nil || string(answers) != want {
		t.Errorf("it reads %q, not %q, %v", answers, want, err)
	}
	finish()
	if b, err := io.ReadAll(s.Stdin); len(b) > 0 {
		t.Errorf("and then %q, %v", b, err)
	}
	if out.String() != "Sure? Sure? me: Sure?" || errs.String() != "Name: Name: " {
		t.Errorf("the caller gets %q and %q", out.String(), errs.String())
	}
}

package lazyregexp_test

import (
	"testing"

	"github.com/caisson-dev/caisson/internal/lazyregexp"
)

func TestNew(t *testing.T) {
	digits := lazyregexp.New(`\d+`)
	first := digits()
	if got := first.FindString("a 12"); got != "12" {
		t.Errorf("got %q", got)
	}
	if digits() != first {
		t.Error("it was compiled twice")
	}
}

// TestWrong: nothing happens to one that is wrong before it is used.
func TestWrong(t *testing.T) {
	wrong := lazyregexp.New(`(`)
	defer func() {
		if recover() == nil {
			t.Error("it was compiled")
		}
	}()
	wrong()
}

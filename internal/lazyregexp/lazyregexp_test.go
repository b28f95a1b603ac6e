package lazyregexp_test

import (
	"testing"

	"github.com/caisson-dev/caisson/internal/lazyregexp"
)

func TestNew(t *testing.T) {
	digits := lazyregexp.New(`\d+`)
	if got := digits().FindString("a 12"); got != "12" || digits() != digits() {
		t.Errorf("got %q", got)
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

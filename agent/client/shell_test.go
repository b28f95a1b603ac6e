package client

import (
	"fmt"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/agent/wire"
)

// TestRemember has a shell run more texts than are remembered: the oldest go, and what
// was handed out before stays as it is.
func TestRemember(t *testing.T) {
	t.Parallel()
	h := Held{Runs: 1, Dir: "/workspace", Texts: []string{"first"}}
	was := h
	long := strings.Repeat("x", wire.MaxHeld/4)
	for i := range 10 {
		h = h.Remember(fmt.Sprint(i)+long, "/tmp")
	}
	size := 0
	for _, text := range h.Texts {
		size += len(text) + 1
	}
	if h.Runs != 11 || h.Dir != "/tmp" || !h.Forgot || size > wire.MaxHeld || len(h.Texts) != 3 || h.Texts[0][:1] != "7" || h.Texts[2][:1] != "9" {
		t.Errorf("%d runs in %s, %d texts of %d bytes, forgot %v", h.Runs, h.Dir, len(h.Texts), size, h.Forgot)
	}
	if len(was.Texts) != 1 || was.Texts[0] != "first" || was.Forgot {
		t.Errorf("what was before is %+v", was)
	}
	if h = h.Remember(strings.Repeat("y", wire.MaxHeld), ""); len(h.Texts) != 0 || h.Dir != "/tmp" {
		t.Errorf("one that is too long: %d texts in %s", len(h.Texts), h.Dir)
	}
}

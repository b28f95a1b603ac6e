//go:build linux

package pid1

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/agent/wire"
)

// TestListOrder lists execs in the order that they were started in.
func TestListOrder(t *testing.T) {
	t.Parallel()
	a := &Agent{execs: map[string]*exec{}}
	var want, got []string
	for i := range 20 {
		id := strconv.Itoa(i)
		a.execs[id] = &exec{req: &wire.Exec{ID: id}, out: newOutputs(false, false), lease: &lease{}, shownPID: 100 - i, since: time.Unix(int64(i), 0)}
		want = append(want, id)
	}
	infos, _ := a.listed(nil)
	for _, info := range infos {
		got = append(got, info.ID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

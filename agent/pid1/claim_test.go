//go:build linux

package pid1

import (
	"testing"
	"time"

	"github.com/caisson-dev/caisson/agent/wire"
)

// TestStillMeant has the time in which an agent has to be claimed begin anew with
// each Hello that does not claim it.
func TestStillMeant(t *testing.T) {
	t.Parallel()
	a := &Agent{cfg: Config{Unclaimed: time.Hour}, unclaimed: time.NewTimer(time.Hour)}
	a.unclaimed.Stop()
	if no := a.admit(&wire.Hello{Version: wire.Version}); no == nil || no.Kind != "conflict" {
		t.Errorf("an agent that nobody has claimed answers %+v", no)
	}
	if !a.unclaimed.Stop() {
		t.Error("its time does not begin anew")
	}
}

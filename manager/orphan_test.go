package manager

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// Whether something is an orphan depends on what can be known of its holder.
func TestOrphaned(t *testing.T) {
	t.Parallel()
	me, err := ProcessHolder()
	if err != nil {
		t.Skip("no process holders here:", err)
	}
	parts := strings.Split(me, "/")
	boot, ns := parts[0], parts[1]
	child := exec.CommandContext(t.Context(), "true")
	if err := child.Run(); err != nil {
		t.Fatal(err)
	}
	dead := fmt.Sprintf("%s/%s/%d/1", boot, ns, child.Process.Pid)
	old := time.Now().Add(-time.Hour)
	m := &Manager{cfg: Config{Holder: "another name of mine", Alive: HolderAlive, StateID: "here", Now: time.Now}}
	known := sandbox.NewID()
	for _, c := range []struct {
		name string
		h    runtimes.Handle
		want bool
	}{
		{"a live process", runtimes.Handle{Holder: me, Running: true}, false},
		{"a dead process", runtimes.Handle{Holder: dead, Running: true}, true},
		{"a pid that was used again", runtimes.Handle{Holder: boot + "/" + ns + "/1/1"}, true},
		{"another boot, ended", runtimes.Handle{Holder: "boot/" + ns + "/1/1"}, true},
		{"another boot, running", runtimes.Handle{Holder: "boot/" + ns + "/1/1", Running: true}, false},
		{"another pid namespace", runtimes.Handle{Holder: boot + "/other/1/1"}, false},
		{"a name that cannot be read", runtimes.Handle{Holder: "?", Running: false}, false},
		{"a folder just made", runtimes.Handle{Kind: runtimes.KindFolder, Created: time.Now()}, false},
		{"a folder that nobody signed", runtimes.Handle{Kind: runtimes.KindFolder, Created: old}, true},
		{"a volume that the engine made again", runtimes.Handle{Kind: runtimes.KindVolume, Created: old}, true},
		{"a container that nobody signed", runtimes.Handle{Kind: runtimes.KindSandbox, Created: old}, false},
		{"a session's", runtimes.Handle{ID: known, Holder: "state:here"}, false},
		{"a session's that is not remembered", runtimes.Handle{ID: sandbox.NewID(), Holder: "state:here", Running: true}, true},
		{"another state folder's", runtimes.Handle{ID: sandbox.NewID(), Holder: "state:there"}, false},
	} {
		if got := m.orphaned(c.h, map[sandbox.ID]bool{known: true}, map[string]bool{}); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

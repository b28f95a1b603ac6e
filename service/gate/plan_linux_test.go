package gate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/bubblewrap"
	"github.com/caisson-dev/caisson/runtimes/local"
	"github.com/caisson-dev/caisson/runtimes/process"
	"github.com/caisson-dev/caisson/sandbox"
)

// Plans of this host's own processes are kept as well, whatever numbers their users
// have. What rules are told beside the request tells two plans apart.
func TestCleanPlanOfOwnProcesses(t *testing.T) {
	t.Parallel()
	jail, err := bubblewrap.New(bubblewrap.Config{Agent: "/agent", Base: "/run/x", State: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	bare, err := process.New(process.Config{Agent: "/agent", Base: "/run/x", State: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for name, rt := range map[string]runtimes.Runtime{"bubblewrap": jail, "process": bare} {
		dir := t.TempDir()
		judge := func(uid int, wall sandbox.Wall) bool {
			t.Helper()
			plan, err := rt.Plan(t.Context(), sandbox.Spec{
				Image: sandbox.Image{Ref: local.HostImage, ID: "sha256:1"}, Identity: sandbox.Identity{UID: uid, RunnerUID: uid + 1}, Limits: sandbox.DefaultLimits,
			})
			if err != nil {
				t.Fatal(err)
			}
			plan.Walls, plan.NotEnforced = []sandbox.Wall{wall, sandbox.WallRoot, sandbox.WallPrivileges, sandbox.WallLimits}, nil // wherever this runs
			// An ordinary user's sandbox has its user among the arguments; so has this one, whoever runs the test.
			user := fmt.Sprintf(`["--unshare-user","--uid","%d","--gid","%d","--unshare-ipc"`, uid, uid)
			plan.Request = []byte(strings.Replace(string(plan.Request), `["--unshare-ipc"`, user, 1))
			d, loaded := judgedElsewhere(t, dir, plan)
			if d.Verdict != sandbox.Allow {
				t.Fatalf("%s: %+v", name, d)
			}
			return loaded
		}
		if !judge(20000, sandbox.WallNetwork) || judge(31000, sandbox.WallNetwork) {
			t.Errorf("%s: judged anew for other users, or not at first", name)
		}
		if !judge(31000, sandbox.WallEgress) {
			t.Errorf("%s: one with another wall was not judged", name)
		}
	}
}

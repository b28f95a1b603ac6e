package manager_test

import (
	"testing"

	"github.com/caisson-dev/caisson/sandbox"
)

// A path is what the kernel takes it for: dots behind a link lead out of the folder that
// it leads to.
func TestStartByDots(t *testing.T) {
	t.Parallel()
	startsEverywhere(t, startByDots)
}

func startByDots(t *testing.T, on string) {
	j := &judge{deny: []string{"id"}}
	m := startsManager(t, on, j, sandbox.StartsRule{Mode: sandbox.StartsJudge, Goes: true})
	res := mustRun(t, m, shell("ln -s /usr/lib a; mkdir bin; a/../bin/true; echo $?; cp /bin/true bin/id; a/../bin/id; echo $?; (cd bin && ../a/../bin/true; echo $?)\n"))
	if found := j.about("true"); string(res.Stdout) != "0\n126\n0\n" || len(found) != 2 || found[0].Path != "/usr/bin/true" || found[0].Own {
		t.Errorf("%+v %q %q, asked %+v", res.Exit, res.Stdout, res.Stderr, found)
	}
}

package enginetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/caisson-dev/caisson/runtimes/bubblewrap"
	"github.com/caisson-dev/caisson/runtimes/process"
)

// RequireBubblewrap is the variable that, set to 1, makes a missing bwrap a
// failure.
const RequireBubblewrap = "CAISSON_REQUIRE_BUBBLEWRAP"

// Bubblewrap skips a test where the bubblewrap runtime cannot work, with the
// reason, or fails it where it is required.
func Bubblewrap(t testing.TB) {
	t.Helper()
	reason := ""
	if _, err := exec.LookPath("bwrap"); err != nil {
		reason = "needs bwrap (apt-get install bubblewrap): " + err.Error()
	}
	switch {
	case reason == "":
	case os.Getenv(RequireBubblewrap) == "1":
		t.Fatal(reason)
	default:
		t.Skip(reason)
	}
}

// Jail returns a bubblewrap runtime in the kit's own place. The test is skipped
// where it cannot work.
func (k *Kit) Jail(t testing.TB) *bubblewrap.Runtime {
	t.Helper()
	Bubblewrap(t)
	rt, err := bubblewrap.New(bubblewrap.Config{Agent: k.Agent, Base: k.Base, State: filepath.Join(filepath.Dir(k.Base), "jail")})
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

// Unwalled returns a process runtime in the kit's own place.
func (k *Kit) Unwalled(t testing.TB) *process.Runtime {
	t.Helper()
	rt, err := process.New(process.Config{Agent: k.Agent, Base: k.Base, State: filepath.Join(filepath.Dir(k.Base), "unwalled")})
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

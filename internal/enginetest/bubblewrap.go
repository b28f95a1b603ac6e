package enginetest

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/caisson-dev/caisson/runtimes/bubblewrap"
	"github.com/caisson-dev/caisson/runtimes/local"
	"github.com/caisson-dev/caisson/runtimes/process"
	"github.com/caisson-dev/caisson/sandbox"
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

// JailPID is the host's pid of the agent of a sandbox of [Kit.Jail].
func (k *Kit) JailPID(t testing.TB, id sandbox.ID) int {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(k.Base, string(id)+"*", "record.json"))
	if err != nil || len(found) != 1 {
		t.Fatalf("the record of sandbox %s: %q %v", id.Short(), found, err)
	}
	b, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	var rec local.Record
	if err := json.Unmarshal(b, &rec); err != nil || rec.PID <= 0 {
		t.Fatalf("sandbox %s: %+v %v", id.Short(), rec, err)
	}
	return rec.PID
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

package enginetest

import (
	"os"
	"os/exec"
	"testing"
)

// RequireTools is the variable that, set to 1, makes a missing tool a failure: as
// after make setup-tests, which installs them.
const RequireTools = "CAISSON_REQUIRE_TOOLS"

// Tool returns the path of a program that tests alone need, and skips or fails the
// test where it is absent. pack is Debian's package that has it.
func Tool(t testing.TB, program, pack string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err == nil {
		return path
	}
	reason := "needs " + program + ": apt-get install " + pack
	if os.Getenv(RequireTools) == "1" {
		t.Fatal(reason)
	}
	t.Skip(reason)
	return ""
}

package enginetest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// OrdinaryUID is the user that [AsUser] runs tests as. It has a number and nothing
// else: no name, no home, no further ids.
const OrdinaryUID = 41237

// asUserAgent tells a test that runs as the ordinary user where its agent is.
const asUserAgent = "CAISSON_TEST_USER_AGENT"

// AsUser runs the calling test once more as an ordinary user, and reports whether
// this is that run, which alone goes on. The other one has failed where that did. As
// an ordinary user it is always that run; it is skipped where bwrap is missing.
func AsUser(t *testing.T) bool {
	t.Helper()
	Bubblewrap(t)
	if os.Geteuid() != 0 {
		return true
	}
	dir, err := os.MkdirTemp("/tmp", "caisuser")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	agent := filepath.Join(dir, "caisson-agent")
	program, err := os.ReadFile(Agent(t))
	if err == nil {
		err = WriteProgram(agent, program)
	}
	if err == nil {
		err = os.Chown(dir, OrdinaryUID, OrdinaryUID)
	}
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Open("/proc/self/exe") // which lies where others may not go
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
	cmd := exec.CommandContext(context.Background(), "/proc/self/fd/3", "-test.run", "^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$", "-test.v", "-test.timeout", "5m")
	cmd.ExtraFiles, cmd.Dir = []*os.File{self}, dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, asUserAgent + "=" + agent, RequireBubblewrap + "=" + os.Getenv(RequireBubblewrap)}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: OrdinaryUID, Gid: OrdinaryUID}}
	out, err := cmd.CombinedOutput()
	text := strings.ReplaceAll(string(out), "\n", "\n\t")
	switch {
	case err != nil:
		t.Errorf("as uid %d: %v\n\t%s", OrdinaryUID, err, text)
	case strings.Contains(text, "--- SKIP: "+t.Name()+" "):
		t.Skipf("as uid %d: %s", OrdinaryUID, text)
	case !strings.Contains(text, "--- PASS: "+t.Name()+" "):
		t.Errorf("as uid %d it did not run:\n\t%s", OrdinaryUID, text)
	}
	return false
}

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/caisson-dev/caisson/internal/enginetest"
)

// TestOrdinaryUser has somebody work with sessions who may speak to the engine, as
// those of the group docker do, and cannot reach into its folders.
func TestOrdinaryUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to become somebody else")
	}
	kit, base := place(t)
	socket, local := strings.CutPrefix(kit.API.DaemonHost(), "unix://")
	if !local {
		t.Skip("needs an engine on this host")
	}
	info, err := os.Stat(socket)
	if err != nil {
		t.Fatal(err)
	}
	group := info.Sys().(*syscall.Stat_t).Gid
	if info.Mode().Perm()&0o060 != 0o060 || group == 0 {
		t.Skip("needs a group that may speak to the engine")
	}
	if err := os.Chmod(base, 0o755); err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(base, "state") // of the state too, which place looks for there
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(home, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{enginetest.Command(t): "caisson", kit.Agent: "caisson-agent", enginetest.Scanner(t): "caisson-scan"} {
		if out, err := exec.CommandContext(t.Context(), "install", "-m", "755", from, filepath.Join(base, to)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	for _, step := range []struct{ args, want string }{
		{"session create a", "a\n"},
		{"exec a -- sh -c 'echo 1 > f; stat -c %U f'", "sandbox\n"},
		{"session fork a b", ""},
		{"exec b -- sh -c 'cat f; echo 2 > f'", "1\n"},
		{"exec a -- cat f", "1\n"},
		{"session rm a b --force", ""},
		{"gc", ""},
	} {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", base+"/caisson "+step.args)
		cmd.Dir = home
		cmd.Env = []string{"DOCKER_HOST=unix://" + socket, "HOME=" + home, "CAISSON_STATE_DIR=" + home, "CAISSON_RUNTIME_DIR=" + home + "/s", "PATH=" + os.Getenv("PATH")}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534, Groups: []uint32{group}}}
		var errs strings.Builder
		cmd.Stderr = &errs
		if out, err := cmd.Output(); err != nil || step.want != "" && string(out) != step.want {
			t.Fatalf("%s: %v, %q, %s", step.args, err, out, errs.String())
		}
	}
}

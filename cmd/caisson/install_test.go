package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/internal/enginetest"
)

// What make install leaves works wherever it is moved to: the command finds its
// helpers below the same prefix.
func TestInstall(t *testing.T) {
	t.Parallel()
	kit, base := place(t)
	bin, dest := t.TempDir(), t.TempDir()
	for from, to := range map[string]string{enginetest.Command(t): "caisson", kit.Agent: "caisson-agent", enginetest.Scanner(t): "caisson-scan"} {
		if err := os.Symlink(from, filepath.Join(bin, to)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("make", "-o", "build", "install", "BIN="+bin, "DESTDIR="+dest, "PREFIX=/opt/x")
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd = exec.Command(filepath.Join(dest, "opt/x/bin/caisson"), "run", "-l", "shell", "-c", "echo installed")
	cmd.Env = append(os.Environ(), "CAISSON_AGENT=", "CAISSON_SCAN=", "CAISSON_RUNTIME_DIR="+base+"/s", "CAISSON_STATE_DIR="+base+"/state")
	if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "installed" {
		t.Errorf("%v: %s", err, out)
	}
}

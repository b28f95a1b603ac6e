package scripts_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestBench: a benchmark that fails keeps none of the others from running, and
// the failure is told at the end.
func TestBench(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fake := "#!/bin/sh\necho \"$*\" >> " + dir + "/calls\ncase $2 in *gate|*exec) exit 1;; esac\n"
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte(fake), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "bench.sh", "--smoke")
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err == nil || string(out) != "bench: not as asked: exec gate\n" {
		t.Errorf("%v: %s", err, out)
	}
	calls, err := os.ReadFile(filepath.Join(dir, "calls"))
	if err != nil {
		t.Fatal(err)
	}
	programs, err := filepath.Glob("../bench/*/main.go")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for _, p := range programs {
		if name := filepath.Base(filepath.Dir(p)); name != "eval" {
			want.WriteString("run ./bench/" + name + " --smoke\n")
		}
	}
	if string(calls) != want.String() {
		t.Errorf("run were\n%s not\n%s", calls, want.String())
	}
}

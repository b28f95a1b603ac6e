package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/caisson-dev/caisson/internal/enginetest"
)

// TestPython runs the tests of the Python package, which start a server by this
// program.
func TestPython(t *testing.T) {
	t.Parallel()
	kit, base := place(t)
	kit.Image(t, "python")
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	cmd := exec.Command(python, "-W", "error::ResourceWarning", "-m", "unittest")
	cmd.Dir = filepath.FromSlash("../../sdk/python")
	cmd.Env = append(os.Environ(), "CAISSON_BIN="+enginetest.Command(t), "CAISSON_AGENT="+kit.Agent, "CAISSON_SCAN="+enginetest.Scanner(t),
		"CAISSON_RUNTIME_DIR="+base+"/s", "CAISSON_STATE_DIR="+base+"/state", "XDG_RUNTIME_DIR="+base, "PYTHONDONTWRITEBYTECODE=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestLease has a server end with the last process that holds its lease.
func TestLease(t *testing.T) {
	t.Parallel()
	kit, base := place(t)
	lease := filepath.Join(base, "lease")
	if err := syscall.Mkfifo(lease, 0o600); err != nil {
		t.Fatal(err)
	}
	held, err := os.OpenFile(lease, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, kit, base, "serve", "--listen", "unix://"+base+"/s.sock", "--lease", lease)
	p.await(t, "unix://"+base+"/s.sock")
	second, err := os.OpenFile(lease, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	if code := ask(t, "unix://"+base+"/s.sock", "GET", "/v1/sessions", "", nil, nil); code != 200 {
		t.Errorf("%d while one still holds the lease", code)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	if code := p.code(t); code != 0 {
		t.Errorf("code %d: %s", code, p.errs)
	}
	plain := start(t, kit, base, "serve", "--listen", "unix://"+base+"/s.sock", "--lease", base)
	if code := plain.code(t); code == 0 {
		t.Error("a folder is taken for a lease")
	}
}

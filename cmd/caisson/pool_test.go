package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/sandbox"
)

// traces leaves something of every kind, after it has said what of that it finds:
// files wherever it may write, shared memory, keys, variables, processes.
const traces = `
import ctypes, os, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
found = []
for place in ("/workspace", "/tmp", "/var/tmp", "/dev/shm", os.path.expanduser("~")):
    try:
        if os.listdir(place): found.append(place)
        open(place + "/trace", "w").close()
    except OSError as e:
        found.append("cannot write: %s" % e)
if libc.shmget(0x7ace, 4096, 0o600) >= 0: found.append("shared memory")
if libc.shmget(0x7ace, 4096, 0o1600) < 0: found.append("cannot share memory")
if libc.syscall(249, b"user", b"trace", None, 0) >= 0: found.append("a key")
libc.syscall(248, b"user", b"trace", b"x", 1, -3)
if "TRACE" in os.environ: found.append("a variable")
os.environ["TRACE"] = "x"
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        if b"987" in open("/proc/%s/cmdline" % pid, "rb").read().split(b"\0"): found.append("a process")
    except OSError: pass
subprocess.Popen(["sleep", "987"], start_new_session=True)
print("found:", found)
`

// poolOf has a pool kept for a place, until it is full.
func poolOf(t *testing.T, kit *enginetest.Kit, base, sizes string) *process {
	t.Helper()
	if err := os.WriteFile(base+"/caisson.yaml", []byte("version: 1\npool: "+sizes+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, kit, base, "--config", base+"/caisson.yaml", "pool", "serve")
	p.await(t, "the pool is kept until this process ends")
	until(t, "the pool is full", func() bool {
		for _, s := range shelves(t, kit, base) {
			if s.Ready < s.Size || s.Making > 0 {
				return false
			}
		}
		return true
	})
	return p
}

// end ends a pool in order.
func end(t *testing.T, p *process) {
	t.Helper()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.code(t); code != 0 || p.errs.String() != "" {
		t.Errorf("the pool ends with %d, %s", code, p.errs)
	}
}

func shelves(t *testing.T, kit *enginetest.Kit, base string) (list []sandbox.PoolShelf) {
	t.Helper()
	if err := json.Unmarshal([]byte(said(t, kit, base, "pool", "ls", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// Commands take their sandboxes from the pool of their state folder. Each serves one
// run, and nothing of that is found by the next.
func TestPool(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "by the list") }))
	t.Cleanup(site.Close)
	for _, runtime := range []string{"docker", "bubblewrap"} {
		t.Run(runtime, func(t *testing.T) {
			t.Parallel()
			if runtime == "bubblewrap" {
				enginetest.Bubblewrap(t)
			}
			kit, base := place(t)
			kit.Image(t, "python")
			p := poolOf(t, kit, base, fmt.Sprintf("{python/%s: 1}", runtime))
			for n := range 3 {
				until(t, "one is ready", func() bool { return shelves(t, kit, base)[0].Ready == 1 })
				got := said(t, kit, base, "run", "--runtime", runtime, "--approve", "always", "--memory", "300m", "-l", "python", "-c", traces)
				if got != "found: []" {
					t.Errorf("run %d: %s", n, got)
				}
			}
			until(t, "one is ready", func() bool { return shelves(t, kit, base)[0].Ready == 1 })
			got := said(t, kit, base, "run", "--runtime", runtime, "--approve", "always", "--network", "allow", "--allow", strings.TrimPrefix(site.URL, "http://"), "-l", "python",
				"-c", fmt.Sprintf("import os, http.client as h; c = h.HTTPConnection(os.environ['http_proxy'][7:]); c.request('GET', %q); print(c.getresponse().read().decode())", site.URL))
			if got != "by the list" {
				t.Errorf("with a way out: %s", got)
			}
			if s := shelves(t, kit, base)[0]; s.Taken != 4 || s.Missed != 0 {
				t.Errorf("of the pool there was taken %+v", s)
			}
			if again := start(t, kit, base, "--config", base+"/caisson.yaml", "pool", "serve"); again.code(t) == 0 || !strings.Contains(again.errs.String(), "another process keeps") {
				t.Errorf("a second pool: %s", again.errs)
			}
			end(t, p)
			if left := sandboxes(base); len(left) > 0 {
				t.Errorf("left of the pool: %q", left)
			}
		})
	}
}

// What a pool that is killed has made is swept by whoever comes next, and runs go on
// without it.
func TestPoolKilled(t *testing.T) {
	t.Parallel()
	kit, base := place(t)
	p := poolOf(t, kit, base, "{shell: 2}")
	ids := sandboxes(base)
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.code(t)
	if got := said(t, kit, base, "run", "--", "echo", "ok"); got != "ok" {
		t.Errorf("a run without the pool: %q", got)
	}
	collected(t, kit, base)
	for _, id := range ids {
		if sandbox.ID(id).Valid() && state(t, kit, id) != "gone" {
			t.Errorf("sandbox %s is left", id)
		}
	}
	if left := sandboxes(base); len(left) > 1 { // the socket of the dead
		t.Errorf("left: %q", left)
	}
}

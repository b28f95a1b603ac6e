//go:build linux

package bubblewrap_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/bubblewrap"
	"github.com/caisson-dev/caisson/sandbox"
)

// hostLanguages knows one language, and no image: the runtime has the host's.
type hostLanguages struct{}

func (hostLanguages) Language(string) (sandbox.Language, error) {
	return sandbox.Language{Name: "shell", Suffixes: []string{".sh"}, Image: "none", RunCode: []string{"bash", "{file}"}, RunFile: []string{"bash", "{file}"}}, nil
}

func (hostLanguages) Ensure(context.Context, string) (sandbox.Image, error) {
	return sandbox.Image{}, sandbox.Errorf(sandbox.Internal, "an engine was asked for an image")
}

func (hostLanguages) Forget(sandbox.Image) {}

func (p place) manager(t *testing.T, rt runtimes.Runtime) *manager.Manager {
	t.Helper()
	m, err := manager.New(manager.Config{
		Runtimes: runtimes.Only(bubblewrap.Name, rt), Images: hostLanguages{}, Gate: manager.Unjudged, Patience: enginetest.Patience,
		Holder: "suite", Alive: func(holder string) bool { return holder != "dead" },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if left := p.left(t); len(left) > 0 {
			t.Errorf("left behind: %q", left)
		}
	})
	return m
}

// What is the host's cannot be seen, written or reached, and nothing can be gained.
func TestWalls(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	m := p.manager(t, p.runtime(t, "", p.agent))
	secret := filepath.Join(filepath.Dir(p.base), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	for what, script := range map[string]string{
		"passwords":           "cat /etc/shadow",
		"the home of root":    "ls /root",
		"files of the host":   "cat " + secret,
		"other sandboxes":     "ls " + p.base,
		"the engine's socket": "ls /run/docker.sock || ls /var/run/docker.sock",
		"state of services":   "ls /var/lib",
		"settings of caisson": "ls /run/caisson",
		"the agent's socket":  "ls /run/caisson/private",
		"the root":            ": > /new",
		"programs":            ": > /usr/bin/new",
		"settings":            ": > /etc/new",
		"the kernel":          ": >> /proc/sys/kernel/core_pattern",
		"the agent's kernel":  "! grep -q ' /proc/sys ro,' /proc/self/mountinfo",
		"sysrq":               ": >> /proc/sysrq-trigger",
		"control groups":      "for f in /sys/fs/cgroup/*/tasks /sys/fs/cgroup/cgroup.procs; do [ -e $f ] && echo $$ > $f && exit 0; done; false",
		"a user namespace":    "unshare -U true",
		"a mount":             "mount -t tmpfs none /tmp",
		"a device":            "mknod /tmp/disk b 8 0",
		"an address":          "grep -v -e lo: -e '|' /proc/net/dev",
		"the agent":           "kill -9 1",
		"its environment":     "cat /proc/1/environ",
		"variables":           "env | grep -q '^PWD=/tmp\\|^GO\\|^CAISSON'",
		"capabilities":        "grep -e '^CapPrm' -e '^CapEff' /proc/self/status | grep -q -v 0000000000000000",
		"privileges":          "grep -q 'NoNewPrivs:.0' /proc/self/status",
		"more system calls":   "grep -q 'Seccomp:.0' /proc/self/status",
	} {
		t.Run(what, func(t *testing.T) {
			res, err := m.Run(t.Context(), sandbox.Run{Language: "shell", Command: []string{"sh", "-c", script}}, sandbox.Streams{})
			if err != nil || res.Reason != sandbox.ReasonExited || res.Code == 0 {
				t.Errorf("%q: %v, %s, code %d, %s%s", script, err, res.Reason, res.Code, res.Stdout, res.Stderr)
			}
		})
	}
}

// A program finds what it needs: a home, a place for files, names, time, and its
// text where it was staged.
func TestRoom(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	m := p.manager(t, p.runtime(t, "", p.agent))
	res, err := m.Run(t.Context(), sandbox.Run{Language: "shell", Code: "set -e\nwhoami\npwd\necho $HOME\ncd; : > a; : > /tmp/b; : > /workspace/c; : > /var/tmp/d; : > /dev/shm/e\n[ -c /dev/null ]\nhostname || cat /etc/hostname\n"}, sandbox.Streams{})
	want := "sandbox\n/workspace\n" + sandbox.HomeDir + "\nsandbox\n"
	if err != nil || res.Code != 0 || string(res.Stdout) != want || res.Runtime != bubblewrap.Name {
		t.Errorf("%v, %+v\n%s%s", err, res.Exit, res.Stdout, res.Stderr)
	}
	_, err = m.Run(t.Context(), sandbox.Run{Image: "python:3", Command: []string{"true"}}, sandbox.Streams{})
	if sandbox.KindOf(err) != sandbox.Unsupported || !strings.Contains(sandbox.HintOf(err), "--image") {
		t.Errorf("with an image: %v", err)
	}
	_, err = m.Run(t.Context(), sandbox.Run{Language: "shell", Command: []string{"true"}, Network: sandbox.Network{Mode: sandbox.NetworkBridge}}, sandbox.Streams{})
	if sandbox.KindOf(err) != sandbox.Unsupported {
		t.Errorf("with a network: %v", err)
	}
}

// Limits hold, and the result names the one that was hit.
func TestLimits(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	rt := p.runtime(t, "", p.agent)
	caps, err := rt.Capabilities(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if caps.Memory != runtimes.Enforced {
		t.Skip("this process may make no control groups")
	}
	m := p.manager(t, rt)
	for name, tt := range map[string]struct {
		script string
		want   sandbox.ExitReason
	}{
		"memory":    {"exec tail /dev/zero", sandbox.ReasonOOM},
		"processes": {"i=0; while [ $i -lt 200 ]; do sleep 60 & i=$((i+1)); done; exit 3", sandbox.ReasonPIDs},
		"disk":      {"exec head -c 100m /dev/zero > big", sandbox.ReasonDisk},
	} {
		t.Run(name, func(t *testing.T) {
			res, err := m.Run(t.Context(), sandbox.Run{
				Language: "shell", Command: []string{"sh", "-c", tt.script}, Limits: sandbox.Limits{Memory: 128 * sandbox.MiB, Workspace: 16 * sandbox.MiB, PIDs: 30},
			}, sandbox.Streams{})
			if err != nil || res.Reason != tt.want {
				t.Errorf("%v, %+v\n%s", err, res.Exit, res.Stderr)
			}
		})
	}
}

// What a dead process left is swept, with its processes and control group, and
// what was kept on purpose only where that is asked for.
func TestSweep(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	rt := p.runtime(t, "", p.agent)
	m := p.manager(t, rt)
	s := spec(sandbox.WorkspaceVolume)
	s.Holder, s.Session = "dead", ""
	plan, err := rt.Plan(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	inst, err := rt.Create(t.Context(), sandbox.NewID(), plan)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = inst.Destroy(context.WithoutCancel(t.Context())) })
	id := inst.Handle().ID
	for _, dry := range []bool{true, false} {
		swept, err := m.Sweep(t.Context(), dry, false)
		if err != nil || len(swept) != 1 || swept[0].ID != id || swept[0].Removed == dry || swept[0].Problem != nil {
			t.Fatalf("dry %v: %v, %+v", dry, err, swept)
		}
	}
	if _, err := inst.Dial(t.Context()); err == nil {
		t.Error("its agent still answers")
	}
	if groups, _ := filepath.Glob("/sys/fs/cgroup/*/caisson/" + string(id)); len(groups) > 0 {
		t.Errorf("left behind: %q", groups)
	}
	// A folder whose maker died before it could write down whose it is.
	nameless := filepath.Join(p.base, string(sandbox.NewID())+".bw")
	if err := os.Mkdir(nameless, 0o700); err != nil {
		t.Fatal(err)
	}
	handles, err := rt.List(t.Context())
	if err != nil || len(handles) != 1 || handles[0].Kind != runtimes.KindFolder {
		t.Fatalf("%v, %+v", err, handles)
	}
	found, err := rt.Attach(t.Context(), handles[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := found.Destroy(t.Context()); err != nil {
		t.Error(err)
	}
}

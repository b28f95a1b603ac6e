// Package scripts_test runs setup.sh against a machine of fakes: commands in a
// folder that is all of PATH, and a folder in place of the system's root.
package scripts_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// machine is a made-up system. Its commands log their calls.
type machine struct {
	t              *testing.T
	bin, root, log string
	env            []string
}

// real commands that the script may use.
var real = []string{"bash", "sed", "dirname", "timeout", "sort", "tr", "cat", "grep", "sleep", "mktemp", "rm", "mkdir", "tail", "setsid", "env", "touch", "chmod", "cp"}

func newMachine(t *testing.T) *machine {
	t.Helper()
	dir := t.TempDir()
	m := &machine{t: t, bin: filepath.Join(dir, "bin"), root: filepath.Join(dir, "root"), log: filepath.Join(dir, "calls")}
	for _, d := range []string{"var/run/docker/containerd", "etc", "usr/include"} {
		m.must(os.MkdirAll(filepath.Join(m.root, d), 0o755))
	}
	m.must(os.MkdirAll(m.bin, 0o755))
	m.file("etc/debian_version", "12\n")
	m.file("usr/include/stdlib.h", "")
	for _, name := range real {
		path, err := exec.LookPath(name)
		m.must(err)
		m.must(os.Symlink(path, filepath.Join(m.bin, name)))
	}
	m.env = []string{"PATH=" + m.bin, "CAISSON_SETUP_ROOT=" + m.root, "CAISSON_DOCKERD_LOG=" + filepath.Join(dir, "dockerd.log"), "CAISSON_DOCKERD_WAIT=5", "XDG_CACHE_HOME=" + filepath.Join(dir, "cache")}
	for _, name := range []string{"gcc", "mmdebstrap", "unshare", "mount", "iptables", "npm"} {
		m.command(name, "")
	}
	m.command("go", "echo go1.26")
	m.command("id", "echo 0")
	m.command("apt-get", "")
	// The engine answers where its socket is.
	m.command("docker", `[ "$1" = context ] && { echo default; exit; }
[ -e `+m.root+`/var/run/docker.sock ] && echo 20.10.24`)
	m.command("dockerd", `touch `+m.root+`/var/run/docker.sock; sleep 2`)
	return m
}

func (m *machine) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) file(name, data string) {
	m.t.Helper()
	m.must(os.WriteFile(filepath.Join(m.root, name), []byte(data), 0o600))
}

func (m *machine) command(name, body string) {
	m.t.Helper()
	script := "#!" + filepath.Join(m.bin, "bash") + "\necho \"" + name + " $*\" >> " + m.log + "\n" + body + "\n"
	m.must(os.WriteFile(filepath.Join(m.bin, name), []byte(script), 0o755))
}

func (m *machine) without(name string) {
	m.t.Helper()
	m.must(os.Remove(filepath.Join(m.bin, name)))
}

func (m *machine) setup(args ...string) (out string, ok bool) {
	m.t.Helper()
	cmd := exec.CommandContext(m.t.Context(), filepath.Join(m.bin, "bash"), append([]string{"setup.sh"}, args...)...)
	cmd.Env = m.env
	data, err := cmd.CombinedOutput()
	return string(data), err == nil
}

func (m *machine) calls() string {
	data, _ := os.ReadFile(m.log)
	return string(data)
}

func TestAllIsThere(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.file("var/run/docker.sock", "")
	m.command("id", "echo 1000") // nobody needs to be root for nothing
	out, ok := m.setup()
	if !ok || out != "setup: ready: Docker Engine 20.10.24, mmdebstrap, gcc, go1.26\n" {
		t.Errorf("output %q", out)
	}
	if strings.Contains(m.calls(), "apt-get") || strings.Contains(m.calls(), "dockerd") {
		t.Errorf("calls %q", m.calls())
	}
}

func TestInstallsAndStarts(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.without("dockerd")
	m.without("mmdebstrap")
	m.command("apt-get", `case "$*" in *install*) printf '#!%s\ntouch %s; sleep 2\n' `+m.bin+`/bash `+m.root+`/var/run/docker.sock > `+m.bin+`/dockerd; chmod 755 `+m.bin+`/dockerd;; esac`)
	out, ok := m.setup()
	if !ok || !strings.Contains(out, "installing docker.io mmdebstrap") || !strings.Contains(out, "starting dockerd") || !strings.Contains(out, "ready") {
		t.Errorf("output %q", out)
	}
	if again, ok := m.setup(); !ok || strings.Count(again, "\n") != 2 { // the fake mmdebstrap never came
		t.Errorf("second run %q", again)
	}
}

// TestSDK is fetched once, by its list of exact packages, and again where that failed.
func TestSDK(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.file("var/run/docker.sock", "")
	m.command("npm", "echo no such version; exit 1")
	if out, ok := m.setup("--tests"); ok || !strings.Contains(out, "no such version") {
		t.Errorf("npm fails: %q", out)
	}
	m.command("npm", "")
	for range 2 {
		if out, ok := m.setup("--tests"); !ok {
			t.Error(out)
		}
	}
	if n := strings.Count(m.calls(), "npm ci --prefix "); n != 2 {
		t.Errorf("npm was asked %d times: %q", n, m.calls())
	}
}

// TestWhatTestsNeed installs more for the tests, and only then; no server that
// comes with it is started, then or at the next start of the machine.
func TestWhatTestsNeed(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.file("var/run/docker.sock", "")
	m.must(os.MkdirAll(filepath.Join(m.root, "run/systemd/system"), 0o755))
	m.command("systemctl", "")
	policy := filepath.Join(m.root, "usr/sbin/policy-rc.d")
	m.command("apt-get", `case "$*" in *install*) `+policy+`; echo "services: $?" >> `+m.log+`;; esac`)
	if out, ok := m.setup(); !ok || strings.Contains(m.calls(), "apt-get") {
		t.Errorf("without --tests: %q, calls %q", out, m.calls())
	}
	out, ok := m.setup("--tests")
	if !ok || !strings.Contains(out, "installing bubblewrap curl docker-registry git iproute2 musl-tools nodejs prometheus python3-pip skopeo tmux") {
		t.Errorf("with --tests: %q", out)
	}
	for _, call := range []string{"services: 101", "systemctl disable --now docker-registry", "systemctl disable --now prometheus"} {
		if !strings.Contains(m.calls(), call+"\n") {
			t.Errorf("no %q in %q", call, m.calls())
		}
	}
	m.command("apt-get", "exit 100")
	if out, ok := m.setup("--tests"); ok {
		t.Errorf("without packages: %q", out)
	}
	if _, err := os.Stat(policy); err == nil {
		t.Error("services are still kept from being started")
	}
	m.must(os.WriteFile(policy, []byte("#!/bin/sh\nexit 3\n"), 0o755))
	m.command("apt-get", `case "$*" in *install*) `+policy+`; echo "services: $?" >> `+m.log+`;; esac`)
	if out, ok := m.setup("--tests"); !ok || !strings.Contains(m.calls(), "services: 3\n") {
		t.Errorf("with a policy of its own: %q, calls %q", out, m.calls())
	}
	if _, err := os.Stat(policy); err != nil {
		t.Errorf("a policy of the machine's own is gone: %v", err)
	}
	if out, ok := m.setup("--test"); ok || !strings.Contains(out, "usage:") {
		t.Errorf("another option: %q", out)
	}
}

func TestRefusesInOneLine(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		alter  func(m *machine)
		wanted []string
	}{
		{"not root", func(m *machine) {
			m.command("id", "echo 1000")
			m.without("gcc")
			m.without("dockerd")
		}, []string{"not root", "apt-get install -y docker.io gcc"}},
		{"not root, engine stopped", func(m *machine) { m.command("id", "echo 1000") }, []string{"systemctl start docker", "docker group"}},
		{"not Debian", func(m *machine) {
			m.without("apt-get")
			m.without("mmdebstrap")
		}, []string{"not Debian", "Docker Engine (20.10 or newer), mmdebstrap"}},
		{"no Go", func(m *machine) { m.without("go") }, []string{"Go is missing"}},
		{"named engine is dead", func(m *machine) { m.env = append(m.env, "DOCKER_HOST=tcp://far:1") }, []string{"tcp://far:1", "unset DOCKER_HOST"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			tc.alter(m)
			out, ok := m.setup()
			if ok || strings.Count(out, "\n") != 1 {
				t.Errorf("succeeded: %v, output %q", ok, out)
			}
			for _, w := range tc.wanted {
				if !strings.Contains(out, w) {
					t.Errorf("output %q does not say %q", out, w)
				}
			}
			if strings.Contains(m.calls(), "dockerd") || strings.Contains(m.calls(), "install") {
				t.Errorf("it did something all the same: %q", m.calls())
			}
		})
	}
}

func TestStalePidFiles(t *testing.T) {
	t.Parallel()
	sleeper := exec.Command("sleep", "60")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sleeper.Process.Kill(); _ = sleeper.Wait() })
	for name, pid := range map[string]string{"gone": "4194300", "of another program": strconv.Itoa(sleeper.Process.Pid), "empty": "", "garbage": "x\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.file("var/run/docker.pid", pid)
			m.file("var/run/docker/containerd/containerd.pid", pid)
			out, ok := m.setup()
			if !ok || strings.Count(out, "removing a stale") != 2 {
				t.Errorf("output %q", out)
			}
			if _, err := os.Stat(filepath.Join(m.root, "var/run/docker.pid")); err == nil {
				t.Error("the stale pid file is there still")
			}
		})
	}
}

// A daemon that was killed keeps its name and number until its parent looks.
func TestStalePidOfZombie(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "dockerd")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nexit 0\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	dead := exec.Command(program)
	if err := dead.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dead.Wait() })
	status := filepath.Join("/proc", strconv.Itoa(dead.Process.Pid), "status")
	for deadline := time.Now().Add(10 * time.Second); ; {
		b, err := os.ReadFile(status)
		if err == nil && strings.Contains(string(b), "State:\tZ") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("it does not become a zombie: %v, %s", err, b)
		}
		time.Sleep(5 * time.Millisecond)
	}
	m := newMachine(t)
	m.file("var/run/docker.pid", strconv.Itoa(dead.Process.Pid))
	if out, ok := m.setup(); !ok || strings.Count(out, "removing a stale") != 1 {
		t.Errorf("output %q", out)
	}
}

func TestEngineFails(t *testing.T) {
	t.Parallel()
	t.Run("its log is shown", func(t *testing.T) {
		t.Parallel()
		m := newMachine(t)
		m.command("dockerd", "echo the disk is on fire >&2; exit 1")
		out, ok := m.setup()
		if ok || !strings.Contains(out, "the disk is on fire") || !strings.Contains(out, "did not start") {
			t.Errorf("output %q", out)
		}
	})
	t.Run("without iptables", func(t *testing.T) {
		t.Parallel()
		m := newMachine(t)
		m.command("dockerd", `case "$*" in *iptables=false*) touch `+m.root+`/var/run/docker.sock; sleep 2;; *) echo "iptables failed" >&2; exit 1;; esac`)
		out, ok := m.setup()
		if !ok || !strings.Contains(out, "cannot use iptables") || !strings.Contains(out, "ready") {
			t.Errorf("output %q", out)
		}
	})
	t.Run("packages cannot be had", func(t *testing.T) {
		t.Parallel()
		m := newMachine(t)
		m.without("gcc")
		m.command("apt-get", "echo E: no mirror >&2; exit 100")
		out, ok := m.setup()
		if ok || !strings.Contains(out, "E: no mirror") || !strings.Contains(out, "could not install gcc") {
			t.Errorf("output %q", out)
		}
	})
}

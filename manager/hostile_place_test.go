package manager_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// What a program finds around it.
func TestPlace(t *testing.T) {
	t.Setenv("CAISSON_TEST_OF_HOST", "leaked")
	b := openBox(t, manager.OpenOptions{Language: "python"})
	env := func(run sandbox.Run) map[string]string {
		run.Command = []string{"env", "-0"}
		found := map[string]string{}
		for kv := range strings.SplitSeq(strings.TrimSuffix(string(b.run(t, run).Stdout), "\x00"), "\x00") {
			k, v, _ := strings.Cut(kv, "=")
			if _, twice := found[k]; twice {
				t.Errorf("%s is there twice", k)
			}
			found[k] = v
		}
		return found
	}
	got := env(sandbox.Run{})
	for k, want := range map[string]string{
		"HOME": "/home/sandbox", "USER": "sandbox", "LOGNAME": "sandbox", "SHELL": "/bin/sh", "PWD": "/workspace", "LANG": "C.UTF-8",
		"PYTHONDONTWRITEBYTECODE": "1",
	} {
		if got[k] != want {
			t.Errorf("%s=%q, not %q", k, got[k], want)
		}
	}
	if !strings.Contains(got["PATH"], "/usr/bin") {
		t.Errorf("PATH=%q", got["PATH"])
	}
	for _, k := range []string{"CAISSON_TEST_OF_HOST", "HOSTNAME", "DOCKER_HOST", "SSH_AUTH_SOCK", "GOPATH"} {
		if v, is := got[k]; is {
			t.Errorf("of the host's environment there is %s=%q", k, v)
		}
	}
	got = env(sandbox.Run{Env: []string{"HOME=/tmp", "A=1", "A=2=3", "EMPTY=", "LANG=C"}, Dir: "/tmp"})
	for k, want := range map[string]string{"HOME": "/tmp", "A": "2=3", "EMPTY": "", "LANG": "C", "PWD": "/tmp"} {
		if v, is := got[k]; !is || v != want {
			t.Errorf("%s=%q (%v), not %q", k, v, is, want)
		}
	}
	if res := b.sh(t, "ls -A ~ /workspace /tmp /var/tmp /dev/shm | grep -v :", 0); strings.TrimSpace(string(res.Stdout)) != "" {
		t.Errorf("a fresh sandbox has files: %q", res.Stdout)
	}
	for script, want := range map[string]string{
		"pwd":       "/workspace\n",
		"cd; pwd":   "/home/sandbox\n",
		"umask":     "0022\n",
		"hostname":  "sandbox\n",
		"ulimit -c": "0\n",
		"ulimit -n": "1024\n",
		"locale charmap 2>/dev/null || echo $LANG":                                   "UTF-8\n",
		"ls /proc/self/fd | wc -l":                                                   "4\n", // three streams, and the folder itself
		"touch /workspace/x ~/x /tmp/x /var/tmp/x /dev/shm/x && echo ok":             "ok\n",
		"echo $$ | grep -qx 1 || echo no":                                            "no\n",
		"cat /proc/sys/kernel/hostname":                                              "sandbox\n",
		"printf '#!/bin/sh\\necho run' > x; chmod +x x; ./x":                         "run\n",
		"ip link 2>/dev/null | grep -v lo; ls /sys/class/net":                        "lo\n",
		"cat /proc/self/setgroups >/dev/null; id -G | wc -w":                         "2\n",
		"python3 -c 'import sys,os; print(sys.stdout.encoding, os.getcwd(), \"é\")'": "utf-8 /workspace é\n",
	} {
		res := b.sh(t, script, time.Minute)
		if out := string(res.Stdout); out != want {
			t.Errorf("%s: %q, not %q (%s)", script, out, want, res.Stderr)
		}
	}
	// A folder that is not there, a program that is not there or may not be run.
	for name, tt := range map[string]struct {
		run  sandbox.Run
		code int
		text string
	}{
		"no folder":      {sandbox.Run{Command: []string{"true"}, Dir: "nowhere"}, 126, "nowhere: no such directory"},
		"no program":     {sandbox.Run{Command: []string{"no-such-program"}}, 127, "command not found"},
		"not executable": {sandbox.Run{Command: []string{"/etc/passwd"}}, 126, "permission denied"},
		"a folder":       {sandbox.Run{Command: []string{"/etc"}}, 126, "permission denied"},
	} {
		res := b.run(t, tt.run)
		if res.Code != tt.code || res.Reason != sandbox.ReasonExited || !strings.Contains(string(res.Stderr), tt.text) {
			t.Errorf("%s: %s, code %d, stderr %q", name, res.Reason, res.Code, res.Stderr)
		}
	}
	b.usable(t)
}

// The hardening, as the engine holds it and as the program sees it.
func TestHardening(t *testing.T) {
	t.Parallel()
	b := openBox(t, manager.OpenOptions{})
	got, err := b.kit.API.ContainerInspect(t.Context(), "caisson-"+string(b.ID()))
	if err != nil {
		t.Fatal(err)
	}
	h := got.HostConfig
	for what, ok := range map[string]bool{
		"privileged":       !h.Privileged,
		"capabilities":     slices.Equal(h.CapDrop, []string{"ALL"}) && sameWords(h.CapAdd, "KILL", "SETGID", "SETUID", "SYS_PTRACE"),
		"no-new-privilege": slices.ContainsFunc(h.SecurityOpt, func(s string) bool { return strings.HasPrefix(s, "no-new-privileges") }),
		"seccomp":          !slices.ContainsFunc(h.SecurityOpt, func(s string) bool { return strings.HasPrefix(s, "seccomp=unconfined") }),
		"network":          h.NetworkMode == "none",
		"root":             h.ReadonlyRootfs,
		"memory":           h.Memory == int64(512*sandbox.MiB) && h.MemorySwap == h.Memory,
		"cpu":              h.CPUQuota*2 == h.CPUPeriod,
		"pids":             h.PidsLimit != nil && *h.PidsLimit > 100 && *h.PidsLimit < 150,
		"ipc":              h.IpcMode == "private",
		"pid namespace":    h.PidMode == "",
		"uts":              h.UTSMode == "",
		"user namespace":   h.UsernsMode == "",
		"devices":          len(h.Devices) == 0,
		"log":              h.LogConfig.Type == "none",
		"masked paths":     len(h.MaskedPaths) > 0 && len(h.ReadonlyPaths) > 0,
		"ports":            len(h.PortBindings) == 0,
		"no socket":        !slices.ContainsFunc(got.Mounts, func(m mountPoint) bool { return strings.Contains(m.Source, "docker.sock") }),
	} {
		if !ok {
			t.Errorf("%s is not as planned", what)
		}
	}
	for _, m := range got.Mounts {
		if m.RW && m.Destination != "/run/caisson/private/io" {
			t.Errorf("%s is mounted from the host, and can be written", m.Destination)
		}
	}
	status := map[string]string{}
	for line := range strings.Lines(string(b.sh(t, "cat /proc/self/status", 0).Stdout)) {
		k, v, _ := strings.Cut(line, ":")
		status[k] = strings.Join(strings.Fields(v), " ")
	}
	for k, want := range map[string]string{
		"CapEff": zeros, "CapPrm": zeros, "CapInh": zeros, "CapAmb": zeros, "NoNewPrivs": "1", "Seccomp": "2",
	} {
		if status[k] != want {
			t.Errorf("%s is %q, not %q", k, status[k], want)
		}
	}
	ids := strings.Fields(status["Uid"])
	uid, _ := strconv.Atoi(ids[0])
	if uid < sandbox.FirstUID || uid > sandbox.LastUID || slices.ContainsFunc(ids, func(s string) bool { return s != ids[0] }) || status["Gid"] != status["Uid"] {
		t.Errorf("uid %q, gid %q", status["Uid"], status["Gid"])
	}
	if out := b.sh(t, "cat /proc/self/oom_score_adj; find / -xdev -perm /6000 -type f -exec {} --version ';' 2>/dev/null; grep -c . /proc/net/route", 0); !strings.HasPrefix(string(out.Stdout), "500\n") {
		t.Errorf("out of memory, the program goes first: %q", out.Stdout)
	}
	agent := b.kit.AgentPID(t, b.ID())
	if st, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", agent)); err == nil && !strings.Contains(string(st), "NoNewPrivs:\t1") {
		t.Error("the agent itself may gain privileges")
	}
	b.usable(t)
}

const zeros = "0000000000000000"

func sameWords(got []string, want ...string) bool {
	var words []string
	for _, g := range got {
		words = append(words, strings.TrimPrefix(strings.ToUpper(g), "CAP_"))
	}
	slices.Sort(words)
	return slices.Equal(words, want)
}

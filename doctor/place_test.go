package doctor_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/doctor"
	"github.com/caisson-dev/caisson/sandbox"
)

func TestPlaces(t *testing.T) {
	t.Parallel()
	room := func(r doctor.Room, err error) func(*testing.T, *patient) {
		return func(_ *testing.T, p *patient) {
			p.cfg.Host.Room = func(string) (doctor.Room, error) { return r, err }
		}
	}
	chmod := func(path func(*patient) string, mode os.FileMode) func(*testing.T, *patient) {
		return func(t *testing.T, p *patient) {
			if err := os.Chmod(path(p), mode); err != nil {
				t.Fatal(err)
			}
		}
	}
	state := func(p *patient) string { return p.cfg.StateDir }
	tests := []struct {
		name         string
		do           func(*testing.T, *patient)
		check        string
		status       api.CheckStatus
		detail, mend string
	}{
		{"no socket", func(_ *testing.T, p *patient) { p.engine.host += ".absent" }, "socket", api.CheckError, "is not there", "systemctl start docker"},
		{"a file for a socket", func(_ *testing.T, p *patient) { p.engine.host = "unix://" + p.cfg.Agent }, "socket", api.CheckError, "is not a socket", "restart docker"},
		{"tcp", func(_ *testing.T, p *patient) { p.engine.host = "tcp://far:2376" }, "socket", api.CheckOK, "not spoken to over a socket", ""},
		{"state error", func(_ *testing.T, p *patient) {
			p.cfg.StateErr = sandbox.Errorf(sandbox.Invalid, "no HOME").WithHint("set it")
		}, "state_dir", api.CheckError, "no HOME", "set it"},
		{"state error, disk", func(_ *testing.T, p *patient) { p.cfg.StateErr = errors.New("no HOME") }, "state_disk", api.CheckWarning, "no state folder", "CAISSON_STATE_DIR"},
		{"state open", chmod(state, 0o755), "state_dir", api.CheckWarning, "mode 0755: others may look", "chmod 700 "},
		{"state a file", func(_ *testing.T, p *patient) { p.cfg.StateDir = p.cfg.Agent }, "state_dir", api.CheckError, "is not a folder", "CAISSON_STATE_DIR"},
		{"state below a file", func(_ *testing.T, p *patient) { p.cfg.StateDir = p.cfg.Agent + "/state" }, "state_dir", api.CheckError, "not a directory", "CAISSON_STATE_DIR"},
		{"state to be made", func(_ *testing.T, p *patient) { p.cfg.StateDir += "/a/b" }, "state_dir", api.CheckOK, "not made yet", ""},
		{"runtime relative", func(_ *testing.T, p *patient) { p.cfg.RuntimeDir = "run" }, "runtime_dir", api.CheckError, "not an absolute path", "CAISSON_RUNTIME_DIR"},
		{"runtime long", func(_ *testing.T, p *patient) { p.cfg.RuntimeDir = "/" + strings.Repeat("x", 63) }, "runtime_dir", api.CheckError, "has 64 bytes", "short path"},
		{"disk full", room(doctor.Room{Free: sandbox.MiB}, nil), "engine_disk", api.CheckError, "1.0 MiB free", "docker system prune"},
		{"disk filling", room(doctor.Room{Free: sandbox.GiB}, nil), "engine_disk", api.CheckWarning, "1.0 GiB free", "docker system prune"},
		{"state disk full", room(doctor.Room{Free: sandbox.MiB}, nil), "state_disk", api.CheckError, "1.0 MiB free", "CAISSON_STATE_DIR"},
		{"inodes gone", room(doctor.Room{Free: sandbox.TiB, Files: 9, Total: 1e6}, nil), "engine_disk", api.CheckError, "9 more files", "prune"},
		{"inodes going", room(doctor.Room{Free: sandbox.TiB, Files: 5000, Total: 1e6}, nil), "engine_disk", api.CheckWarning, "5000 more files", "prune"},
		{"disk unknown", room(doctor.Room{}, os.ErrPermission), "engine_disk", api.CheckWarning, "not known", "df -h"},
		{"remote disk", func(_ *testing.T, p *patient) { p.engine.host = "tcp://far:1" }, "engine_disk", api.CheckWarning, "not on this host", "docker system df"},
		{"agent unfound", func(_ *testing.T, p *patient) {
			p.cfg.AgentErr = sandbox.Errorf(sandbox.Unavailable, "none").WithHint("build it")
		}, "agent", api.CheckError, "none", "build it"},
		{"agent absent", func(_ *testing.T, p *patient) { p.cfg.Agent += ".absent" }, "agent", api.CheckError, "is not a file", "CAISSON_AGENT"},
		{"agent a script", func(t *testing.T, p *patient) {
			if err := os.WriteFile(p.cfg.Agent, []byte("#!/bin/sh\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}, "agent", api.CheckError, "not a program", "CAISSON_AGENT"},
		{"agent closed", chmod(func(p *patient) string { return p.cfg.Agent }, 0o600), "agent", api.CheckError, "mode 0600", "chmod 755 "},
		{"agent dynamic", func(t *testing.T, p *patient) { p.cfg.Agent = program(t, filepath.Dir(p.cfg.Agent), 0x3e, true) }, "agent", api.CheckError, "not static", "CGO_ENABLED=0 go build"},
		{"agent of another machine", func(_ *testing.T, p *patient) { p.engine.facts.Arch = "aarch64" }, "agent", api.CheckError, "containers are aarch64", "GOARCH=arm64 go build"},
		{"agent, engine unknown", func(_ *testing.T, p *patient) { p.engine.err = errors.New("down") }, "agent", api.CheckOK, "static, x86_64", ""},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := well(t)
			tc.do(t, p)
			want(t, p.examine(t)[tc.check], tc.status, tc.detail, tc.mend)
		})
	}
}

// The real host and the doctor's own eyes: whatever is found, it is found.
func TestThisHost(t *testing.T) {
	t.Parallel()
	p := well(t)
	p.cfg.Host = doctor.Host{}
	found := p.examine(t)
	for _, name := range []string{"user_namespaces", "state_disk", "engine_disk"} {
		if c := found[name]; strings.Contains(c.Detail, "not known") {
			t.Errorf("%+v", c)
		}
	}
	want(t, found["state_disk"], found["state_disk"].Status, " free in ", "")
	left, err := os.ReadDir(p.cfg.StateDir)
	if err != nil || len(left) != 0 {
		t.Errorf("the doctor left %v, %v", left, err)
	}
}

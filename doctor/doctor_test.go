package doctor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/doctor"
	"github.com/caisson-dev/caisson/internal/dockerclient"
	"github.com/caisson-dev/caisson/internal/dockerclient/dockertest"
	"github.com/caisson-dev/caisson/sandbox"
)

// fakeService is caisson with two answers.
type fakeService struct {
	api.Service
	languages []api.LanguageInfo
	orphans   []sandbox.Orphan
	events    sandbox.Bytes
	err       error
}

func (s fakeService) Languages(context.Context) ([]api.LanguageInfo, error) {
	return s.languages, s.err
}

func (s fakeService) Sweep(_ context.Context, opts api.SweepOptions) ([]sandbox.Orphan, error) {
	if !opts.DryRun {
		return nil, errors.New("the doctor removes something")
	}
	return s.orphans, s.err
}

func (s fakeService) StateSizes(context.Context) ([]sandbox.StateSize, error) {
	return []sandbox.StateSize{{What: "events", Count: 7, Bytes: s.events}, {What: "questions", Count: 3, Bytes: 2048}}, s.err
}

// fakeEngine is an engine with one answer.
type fakeEngine struct {
	host  string
	facts dockerclient.Facts
	err   error
}

func (e fakeEngine) Host() string { return e.host }
func (e fakeEngine) Local() bool  { return strings.HasPrefix(e.host, "unix://") }
func (e fakeEngine) Facts(context.Context) (dockerclient.Facts, error) {
	return e.facts, e.err
}

// patient is what is examined, all of it well.
type patient struct {
	cfg    doctor.Config
	engine *fakeEngine
	svc    *fakeService
	proc   string
}

// unpacked has an image be unpacked at places.
func (p *patient) unpacked(ref string, places ...string) {
	var roots []sandbox.ImageRoot
	for _, path := range places {
		roots = append(roots, sandbox.ImageRoot{Image: sandbox.Image{Ref: ref}, Path: path, Size: 2 * sandbox.MiB})
	}
	p.cfg.Unpacked = func() ([]sandbox.ImageRoot, error) { return roots, nil }
}

func well(t *testing.T) *patient {
	t.Helper()
	dir, err := os.MkdirTemp("", "doc")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	sock := filepath.Join(dir, "e.sock")
	l, err := net.Listen("unix", sock)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	p := &patient{
		engine: &fakeEngine{host: "unix://" + sock, facts: dockerclient.Facts{
			Version: "24.0.7", API: "1.43", System: "Debian", Kernel: "6.1", Arch: "x86_64", CgroupVersion: "2", CgroupDriver: "systemd",
			StorageDriver: "overlay2", RootDir: dir, Security: []string{"name=apparmor", "name=seccomp,profile=builtin"},
			OCIRuntimes: []string{"runc"}, DefaultRuntime: "runc", Memory: true, Swap: true, CPU: true, PIDs: true, Time: time.Now(),
		}},
		svc:  &fakeService{languages: []api.LanguageInfo{{Language: sandbox.Language{Name: "python"}, Present: true}}},
		proc: filepath.Join(dir, "proc"),
	}
	p.sysctl(t, "user/max_user_namespaces", "1000")
	p.sysctl(t, "fs/inotify/max_user_watches", "100000")
	p.sysctl(t, "fs/inotify/max_user_instances", "128")
	p.cfg = doctor.Config{
		Engine: p.engine, StateDir: filepath.Join(dir, "state"), RuntimeDir: filepath.Join(dir, "run"), MaxRuntimeDir: 63, Watches: 1000,
		Agent: program(t, dir, 0x3e, false), Runtimes: has(api.RuntimeInfo{Name: "docker", Default: true, Available: true, Engine: "Docker Engine 24.0.7"}),
		Host: doctor.Host{
			Proc: p.proc, UID: os.Geteuid,
			Room:    func(string) (doctor.Room, error) { return doctor.Room{Free: sandbox.TiB}, nil },
			Hardens: func() error { return nil },
		},
	}
	for _, d := range []string{p.cfg.StateDir, p.cfg.RuntimeDir} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// has is a list of runtimes.
func has(infos ...api.RuntimeInfo) func(context.Context) ([]api.RuntimeInfo, error) {
	return func(context.Context) ([]api.RuntimeInfo, error) { return infos, nil }
}

func (p *patient) sysctl(t *testing.T, name, value string) {
	t.Helper()
	path := filepath.Join(p.proc, "sys", name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(value+"\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// program writes the head of an ELF file: of a machine, with a loader or not.
func program(t *testing.T, dir string, machine byte, loader bool) string {
	t.Helper()
	head := make([]byte, 64+56)
	copy(head, "\x7fELF\x02\x01\x01")
	head[16], head[18], head[20] = 2, machine, 1
	head[32], head[52], head[54], head[56] = 64, 64, 56, 1 // one program header behind
	head[64] = 1                                           // PT_LOAD
	if loader {
		head[64] = 3 // PT_INTERP
	}
	path := filepath.Join(dir, fmt.Sprintf("agent-%x-%v", machine, loader))
	if err := os.WriteFile(path, head, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func (p *patient) examine(t *testing.T) map[string]api.Check {
	t.Helper()
	var svc api.Service
	if p.cfg.Broken == nil {
		svc = p.svc
	}
	found, err := doctor.New(p.cfg).Examine(t.Context(), svc)
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]api.Check{}
	for _, c := range found {
		if c.Name == "" || c.Detail == "" || by[c.Name].Name != "" || (c.Mend == "") != (c.Status == api.CheckOK) {
			t.Errorf("check %+v", c)
		}
		by[c.Name] = c
	}
	return by
}

func TestWell(t *testing.T) {
	t.Parallel()
	found := well(t).examine(t)
	if len(found) != 25 {
		t.Errorf("%d checks, want 25", len(found))
	}
	for name, c := range found {
		if c.Status != api.CheckOK {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// Each fault shows in its own line, with its mend, and in no other than those
// that hang on it.
func TestFaults(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name         string
		do           func(*testing.T, *patient)
		check        string
		status       api.CheckStatus
		detail, mend string
	}{
		{"remote", func(_ *testing.T, p *patient) { p.engine.host = "tcp://far:2376" }, "engine", api.CheckWarning, "tcp://far:2376", "DOCKER_HOST"},
		{"several runtimes", func(_ *testing.T, p *patient) {
			p.cfg.Runtimes = has(api.RuntimeInfo{Name: "docker", Error: "nobody answers", Hint: "start it"}, api.RuntimeInfo{Name: "jail", Default: true, Available: true, Engine: "jail 1.2"})
		}, "runtimes", api.CheckOK, "docker: not available here: nobody answers (mend: start it); jail (default): jail 1.2", ""},
		{"no usual runtime", func(_ *testing.T, p *patient) {
			p.cfg.Runtimes = has(api.RuntimeInfo{Name: "docker", Default: true, Error: "nobody answers", Hint: "start it"}, api.RuntimeInfo{Name: "jail", Available: true, Engine: "jail 1.2"})
		}, "runtimes", api.CheckError, "not available here: nobody answers (mend: start it); jail: jail 1.2", "start it"},
		{"an unknown default", func(_ *testing.T, p *patient) {
			p.cfg.Runtimes = has(api.RuntimeInfo{Name: "jail", Available: true, Engine: "jail 1.2"})
		}, "runtimes", api.CheckError, "the default is none of them: jail: jail 1.2", "CAISSON_RUNTIME"},
		{"no cgroups", func(_ *testing.T, p *patient) { p.engine.facts.CgroupDriver = "none" }, "cgroup", api.CheckError, "limits nothing", "unified"},
		{"old API", func(_ *testing.T, p *patient) { p.engine.facts.CgroupVersion = "" }, "cgroup", api.CheckWarning, "not told", "20.10"},
		{"no swap limit", func(_ *testing.T, p *patient) { p.engine.facts.Swap = false }, "limits", api.CheckError, "limit swap,", "swapaccount=1"},
		{"rootless", func(_ *testing.T, p *patient) {
			p.engine.facts.CPU, p.engine.facts.Security = false, append(p.engine.facts.Security, "name=rootless")
		}, "limits", api.CheckError, "limit cpu,", "Delegate="},
		{"vfs", func(_ *testing.T, p *patient) { p.engine.facts.StorageDriver = "vfs" }, "storage", api.CheckWarning, "copies", "overlay2"},
		{"aufs", func(_ *testing.T, p *patient) { p.engine.facts.StorageDriver = "aufs" }, "storage", api.CheckWarning, "deprecated", "overlay2"},
		{"no seccomp", func(_ *testing.T, p *patient) { p.engine.facts.Security = []string{"name=apparmor"} }, "seccomp", api.CheckError, "no system calls", "CONFIG_SECCOMP_FILTER"},
		{"unconfined", func(_ *testing.T, p *patient) {
			p.engine.facts.Security = []string{"name=apparmor", "name=seccomp,profile=unconfined"}
		}, "seccomp", api.CheckWarning, "default profile", "daemon.json"},
		{"no AppArmor", func(_ *testing.T, p *patient) { p.engine.facts.Security = []string{"name=seccomp,profile=default"} }, "apparmor", api.CheckWarning, "neither", "apt-get install apparmor"},
		{"SELinux", func(_ *testing.T, p *patient) {
			p.engine.facts.Security = []string{"name=seccomp,profile=default", "name=selinux"}
		}, "apparmor", api.CheckOK, "SELinux", ""},
		{"userns-remap", func(_ *testing.T, p *patient) {
			p.engine.facts.Security = append(p.engine.facts.Security, "name=userns")
		}, "user_mapping", api.CheckWarning, "no workspace can be a folder of the host", "userns-remap"},
		{"mapped by a rootless engine", func(_ *testing.T, p *patient) {
			p.engine.facts.Security = append(p.engine.facts.Security, "name=rootless")
		}, "user_mapping", api.CheckWarning, "no workspace can be a folder of the host", "files push"},
		{"no Landlock", func(_ *testing.T, p *patient) {
			p.cfg.Host.Hardens = func() error { return errors.New("no Landlock") }
		}, "hardening", api.CheckWarning, "no Landlock", "5.19"},
		{"starts on an old kernel", func(_ *testing.T, p *patient) { p.engine.facts.Kernel = "5.10.0-28-amd64" }, "starts", api.CheckWarning, "5.10.0-28-amd64 is too old", "5.19"},
		{"starts on riscv64", func(_ *testing.T, p *patient) { p.engine.facts.Arch = "riscv64" }, "starts", api.CheckWarning, "not known on riscv64", "aarch64"},
		{"starts under gVisor", func(_ *testing.T, p *patient) {
			p.engine.facts.DefaultRuntime, p.engine.facts.OCIRuntimes = "runsc", []string{"runc", "runsc"}
		}, "starts", api.CheckWarning, "runsc may have a kernel of its own", "runc"},
		{"a kernel of its own", func(_ *testing.T, p *patient) {
			p.engine.facts.DefaultRuntime, p.engine.facts.OCIRuntimes = "runsc", []string{"runc", "runsc"}
		}, "hardening", api.CheckWarning, "runsc", "--oci-runtime"},
		{"no userns", func(t *testing.T, p *patient) { p.sysctl(t, "user/max_user_namespaces", "0") }, "user_namespaces", api.CheckWarning, "no user namespace", "sysctl -w user.max_user_namespaces"},
		{"userns for root", func(t *testing.T, p *patient) {
			p.sysctl(t, "kernel/unprivileged_userns_clone", "0")
			p.cfg.Host.UID = func() int { return 0 }
		}, "user_namespaces", api.CheckOK, "can be made", ""},
		{"few watches", func(t *testing.T, p *patient) { p.sysctl(t, "fs/inotify/max_user_watches", "7999") }, "watches", api.CheckWarning,
			"7999 folders, of all sandboxes together, each of which watches up to 1000", "sysctl -w fs.inotify.max_user_watches=8000"},
		{"few watchers", func(t *testing.T, p *patient) { p.sysctl(t, "fs/inotify/max_user_instances", "7") }, "watches", api.CheckWarning,
			"7 sandboxes at most", "sysctl -w fs.inotify.max_user_instances=128"},
		{"watches elsewhere", func(_ *testing.T, p *patient) { p.engine.host = "tcp://far:2376" }, "watches", api.CheckOK, "the engine's host", ""},
		{"no OCI runtimes", func(_ *testing.T, p *patient) { p.engine.facts.OCIRuntimes = nil }, "oci_runtimes", api.CheckWarning, "none", "runtimes"},
		{"absent default", func(_ *testing.T, p *patient) { p.engine.facts.DefaultRuntime = "kata" }, "oci_runtimes", api.CheckError, "kata", "default-runtime"},
		{"clock ahead", func(_ *testing.T, p *patient) { p.engine.facts.Skew = time.Minute }, "clock", api.CheckWarning, "1m0s ahead of", "set-ntp"},
		{"clock behind", func(_ *testing.T, p *patient) { p.engine.facts.Skew = -time.Minute }, "clock", api.CheckWarning, "1m0s behind", "set-ntp"},
		{"slow answer", func(_ *testing.T, p *patient) {
			p.engine.facts.Skew, p.engine.facts.SkewUncertainty = 6*time.Second, 4*time.Second
		}, "clock", api.CheckOK, "within 10s", ""},
		{"no clock", func(_ *testing.T, p *patient) { p.engine.facts.Time = time.Time{} }, "clock", api.CheckWarning, "not tell", "date"},
		{"broken", func(_ *testing.T, p *patient) {
			p.cfg.Broken = sandbox.Errorf(sandbox.Internal, "the store is corrupt").WithHint("restore it")
		}, "service", api.CheckError, "the store is corrupt", "restore it"},
		{"images absent", func(_ *testing.T, p *patient) {
			p.svc.languages = append(p.svc.languages, api.LanguageInfo{Language: sandbox.Language{Name: "node"}})
		}, "images", api.CheckWarning, "absent: node; present: python", "caisson images build node"},
		{"images unknown", func(_ *testing.T, p *patient) { p.svc.err = errors.New("the list is broken") }, "images", api.CheckError, "the list is broken", "images list"},
		{"sizes", func(t *testing.T, p *patient) {
			dir := filepath.Join(p.cfg.StateDir, "changes", "x")
			if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "pack"), make([]byte, 3<<20), 0o600)); err != nil {
				t.Fatal(err)
			}
		}, "state_size", api.CheckOK, "7 events 0 B, 3 questions 2.0 KiB, changes 3.0 MiB", ""},
		{"much audit", func(_ *testing.T, p *patient) { p.svc.events = 3 * sandbox.GiB }, "state_size", api.CheckWarning, "7 events 3.0 GiB", "audit prune"},
		{"nothing unpacked", func(*testing.T, *patient) {}, "unpacked", api.CheckOK, "no image is", ""},
		{"unpacked", func(_ *testing.T, p *patient) { p.unpacked("shell:12", p.cfg.StateDir) }, "unpacked", api.CheckOK, "shell:12, 2.0 MiB", ""},
		{"unpacked twice", func(_ *testing.T, p *patient) { p.unpacked("shell:12", p.cfg.StateDir, p.cfg.StateDir) }, "unpacked", api.CheckWarning,
			"shell:12, 4.0 MiB, of which 2.0 MiB", "images prune"},
		{"unpacked and gone", func(_ *testing.T, p *patient) { p.unpacked("shell:12", "/nonexistent") }, "unpacked", api.CheckError, "/nonexistent is missing", "images unpack shell:12"},
		{"unpacked unknown", func(_ *testing.T, p *patient) {
			p.cfg.Unpacked = func() ([]sandbox.ImageRoot, error) { return nil, errors.New("a note is broken") }
		}, "unpacked", api.CheckError, "a note is broken", "roots"},
		{"orphans", func(_ *testing.T, p *patient) {
			p.svc.orphans = []sandbox.Orphan{{Kind: "sandbox"}, {Kind: "volume"}, {Kind: "sandbox"}}
		}, "orphans", api.CheckWarning, "2 of kind sandbox, 1 of kind volume", "caisson gc"},
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

func want(t *testing.T, c api.Check, status api.CheckStatus, detail, mend string) {
	t.Helper()
	if c.Status != status || !strings.Contains(c.Detail, detail) || !strings.Contains(c.Mend, mend) {
		t.Errorf("check %+v\nwant %s, %q, mend %q", c, status, detail, mend)
	}
}

// Without an engine every line is there, and none claims to know.
func TestEngineUnreachable(t *testing.T) {
	t.Parallel()
	for name, breakIt := range map[string]func(*patient){
		"unreachable": func(p *patient) {
			p.engine.err = sandbox.Errorf(sandbox.Unavailable, "nobody answers").WithHint("start it")
		},
		"no client": func(p *patient) {
			p.cfg.Engine, p.cfg.EngineErr = nil, sandbox.Errorf(sandbox.Invalid, "nobody answers").WithHint("start it")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := well(t)
			breakIt(p)
			found := p.examine(t)
			want(t, found["engine"], api.CheckError, "nobody answers", "start it")
			for _, c := range []string{"cgroup", "limits", "storage", "seccomp", "apparmor", "starts", "oci_runtimes", "clock", "engine_disk", "images", "orphans"} {
				want(t, found[c], api.CheckWarning, "not known", "mend the engine")
			}
			for _, c := range []string{"agent", "state_dir", "runtime_dir", "service"} {
				want(t, found[c], api.CheckOK, "", "")
			}
		})
	}
}

// A real client of an engine that says what a real one says.
func TestOverASocket(t *testing.T) {
	t.Parallel()
	p := well(t)
	p.cfg.Engine = dockertest.Fake(t, "1.41", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"ServerVersion":"20.10.24","MemoryLimit":true,"SwapLimit":true,"CpuCfsQuota":true,"CgroupDriver":"cgroupfs",
			"CgroupVersion":"1","Driver":"overlay2","Runtimes":{"runc":{}},"DefaultRuntime":"runc","SecurityOptions":["name=seccomp,profile=default"]}`)
	})
	found := p.examine(t)
	want(t, found["engine"], api.CheckOK, "engine 20.10.24, API 1.41", "")
	want(t, found["cgroup"], api.CheckOK, "version 1, driver cgroupfs", "")
	want(t, found["limits"], api.CheckError, "cannot limit pids", "kernel's command line")
	want(t, found["oci_runtimes"], api.CheckOK, "runc (default)", "")
	want(t, found["clock"], api.CheckWarning, "does not tell", "date")
}

// A question that hangs ends, and the caller's end ends all of it.
func TestHangs(t *testing.T) {
	t.Parallel()
	p := well(t)
	p.cfg.Patience = 2 * time.Second
	p.cfg.Engine = dockertest.Fake(t, "1.41", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	want(t, p.examine(t)["engine"], api.CheckError, "deadline exceeded", "docker info")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := doctor.New(p.cfg).Examine(ctx, p.svc); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
}

package manager_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/caisson-dev/caisson/images"
	"github.com/caisson-dev/caisson/internal/dockerclient"
	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/docker"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/store/sqlite"
	"github.com/caisson-dev/caisson/store/storetest"
)

// daemon is an engine of the test's own, which may be stopped.
type daemon struct {
	dir string
	cmd *exec.Cmd
}

func (d *daemon) socket() string { return filepath.Join(d.dir, "e.sock") }

func (d *daemon) start(t testing.TB) {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(d.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	d.cmd = exec.Command("dockerd", "--host", "unix://"+d.socket(), "--data-root", d.dir+"/data", "--exec-root", d.dir+"/exec",
		"--pidfile", d.dir+"/pid", "--iptables=false", "--ip6tables=false", "--bridge=none")
	d.cmd.Stdout, d.cmd.Stderr = log, log
	// In a network of its own: an engine without a bridge removes docker0, which
	// would be that of the machine's engine.
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
}

func (d *daemon) stop(t testing.TB) {
	t.Helper()
	if d.cmd == nil {
		return
	}
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("stop the engine: %v", err)
	}
	_ = d.cmd.Wait() // its code says nothing of use
	d.cmd = nil
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Error(err)
	}
	for line := range strings.Lines(string(b)) {
		if point := strings.Fields(line)[4]; strings.HasPrefix(point, d.dir+"/") {
			// Nobody can remove the container then, and the engine can't either.
			t.Errorf("a container was started while the engine shut down: it left a mount at %s", point)
			if err := syscall.Unmount(point, 0); err != nil {
				t.Error(err)
			}
		}
	}
}

// newDaemon starts an engine, and gives it the shell's image from the other.
func newDaemon(t *testing.T) (*daemon, *dockerclient.Client) {
	t.Helper()
	kit := enginetest.New(t)
	shell := kit.Image(t, "shell")
	if _, err := exec.LookPath("dockerd"); err != nil || os.Geteuid() != 0 {
		t.Skip("needs root and dockerd, to have an engine of its own")
	}
	dir, err := os.MkdirTemp("/tmp", "caisd")
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{dir: dir}
	t.Cleanup(func() {
		d.stop(t)
		if t.Failed() {
			b, _ := os.ReadFile(filepath.Join(dir, "log"))
			t.Logf("the engine said: %s", b[max(0, len(b)-2000):])
		}
		_ = os.RemoveAll(dir)
	})
	d.start(t)
	engine, err := dockerclient.New(dockerclient.Config{Getenv: func(name string) string {
		if name == "DOCKER_HOST" {
			return "unix://" + d.socket()
		}
		return ""
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	until(t, "the engine answers", func() bool {
		api, err := engine.API(t.Context())
		if err == nil {
			_, err = api.Ping(t.Context())
		}
		return err == nil
	})
	tar, err := kit.API.ImageSave(t.Context(), []string{shell.Ref})
	if err != nil {
		t.Fatal(err)
	}
	defer tar.Close()
	api, err := engine.API(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := api.ImageLoad(t.Context(), tar)
	if err != nil {
		t.Fatal(err)
	}
	defer loaded.Body.Close()
	if _, err := io.Copy(io.Discard, loaded.Body); err != nil {
		t.Fatal(err)
	}
	return d, engine
}

// TestEngineRestarted stops an engine under load and starts it again. Meanwhile
// errors say so; afterwards all goes on without anybody's help.
func TestEngineRestarted(t *testing.T) {
	t.Parallel()
	d, engine := newDaemon(t)
	state := t.TempDir()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: state})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	store, err := images.New(images.Config{Engine: engine, StateDir: filepath.Join(state, "images")})
	if err != nil {
		t.Fatal(err)
	}
	rt, err := docker.New(docker.Config{Engine: engine, Agent: enginetest.Agent(t), Base: filepath.Join(d.dir, "s")})
	if err != nil {
		t.Fatal(err)
	}
	m, err := manager.New(manager.Config{
		Patience: enginetest.Patience, Runtimes: runtimes.Only(docker.Name, rt), Images: store, Gate: manager.Unjudged, Store: s, StateID: s.ID(), LockDir: filepath.Join(state, "locks"),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if _, err := m.CreateSession(t.Context(), sandbox.SessionOptions{Name: "work"}); err != nil {
		t.Fatal(err)
	}
	sh(t, m, "work", "echo kept > kept")
	if _, err := m.StartIn(t.Context(), "work", sandbox.Run{Command: []string{"sleep", "1000"}}, sandbox.Local{}); err != nil {
		t.Fatal(err)
	}
	ctx, stopLoad := context.WithCancel(t.Context())
	var wg, up sync.WaitGroup
	for _, name := range []string{"work", "work", "work", "one", "two", "three"} {
		if name != "work" {
			if _, err := m.CreateSession(t.Context(), sandbox.SessionOptions{Name: name}); err != nil {
				t.Fatal(err)
			}
		}
		up.Add(1)
		wg.Go(func() {
			first := sync.OnceFunc(up.Done)
			defer first()
			for ctx.Err() == nil {
				res, err := m.ExecIn(ctx, name, sandbox.Run{Command: []string{"sleep", "0.05"}}, sandbox.Streams{})
				first()
				if ctx.Err() != nil {
					return
				}
				switch {
				case err != nil && sandbox.KindOf(err) != sandbox.Unavailable:
					t.Errorf("while the engine is away: kind %v: %v", sandbox.KindOf(err), err)
				case err == nil && res.Code != 0 && res.Reason != sandbox.ReasonInfra:
					t.Errorf("while the engine is away: %s, code %d, %s", res.Reason, res.Code, res.Cause)
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	// A container that is being started while its engine is told to stop can be
	// left with a mount by the engine itself; so all have started by then.
	up.Wait()
	d.stop(t)
	if _, err := m.Run(t.Context(), sandbox.Run{Language: "shell", Code: "true"}, sandbox.Streams{}); !errors.Is(err, sandbox.Unavailable) || sandbox.HintOf(err) == "" {
		t.Errorf("a run without an engine: %v", err)
	}
	d.start(t)
	until(t, "it goes on", func() bool {
		res, err := m.ExecIn(t.Context(), "work", sandbox.Run{Command: []string{"cat", "kept"}}, sandbox.Streams{})
		return err == nil && string(res.Stdout) == "kept\n"
	})
	stopLoad()
	wg.Wait()
	if rec, err := m.Recover(t.Context()); err != nil || len(rec.Failures) > 0 {
		t.Errorf("recover: %+v, %v", rec, err)
	}
	for _, name := range []string{"work", "one", "two", "three"} {
		if err := m.RemoveSession(t.Context(), name, true); err != nil {
			t.Errorf("remove: %v", err)
		}
	}
	api, err := engine.API(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	list, err := api.ContainerList(t.Context(), container.ListOptions{All: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		t.Errorf("left behind: %q, %s (%s), labels %v", c.Names, c.State, c.Status, c.Labels)
	}
	ends := map[sandbox.ID]int{}
	for e, err := range s.Events(t.Context(), sandbox.EventFilter{Kinds: []string{sandbox.EventExecStarted, sandbox.EventExecEnded}}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == sandbox.EventExecEnded {
			ends[e.Exec]++
		} else {
			ends[e.Exec] += 100
		}
	}
	for id, n := range ends {
		if n != 101 {
			t.Errorf("exec %s has %d starts and %d ends", id, n/100, n%100)
		}
	}
	storetest.Sound(t, s)
}

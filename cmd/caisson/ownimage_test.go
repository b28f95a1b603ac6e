package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/sandbox"
)

// TestOwnImage builds caisson's own image from docker/, on nothing and on a base
// that was assembled offline, and runs it by the compose file: a run, and once a
// session that lasts over two containers.
func TestOwnImage(t *testing.T) {
	t.Parallel()
	kit := enginetest.New(t)
	kit.Image(t, "python")
	for name, base := range map[string]string{"on nothing": "scratch", "on a base": kit.Image(t, "shell").Ref} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := compose{t, ownFolder(t), "caisson-test-" + string(sandbox.NewID()), base, strings.TrimPrefix(kit.Engine.Host(), "unix://")}
			t.Cleanup(c.remove)
			c.run("build")
			caisson := func(args ...string) string {
				return c.run(append([]string{"run", "--rm", "-T", "caisson"}, args...)...)
			}
			if out := caisson("run", "-l", "python", "-c", "print(6 * 7)"); out != "42\n" {
				t.Errorf("a run says %q", out)
			}
			if base != "scratch" {
				return
			}
			c.serves(caisson)
			caisson("session", "create", "work", "-l", "python")
			caisson("exec", "work", "-c", "open('x', 'w').write('kept')")
			if out := caisson("exec", "work", "-c", "print(open('x').read())"); out != "kept\n" {
				t.Errorf("the session says %q", out)
			}
			caisson("session", "rm", "work")
			if out := caisson("images", "list"); !regexp.MustCompile(`caisson/python:3\.11 +yes`).MatchString(out) {
				t.Errorf("images: %q", out)
			}
		})
	}
	t.Cleanup(func() { removeAgentVolume(t, kit) })
}

// ownFolder is what make image builds from, with programs of this tree.
func ownFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for from, to := range map[string]string{
		enginetest.Command(t): "bin/caisson", enginetest.Agent(t): "bin/caisson-agent", enginetest.Scanner(t): "bin/caisson-scan",
		"../../.dockerignore": ".dockerignore", "../../docker/compose.yaml": "docker/compose.yaml", "../../docker/caisson/Dockerfile": "docker/caisson/Dockerfile",
	} {
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		to = filepath.Join(dir, to)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// compose is a project of docker compose.
type compose struct {
	t                          *testing.T
	dir, project, base, socket string
}

// command is docker compose, or the command that it was before.
func (c compose) command(args ...string) *exec.Cmd {
	c.t.Helper()
	argv := []string{"docker", "compose"}
	if exec.Command("docker", "compose", "version").Run() != nil {
		enginetest.Tool(c.t, "docker-compose", "docker-compose")
		argv = []string{"docker-compose"}
	}
	argv = append(argv, "-p", c.project, "-f", filepath.Join(c.dir, "docker/compose.yaml"))
	cmd := exec.Command(argv[0], append(argv[1:], args...)...)
	cmd.Env = append(os.Environ(), "CAISSON_IMAGE="+c.image(), "CAISSON_BASE="+c.base, "CAISSON_DOCKER_SOCKET="+c.socket, "CAISSON_PORT=0")
	return cmd
}

func (c compose) image() string { return "caisson-test/own-" + c.project + ":1" }

// run returns what a command prints.
func (c compose) run(args ...string) string {
	c.t.Helper()
	cmd := c.command(args...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		c.t.Fatalf("%q: %v: %s%s", args, err, out, said.String())
	}
	return string(out)
}

// serves has the server of the file answer on loopback, who has a token and nobody
// else, and end in order.
func (c compose) serves(caisson func(args ...string) string) {
	c.t.Helper()
	all := strings.TrimSpace(caisson("token", "create", "--owner", "ann"))
	token := all[strings.LastIndex(all, "\n")+1:]
	c.run("up", "-d", "server")
	address := "http://" + strings.TrimSpace(c.run("port", "server", "7373"))
	if !strings.HasPrefix(address, "http://127.0.0.1:") {
		c.t.Fatalf("it is reached at %s", address)
	}
	for begin := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		res, err := http.Get(address + "/healthz")
		if err == nil {
			_ = res.Body.Close()
			break
		}
		if time.Since(begin) > time.Minute {
			c.t.Fatalf("it does not answer: %v; %s", err, c.run("logs", "server"))
		}
	}
	run := map[string]any{"language": "python", "code": "print(6 * 7)"}
	var res sandbox.Result
	if code := ask(c.t, address, "POST", "/v1/runs", token, run, &res); code != 200 || string(res.Stdout) != "42\n" {
		c.t.Errorf("a run over HTTP: %d, %+v", code, res)
	}
	if code := ask(c.t, address, "POST", "/v1/runs", "", run, nil); code != 401 {
		c.t.Errorf("without a token: %d", code)
	}
	c.run("stop", "server")
	if out, err := exec.Command("docker", "inspect", "-f", "{{.State.ExitCode}}", strings.TrimSpace(c.run("ps", "-aq", "server"))).Output(); err != nil || string(out) != "0\n" {
		c.t.Errorf("it ends with %q, %v; %s", out, err, c.run("logs", "server"))
	}
}

func (c compose) remove() {
	if out, err := c.command("--profile", "server", "down", "--volumes").CombinedOutput(); err != nil {
		c.t.Errorf("down: %v: %s", err, out)
	}
	if out, err := exec.Command("docker", "rmi", "--force", c.image()).CombinedOutput(); err != nil {
		c.t.Errorf("remove the image: %v: %s", err, out)
	}
}

// removeAgentVolume takes this tree's agent out of the engine, which keeps it
// for the next sandbox.
func removeAgentVolume(t *testing.T, kit *enginetest.Kit) {
	f, err := os.Open(kit.Agent)
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		t.Error(err)
	}
	name := fmt.Sprintf("caisson-agent-%x", sum.Sum(nil)[:8])
	if out, err := exec.Command("docker", "volume", "rm", name).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

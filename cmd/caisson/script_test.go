package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/internal/enginetest"
)

// The command line, as scripts that run the real program: testdata/script.
func TestScript(t *testing.T) { runScripts(t, nil) }

// TestScriptServer runs the same scripts, where caisson is on a server.
func TestScriptServer(t *testing.T) { runScripts(t, serveCaisson) }

// ignoreUnknown ignores a signal of the C library, which Go does not know, as a caller of
// tests may.
func ignoreUnknown(t *testing.T) {
	t.Helper()
	ignore := [4]uint64{1} // the kernel's struct sigaction, with SIG_IGN
	if _, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, 32, uintptr(unsafe.Pointer(&ignore)), 0, 8, 0, 0); errno != 0 {
		t.Fatal(errno)
	}
}

// runScripts runs all scripts, each with a server of its own where serve starts
// one.
func runScripts(t *testing.T, serve func(*testscript.Env, string) error) {
	ignoreUnknown(t)
	kit := enginetest.New(t)
	for _, lang := range []string{"python", "node", "shell"} {
		kit.Image(t, lang)
	}
	bin := t.TempDir()
	if err := os.Symlink(enginetest.Command(t), filepath.Join(bin, "caisson")); err != nil {
		t.Fatal(err)
	}
	policies, err := filepath.Abs("../../policies")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			base, err := os.MkdirTemp("/tmp", "cais") // short: a socket's path is bounded
			if err != nil {
				return err
			}
			env.Defer(func() {
				if rest, _ := filepath.Glob(base + "/s/*"); len(rest) > 0 {
					t.Errorf("left behind: %q", rest)
				}
				_ = os.RemoveAll(base)
			})
			env.Setenv("PATH", bin+":"+env.Getenv("PATH"))
			env.Setenv("CAISSON_AGENT", kit.Agent)
			env.Setenv("CAISSON_SCAN", enginetest.Scanner(t))
			env.Setenv("CAISSON_RUNTIME_DIR", base+"/s")
			env.Setenv("CAISSON_STATE_DIR", base+"/state")
			env.Setenv("DOCKER_HOST", kit.Engine.Host())
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("POLICIES", policies)
			if serve != nil {
				if err := serve(env, base); err != nil {
					return err
				}
			}
			env.Defer(func() { removeSessions(t, env) })
			return serveOthers(env)
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "root":
				return os.Geteuid() == 0, nil
			case "server": // the commands speak with one
				return serve != nil, nil
			}
			return false, fmt.Errorf("no condition %q", cond)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"caisson": func(ts *testscript.TestScript, neg bool, args []string) {
				if err := ts.Exec("caisson", args...); (err != nil) != neg {
					ts.Fatalf("unexpected end: %v", err)
				}
			},
			"exits":  func(ts *testscript.TestScript, _ bool, args []string) { exits(ts, args[0], args[1], args[2:]) },
			"readid": readID, "waitlog": waitLog, "registry": registry, "waitquestion": waitQuestion, "waitfile": waitFile,
			"nobody": nobody, "oneline": oneline, "jsonhas": jsonHas, "jsonkeys": jsonKeys,
			"execid": execID,
			"kept":   func(ts *testscript.TestScript, _ bool, args []string) { ts.Check(findKept(kit, ts, args[0], true)) },
			"gone":   func(ts *testscript.TestScript, _ bool, args []string) { ts.Check(findKept(kit, ts, args[0], false)) },
		},
	})
}

// serveOthers puts sockets into the script's folder behind which there is no
// engine that can be used.
func serveOthers(env *testscript.Env) error {
	for name, handler := range map[string]http.HandlerFunc{
		"old.sock": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Api-Version", "1.39")
			_, _ = io.WriteString(w, "OK")
		},
		"other.sock":  func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") },
		"closed.sock": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) },
	} {
		ln, err := net.Listen("unix", filepath.Join(env.WorkDir, name))
		if err != nil {
			return err
		}
		srv := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
		go func() { _ = srv.Serve(ln) }()
		env.Defer(func() { _ = srv.Close() })
	}
	return os.Chmod(filepath.Join(env.WorkDir, "closed.sock"), 0o600)
}

// exits runs a command and compares its exit code.
func exits(ts *testscript.TestScript, want, name string, args []string) {
	err := ts.Exec(name, args...)
	code := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if fmt.Sprint(code) != want {
		ts.Fatalf("exit code %d, not %s", code, want)
	}
}

// nobody runs "exits" as a user who may do nothing. The program, the agent and
// the sockets are moved to where that user can see them.
func nobody(ts *testscript.TestScript, _ bool, args []string) {
	dir, err := os.MkdirTemp("/tmp", "cais")
	ts.Check(err)
	ts.Defer(func() { _ = os.RemoveAll(dir) })
	ts.Check(os.Chmod(dir, 0o777))
	for from, to := range map[string]string{
		selfPath(ts): "caisson", ts.Getenv("CAISSON_AGENT"): "caisson-agent", ts.Getenv("CAISSON_SCAN"): "caisson-scan",
	} {
		b, err := os.ReadFile(from)
		ts.Check(err)
		ts.Check(os.WriteFile(filepath.Join(dir, to), b, 0o755))
		ts.Check(os.Chmod(filepath.Join(dir, to), 0o755))
	}
	sock := strings.TrimPrefix(ts.Getenv("DOCKER_HOST"), "unix://")
	ts.Check(os.Rename(sock, filepath.Join(dir, filepath.Base(sock))))
	cmd := exec.Command(filepath.Join(dir, "caisson"), args[3:]...)
	cmd.Dir = dir
	cmd.Env = []string{"DOCKER_HOST=unix://" + filepath.Join(dir, filepath.Base(sock)), "HOME=" + dir, "PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	err = cmd.Run()
	_, _ = io.WriteString(ts.Stderr(), stderr.String())
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || fmt.Sprint(exit.ExitCode()) != args[1] {
		ts.Fatalf("%v, not exit code %s; %s", err, args[1], stderr.String())
	}
}

// selfPath is the program that stands for caisson in the scripts.
func selfPath(ts *testscript.TestScript) string {
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if p := filepath.Join(dir, "caisson"); isFile(p) {
			return p
		}
	}
	ts.Fatalf("caisson is not on the path")
	return ""
}

func isFile(p string) bool {
	st, err := os.Stat(p)
	return err == nil && st.Mode().IsRegular()
}

// removeSessions removes what a script that failed has left.
func removeSessions(t *testing.T, env *testscript.Env) {
	caisson := func(args ...string) []byte {
		cmd := exec.Command(enginetest.Command(t), args...)
		cmd.Env = env.Vars
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("%q: %v", args, err)
		}
		return out
	}
	if _, err := os.Stat(env.Getenv("CAISSON_STATE_DIR")); err != nil {
		return
	}
	var list []struct{ Name string }
	if err := json.Unmarshal(caisson("session", "list", "--json"), &list); err != nil {
		t.Errorf("list sessions: %v", err)
	}
	for _, s := range list {
		caisson("session", "rm", "--force", s.Name)
	}
}

// readID puts the one word of a file into a variable: readid VAR FILE.
func readID(ts *testscript.TestScript, _ bool, args []string) {
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile(args[1])))
}

// waitLog waits until an exec has put out a word: waitlog SESSION EXEC WORD.
func waitLog(ts *testscript.TestScript, _ bool, args []string) {
	for range 1200 {
		ts.Check(ts.Exec("caisson", "logs", args[0], args[1]))
		if strings.Contains(ts.ReadFile("stdout"), args[2]) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	ts.Fatalf("exec %s never put out %q", args[1], args[2])
}

// waitQuestion waits until something is asked, and puts its id into a variable.
func waitQuestion(ts *testscript.TestScript, _ bool, args []string) {
	for range 1200 {
		ts.Check(ts.Exec("caisson", "approvals", "list", "--json"))
		var list []struct{ ID string }
		ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &list))
		if len(list) > 0 {
			ts.Setenv(args[0], list[0].ID)
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	ts.Fatalf("nothing was asked")
}

// waitFile waits until a file holds a word: waitfile FILE WORD.
func waitFile(ts *testscript.TestScript, _ bool, args []string) {
	for range 1200 {
		if b, err := os.ReadFile(ts.MkAbs(args[0])); err == nil && strings.Contains(string(b), args[1]) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	ts.Fatalf("%s never held %q", args[0], args[1])
}

// oneline checks that standard error has one line, which says what to do.
func oneline(ts *testscript.TestScript, _ bool, _ []string) {
	text := ts.ReadFile("stderr")
	if strings.Count(text, "\n") != 1 || !strings.Contains(text, "; ") {
		ts.Fatalf("not one line with what to do next: %q", text)
	}
}

func readObject(ts *testscript.TestScript, name string) map[string]any {
	text := ts.ReadFile(name)
	if strings.Count(text, "\n") != 1 {
		ts.Fatalf("not one line: %q", text)
	}
	var object map[string]any
	ts.Check(json.Unmarshal([]byte(text), &object))
	return object
}

// jsonHas compares fields: jsonhas FILE a.b=value …
func jsonHas(ts *testscript.TestScript, _ bool, args []string) {
	object := readObject(ts, args[0])
	for _, arg := range args[1:] {
		path, want, _ := strings.Cut(arg, "=")
		var at any = object
		for key := range strings.SplitSeq(path, ".") {
			if list, is := at.([]any); is {
				at = nil
				if i, err := strconv.Atoi(key); err == nil && i < len(list) {
					at = list[i]
				}
				continue
			}
			inner, _ := at.(map[string]any)
			at = inner[key]
		}
		if got := strings.ReplaceAll(fmt.Sprint(at), "\n", `\n`); got != want {
			ts.Fatalf("%s is %q, not %q", path, got, want)
		}
	}
}

// execID puts the id of a result into a variable: execid NAME FILE.
func execID(ts *testscript.TestScript, _ bool, args []string) {
	id, _ := readObject(ts, args[1])["exec_id"].(string)
	ts.Setenv(args[0], id)
}

// jsonKeys checks that fields are there.
func jsonKeys(ts *testscript.TestScript, _ bool, args []string) {
	object := readObject(ts, args[0])
	for _, key := range args[1:] {
		if _, is := object[key]; !is {
			ts.Fatalf("no field %q in %v", key, object)
		}
	}
}

// findKept looks for the container of a result.
func findKept(kit *enginetest.Kit, ts *testscript.TestScript, file string, want bool) error {
	id, _ := readObject(ts, file)["sandbox"].(string)
	if id == "" {
		return errors.New("the result names no sandbox")
	}
	_, err := kit.API.ContainerInspect(context.Background(), "caisson-"+id)
	switch {
	case err != nil && want:
		return fmt.Errorf("the container of sandbox %s should be there: %w", id, err)
	case err == nil && !want:
		return fmt.Errorf("the container of sandbox %s should be gone", id)
	}
	return nil
}

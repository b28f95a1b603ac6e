package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/caisson-dev/caisson/internal/freeport"
	"github.com/caisson-dev/caisson/sandbox"
)

// registry runs Debian's docker-registry on loopback until the script's end. It
// puts its address into REGISTRY, a name that nothing else has into UNIQUE, and
// a tree for docker import into made.tar.
func registry(ts *testscript.TestScript, _ bool, _ []string) {
	addr := freeport.Address()
	config := fmt.Sprintf("version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: %s}}\nhttp: {addr: %q}\n", ts.MkAbs("registry"), addr)
	ts.Check(os.WriteFile(ts.MkAbs("registry.yml"), []byte(config), 0o600))
	cmd := exec.Command("docker-registry", "serve", ts.MkAbs("registry.yml"))
	ts.Check(cmd.Start())
	ts.Defer(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			ts.Check(conn.Close())
			break
		}
		if time.Now().After(deadline) {
			ts.Fatalf("the registry does not listen: %v", err)
		}
	}
	unique := string(sandbox.NewID())
	ts.Defer(func() {
		found, _ := exec.Command("docker", "images", "-q", "caisson-test/"+unique).Output()
		tools, _ := exec.Command("docker", "images", "-q", addr+"/tool").Output()
		for _, id := range strings.Fields(string(found) + string(tools)) {
			_ = exec.Command("docker", "rmi", "--force", id).Run() // one with two names is gone the second time
		}
	})
	var made bytes.Buffer
	w := tar.NewWriter(&made)
	ts.Check(w.WriteHeader(&tar.Header{Name: "made", Mode: 0o755, Size: int64(len(unique))}))
	_, err := w.Write([]byte(unique)) // no engine has this layer
	ts.Check(err)
	ts.Check(w.Close())
	ts.Check(os.WriteFile(ts.MkAbs("made.tar"), made.Bytes(), 0o600))
	ts.Setenv("REGISTRY", addr)
	ts.Setenv("UNIQUE", unique)
}

package enginetest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/client"
	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/internal/dockerclient"
)

// daemonPatience bounds the start of an engine.
const daemonPatience = time.Minute

// NewRemote starts a second engine, with data and a network namespace of its
// own, gives it the images of languages, and returns a kit of it that speaks
// with it over TCP with TLS alone. It needs root and dockerd, else the test is
// skipped.
func NewRemote(t testing.TB, languages ...string) *Kit {
	t.Helper()
	local := New(t)
	dir := daemonDir(t)
	writeCertificates(t, dir)
	const port = "2376"
	pid := startDaemon(t, dir, "ip link set lo up", "--host", "tcp://127.0.0.1:"+port, "--tlsverify",
		"--tlscacert", dir+"/ca.pem", "--tlscert", dir+"/cert.pem", "--tlskey", dir+"/key.pem")
	address := forward(t, pid, "127.0.0.1:"+port)
	engine, err := dockerclient.New(dockerclient.Config{ConfigDir: dir, Getenv: func(name string) string {
		return map[string]string{"DOCKER_HOST": "tcp://" + address, "DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": dir}[name]
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	api := awaitEngine(t, engine)
	for _, language := range languages {
		giveImage(t, local, api, language)
	}
	k := newKit(t, engine)
	k.TLS = dir
	return k
}

// NewMapped is [NewRemote] with an engine that maps users to others, as
// "userns-remap" does, on a Unix socket of this host's.
func NewMapped(t testing.TB, languages ...string) *Kit {
	t.Helper()
	local := New(t)
	dir := daemonDir(t)
	if err := os.Chmod(dir, 0o711); err != nil { // root of its containers goes through it
		t.Fatal(err)
	}
	prepare := "true"
	for name, text := range map[string]string{
		"subuid": "mapped:300000:65536\n", "subgid": "mapped:300000:65536\n",
		"passwd": "root:x:0:0:root:/root:/bin/sh\nmapped:x:999:999::/:/bin/false\n", "group": "root:x:0:\nmapped:x:999:\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		prepare += " && mount --bind " + filepath.Join(dir, name) + " /etc/" + name // for the engine alone
	}
	socket := "unix://" + dir + "/sock"
	startDaemon(t, dir, prepare, "--host", socket, "--userns-remap", "mapped")
	engine, err := dockerclient.New(dockerclient.Config{Host: socket})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	api := awaitEngine(t, engine)
	for _, language := range languages {
		giveImage(t, local, api, language)
	}
	return newKit(t, engine)
}

// daemonDir is a place for an engine of the test's own. It needs root and
// dockerd, else the test is skipped.
func daemonDir(t testing.TB) string {
	t.Helper()
	if _, err := exec.LookPath("dockerd"); err != nil || os.Geteuid() != 0 {
		t.Skip("needs root and dockerd, to have an engine of its own")
	}
	dir, err := os.MkdirTemp("/tmp", "caisr")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// startDaemon starts an engine with data, a network namespace and mounts of its
// own, in which prepare is run first, and returns its pid.
func startDaemon(t testing.TB, dir, prepare string, args ...string) int {
	t.Helper()
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command("sh", append([]string{"-c", "mount --make-rprivate / && " + prepare + ` && exec dockerd "$@"`, "sh", //nolint:noctx // it is stopped below, in order
		"--data-root", dir + "/data", "--exec-root", dir + "/exec", "--pidfile", dir + "/pid", "--iptables=false", "--ip6tables=false", "--bridge=none"}, args...)...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it has ended where this fails
		_ = cmd.Wait()                          // its code says nothing of use
		if t.Failed() {
			b, _ := os.ReadFile(filepath.Join(dir, "log"))
			t.Logf("the second engine said: %s", b[max(0, len(b)-2000):])
		}
	})
	return cmd.Process.Pid
}

// SSH gives the same engine behind an address of ssh: a command of that name,
// first in the path until the test's end, which does what ssh would have done at
// the other end. The kit must be of [NewRemote], and the test not parallel.
func (k *Kit) SSH(t *testing.T) *Kit {
	t.Helper()
	dir := t.TempDir()
	script := "#!/bin/sh\ncase \"$*\" in *far.example*'docker system dial-stdio') ;; *) echo \"ssh: $*\" >&2; exit 1;; esac\n" +
		"exec docker --host " + k.Engine.Host() + " --tlsverify --tlscacert " + k.TLS + "/ca.pem --tlscert " + k.TLS + "/cert.pem --tlskey " + k.TLS + "/key.pem system dial-stdio\n"
	if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	engine, err := dockerclient.New(dockerclient.Config{Host: "ssh://me@far.example", ConfigDir: dir, Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	return newKit(t, engine)
}

func awaitEngine(t testing.TB, engine *dockerclient.Client) *client.Client {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(daemonPatience); ; <-tick.C {
		api, err := engine.API(t.Context())
		if err == nil {
			return api
		}
		if time.Now().After(deadline) {
			t.Fatalf("the second engine does not answer: %v", err)
		}
	}
}

// giveImage copies a language's image from one engine to another.
func giveImage(t testing.TB, from *Kit, to *client.Client, language string) {
	t.Helper()
	tar, err := from.API.ImageSave(t.Context(), []string{from.Image(t, language).Ref})
	if err != nil {
		t.Fatal(err)
	}
	defer tar.Close()
	loaded, err := to.ImageLoad(t.Context(), tar)
	if err != nil {
		t.Fatal(err)
	}
	defer loaded.Body.Close()
	if _, err := io.Copy(io.Discard, loaded.Body); err != nil {
		t.Fatal(err)
	}
}

// forward listens on this namespace's loopback and carries each connection to an
// address in the network namespace of a process.
func forward(t testing.TB, pid int, address string) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it ends with the test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go carry(c.(*net.TCPConn), pid, address)
		}
	}()
	return ln.Addr().String()
}

func carry(c *net.TCPConn, pid int, address string) {
	defer c.Close()
	far, err := dialIn(pid, address)
	if err != nil {
		return
	}
	defer far.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(far, c)
		_ = far.CloseWrite()
	}()
	_, _ = io.Copy(c, far)
	_ = c.CloseWrite()
	<-done
}

// dialIn connects from within the network namespace of a process.
func dialIn(pid int, address string) (*net.TCPConn, error) {
	ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	type result struct {
		c   net.Conn
		err error
	}
	dialed := make(chan result, 1)
	go func() {
		// The thread goes back to where it was and lives on: its end would be that
		// of the programs that were started on it and die with their parent.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		own, err := os.Open("/proc/thread-self/ns/net")
		if err != nil {
			dialed <- result{nil, err}
			return
		}
		defer own.Close()
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			dialed <- result{nil, err}
			return
		}
		// A name or two addresses would be dialled on other threads.
		c, err := new(net.Dialer).DialContext(context.Background(), "tcp4", address)
		if back := unix.Setns(int(own.Fd()), unix.CLONE_NEWNET); back != nil {
			panic(back) // and never a thread in the wrong place
		}
		dialed <- result{c, err}
	}()
	r := <-dialed
	if r.err != nil {
		return nil, r.err
	}
	return r.c.(*net.TCPConn), nil
}

// writeCertificates makes ca.pem, and cert.pem with key.pem, which serve both an
// engine on 127.0.0.1 and its client.
func writeCertificates(t testing.TB, dir string) {
	t.Helper()
	caKey, key := newKey(t), newKey(t)
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test CA"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	caBytes, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	if err != nil {
		t.Fatal(err)
	}
	leafBytes, err := x509.CreateCertificate(rand.Reader, leaf, ca, &key.PublicKey, caKey)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"ca.pem": {Type: "CERTIFICATE", Bytes: caBytes}, "cert.pem": {Type: "CERTIFICATE", Bytes: leafBytes}, "key.pem": {Type: "PRIVATE KEY", Bytes: secret},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

package manager_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha512"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/bubblewrap"
	"github.com/caisson-dev/caisson/sandbox"
)

// secureSite serves as good.test over TLS, which its own authority vouches for.
func secureSite(t *testing.T, handler http.Handler) (s *site, authority []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "good.test"}, DNSNames: []string{"good.test", "bad.test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	s = &site{Server: httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.hits.Add(1)
		handler.ServeHTTP(w, r)
	}))}
	s.EnableHTTP2, s.Config.ErrorLog = true, log.New(io.Discard, "", 0) // some clients go away on purpose
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}
	s.StartTLS()
	t.Cleanup(s.Close)
	s.port = s.URL[strings.LastIndexByte(s.URL, ':')+1:]
	return s, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// pythonIndex is an index of packages with one, called tiny.
func pythonIndex(mux *http.ServeMux) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, text := range map[string]string{
		"tiny.py":                     "word = 'tiny and here'\n",
		"tiny-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
		"tiny-1.0.dist-info/WHEEL":    "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		"tiny-1.0.dist-info/RECORD":   "tiny.py,,\ntiny-1.0.dist-info/METADATA,,\ntiny-1.0.dist-info/WHEEL,,\ntiny-1.0.dist-info/RECORD,,\n",
	} {
		w, _ := z.Create(name) // into memory
		_, _ = w.Write([]byte(text))
	}
	_ = z.Close()
	const wheel = "/files/tiny-1.0-py3-none-any.whl"
	mux.HandleFunc("/simple/tiny/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, `<!DOCTYPE html><html><body><a href="%s">%s</a></body></html>`, wheel, path.Base(wheel))
	})
	mux.HandleFunc(wheel, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(b.Bytes()) })
}

// nodeRegistry is a registry with one package, and the files of a project that wants it.
// The project's lock knows the server only once that has begun.
func nodeRegistry(mux *http.ServeMux) (project func(base string) []sandbox.File) {
	var b bytes.Buffer
	g := gzip.NewWriter(&b)
	tw := tar.NewWriter(g)
	for name, text := range map[string]string{"package/package.json": `{"name":"tiny","version":"1.0.0","main":"i.js"}`, "package/i.js": "module.exports = 'tiny and here'\n"} {
		_ = tw.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}) // into memory
		_, _ = tw.Write([]byte(text))
	}
	_, _ = tw.Close(), g.Close()
	sum := sha512.Sum512(b.Bytes())
	mux.HandleFunc("/tiny/-/tiny-1.0.0.tgz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(b.Bytes()) })
	return func(base string) []sandbox.File {
		wants := map[string]any{"tiny": "1.0.0"}
		lock, _ := json.Marshal(map[string]any{"name": "p", "version": "1.0.0", "lockfileVersion": 3, "requires": true, "packages": map[string]any{
			"":                  map[string]any{"name": "p", "version": "1.0.0", "dependencies": wants},
			"node_modules/tiny": map[string]any{"version": "1.0.0", "resolved": base + "/tiny/-/tiny-1.0.0.tgz", "integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:])},
		}})
		about, _ := json.Marshal(map[string]any{"name": "p", "version": "1.0.0", "dependencies": wants})
		return []sandbox.File{{Path: "package.json", Data: about}, {Path: "package-lock.json", Data: lock}}
	}
}

// gitServer serves a repository of one commit as plain files.
func gitServer(t *testing.T, mux *http.ServeMux) {
	t.Helper()
	dir := t.TempDir()
	for _, line := range []string{
		"git init -q -b main work", "git -C work -c user.name=a -c user.email=a@a.test commit -q --allow-empty -m tiny-and-here",
		"git clone -q --bare work repo.git", "git -C repo.git update-server-info",
	} {
		words := strings.Fields(line)
		cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
		cmd.Dir = dir
		cmd.Env = append(cmd.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", line, err, out)
		}
	}
	mux.Handle("/repo.git/", http.StripPrefix("/repo.git/", http.FileServer(http.Dir(filepath.Join(dir, "repo.git")))))
}

// TestEgressClients has the clients that people use find the way by themselves: to a
// package index, a registry, a repository, over TLS that nobody opens, and to no host
// that is not listed.
func TestEgressClients(t *testing.T) {
	t.Parallel()
	enginetest.Bubblewrap(t)
	for program, pack := range map[string]string{"/usr/bin/pip3": "python3-pip", "/usr/bin/npm": "npm", "/usr/bin/git": "git", "/usr/bin/curl": "curl", "/usr/bin/node": "nodejs"} {
		enginetest.Tool(t, program, pack)
	}
	mux := http.NewServeMux()
	pythonIndex(mux)
	project := nodeRegistry(mux)
	gitServer(t, mux)
	mux.HandleFunc("/hello", func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "hello by %s from %s", r.Proto, strings.Split(r.Host, ":")[0])
	})
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = ws.CloseNow() }()
		for {
			kind, b, err := ws.Read(r.Context())
			if err != nil || ws.Write(r.Context(), kind, append([]byte("echo of "), b...)) != nil {
				return
			}
		}
	})
	s, authority := secureSite(t, mux)
	base := "https://good.test:" + s.port
	kit := enginetest.New(t)
	m, err := manager.New(manager.Config{
		Runtimes: runtimes.Only(bubblewrap.Name, kit.Jail(t)), Images: kit.Images, Gate: manager.Unjudged, Holder: kit.Holder, Patience: enginetest.Patience, Egress: s.config(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	const ca = "/workspace/ca.pem"
	env := []string{
		"SSL_CERT_FILE=" + ca, "PIP_CERT=" + ca, "GIT_SSL_CAINFO=" + ca, "CURL_CA_BUNDLE=" + ca, "NODE_EXTRA_CA_CERTS=" + ca, "npm_config_cafile=" + ca, "npm_config_cache=/tmp/npm",
		"npm_config_registry=" + base, "npm_config_update_notifier=false", "PIP_NO_CACHE_DIR=1", "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_BREAK_SYSTEM_PACKAGES=1", "HOME=/tmp",
	}
	const anotherName = "another name"
	run := func(t *testing.T, name, script, want string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := append(project(base), sandbox.File{Path: "ca.pem", Data: authority})
			res, err := m.Run(t.Context(), sandbox.Run{
				Command: []string{"/bin/sh", "-ec", strings.ReplaceAll(script, "BASE", base)}, Env: env, Files: files, Network: s.network(),
				ExecLimits: sandbox.ExecLimits{Timeout: sandbox.Duration(5 * time.Minute)},
			}, sandbox.Streams{})
			if err != nil || !strings.Contains(string(res.Stdout)+string(res.Stderr), want) {
				t.Errorf("%v: code %d\n%s%s", err, res.Code, res.Stdout, res.Stderr)
			}
			for _, c := range res.Connections {
				if (c.Verdict == sandbox.Allow) != (c.Host == "good.test" && name != anotherName) {
					t.Errorf("told %+v", c)
				}
			}
			if len(res.Connections) == 0 {
				t.Error("nothing is told")
			}
		})
	}
	for name, tt := range map[string]struct{ script, want string }{
		"pip":           {"/usr/bin/pip3 install -q --index-url BASE/simple --target lib tiny; PYTHONPATH=lib /usr/bin/python3 -c 'import tiny; print(tiny.word)'", "tiny and here"},
		"npm":           {"/usr/bin/npm ci --no-audit --no-fund; /usr/bin/node -p 'require(\"tiny\")'", "tiny and here"},
		"git":           {"git clone -q BASE/repo.git; git -C repo log --format=%s", "tiny-and-here"},
		"curl":          {"curl -sS --http1.1 BASE/hello", "hello by HTTP/1.1 from good.test"},
		"HTTP/2":        {"curl -sS --http2 BASE/hello", "hello by HTTP/2.0 from good.test"},
		"SOCKS":         {"curl -sS --proxy socks5h://${all_proxy#http://} BASE/hello", "hello by HTTP/2.0 from good.test"},
		"curl refused":  {"curl -sS https://bad.test:443/hello || echo it failed", "403"},
		"Python":        {"/usr/bin/python3 -c 'import urllib.request as r; print(r.urlopen(\"BASE/hello\").read().decode())'", "hello by HTTP/1.1 from good.test"},
		"Node":          {"/usr/bin/node -e 'require(\"https\").get(\"BASE/hello\", r => r.on(\"data\", d => console.log(\"\" + d)))'", "hello by HTTP/1.1 from good.test"},
		"fetch":         {"/usr/bin/node -e 'fetch(\"BASE/hello\").then(r => r.text()).then(console.log)'", "hello by HTTP/1.1 from good.test"},
		"fetch refused": {"/usr/bin/node -e 'fetch(\"https://bad.test/\").catch(e => console.log(e.cause.message))'", "the sandbox may not reach it: it is not on the list"},
		anotherName:     {"curl -sS --connect-to bad.test:443:good.test:" + s.port + " https://bad.test/hello || echo it failed", "it failed"},
	} {
		run(t, name, tt.script, tt.want)
	}
	run(t, "WebSocket", `/usr/bin/python3 -c '
import os, socket, ssl
host, port = os.environ["http_proxy"][7:].split(":")
c = socket.create_connection((host, int(port)))
c.sendall(b"CONNECT `+strings.TrimPrefix(base, "https://")+` HTTP/1.1\r\n\r\n")
while not c.recv(1 << 16).endswith(b"\r\n\r\n"): pass
c = ssl.create_default_context().wrap_socket(c, server_hostname="good.test")
c.sendall(b"GET /echo HTTP/1.1\r\nHost: good.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
f = c.makefile("rb")
while f.readline() != b"\r\n": pass
c.sendall(b"\x81\x85\0\0\0\0hello")
f.read(2); print(f.read(13).decode())'`, "echo of hello")
}

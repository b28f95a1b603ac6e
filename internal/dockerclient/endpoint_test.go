package dockerclient_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/internal/dockerclient"
	"github.com/caisson-dev/caisson/sandbox"
)

func write(t *testing.T, path, data string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

// addContext writes a context as `docker context create` does.
func addContext(t *testing.T, dir, name, host string) {
	t.Helper()
	sum := sha256.Sum256([]byte(name))
	meta, err := json.Marshal(map[string]any{
		"Name": name, "Metadata": map[string]any{"Description": "of a test"},
		"Endpoints": map[string]any{"docker": map[string]any{"Host": host, "SkipTLSVerify": false}},
	})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "contexts", "meta", hex.EncodeToString(sum[:]), "meta.json"), string(meta))
}

func TestWhichEngine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	addContext(t, dir, "lab", "tcp://lab.example:2375")
	addContext(t, dir, "far", "ssh://me@far.example")
	write(t, filepath.Join(dir, "config.json"), `{"currentContext":"far"}`)
	bare := t.TempDir()
	tests := []struct {
		name          string
		cfg           dockerclient.Config
		env           map[string]string
		host, context string
	}{
		{"nothing set", dockerclient.Config{ConfigDir: bare}, nil, "unix:///var/run/docker.sock", "default"},
		{"DOCKER_HOST", dockerclient.Config{ConfigDir: dir}, map[string]string{"DOCKER_HOST": "unix:///a"}, "unix:///a", "default"},
		{"host beats context", dockerclient.Config{ConfigDir: dir}, map[string]string{"DOCKER_HOST": "tcp://h:1", "DOCKER_CONTEXT": "lab"}, "tcp://h:1", "default"},
		{"DOCKER_CONTEXT", dockerclient.Config{ConfigDir: dir}, map[string]string{"DOCKER_CONTEXT": "lab"}, "tcp://lab.example:2375", "lab"},
		{"current context", dockerclient.Config{ConfigDir: dir}, nil, "ssh://me@far.example", "far"},
		{"DOCKER_CONFIG", dockerclient.Config{}, map[string]string{"DOCKER_CONFIG": dir}, "ssh://me@far.example", "far"},
		{"back to default", dockerclient.Config{ConfigDir: dir}, map[string]string{"DOCKER_CONTEXT": "default"}, "unix:///var/run/docker.sock", "default"},
		{"flag beats all", dockerclient.Config{ConfigDir: dir, Context: "lab"}, map[string]string{"DOCKER_HOST": "unix:///a"}, "tcp://lab.example:2375", "lab"},
		{"port left out", dockerclient.Config{ConfigDir: bare, Host: "tcp://h"}, nil, "tcp://h:2375", "default"},
		{"scheme left out", dockerclient.Config{ConfigDir: bare, Host: "h:99"}, nil, "tcp://h:99", "default"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.cfg.Getenv = environment(tc.env)
			c, err := dockerclient.New(tc.cfg)
			if err != nil {
				t.Fatal(err)
			}
			if c.Host() != tc.host || c.Context() != tc.context {
				t.Errorf("got %s of context %s, want %s of %s", c.Host(), c.Context(), tc.host, tc.context)
			}
			if c.Local() != strings.HasPrefix(tc.host, "unix:") {
				t.Errorf("Local is %v", c.Local())
			}
		})
	}
}

func TestUnusableConfiguration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	broken := t.TempDir()
	write(t, filepath.Join(broken, "config.json"), `{`)
	tests := []struct {
		name       string
		cfg        dockerclient.Config
		env        map[string]string
		kind       sandbox.Kind
		text, hint string
	}{
		{"no such context", dockerclient.Config{ConfigDir: dir, Context: "nope"}, nil, sandbox.NotFound, `"nope"`, "docker context ls"},
		{"bad scheme", dockerclient.Config{ConfigDir: dir}, map[string]string{"DOCKER_HOST": "gopher://x"}, sandbox.Invalid, "gopher", "unix:///path"},
		{"bad ssh", dockerclient.Config{ConfigDir: dir}, map[string]string{"DOCKER_HOST": "ssh://"}, sandbox.Invalid, "ssh", "ssh://user@host"},
		{"broken configuration", dockerclient.Config{ConfigDir: broken}, nil, sandbox.Invalid, "configuration", "config.json"},
		{"TLS without files", dockerclient.Config{ConfigDir: dir}, map[string]string{"DOCKER_HOST": "tcp://x:2376", "DOCKER_TLS_VERIFY": "1"}, sandbox.Invalid, "TLS files", "ca.pem"},
		{"old API asked for", dockerclient.Config{ConfigDir: dir}, map[string]string{"DOCKER_API_VERSION": "1.30"}, sandbox.Unsupported, "1.41", "unset DOCKER_API_VERSION"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.cfg.Getenv = environment(tc.env)
			_, err := dockerclient.New(tc.cfg)
			wantError(t, err, tc.kind, tc.text, tc.hint)
		})
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Api-Version", "1.44")
	}))
	t.Cleanup(srv.Close)
	host := "tcp://" + srv.Listener.Addr().String()
	certs := t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	write(t, filepath.Join(certs, "ca.pem"), string(ca))
	stranger := t.TempDir()
	write(t, filepath.Join(stranger, "ca.pem"), strangerCA)

	tests := []struct {
		name string
		env  map[string]string
		kind sandbox.Kind
	}{
		{"verified", map[string]string{"DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": certs}, 0},
		{"unverified", map[string]string{"DOCKER_TLS": "1", "DOCKER_CERT_PATH": stranger}, 0},
		{"another CA", map[string]string{"DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": stranger}, sandbox.Unavailable},
		{"plain", nil, sandbox.Unavailable},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := newClient(t, dockerclient.Config{Host: host, Getenv: environment(tc.env)})
			_, err := c.API(t.Context())
			if tc.kind == 0 && err != nil || tc.kind != 0 && !errors.Is(err, tc.kind) {
				t.Errorf("error %v, want kind %v", err, tc.kind)
			}
		})
	}
}

// TestSSH puts a command named ssh first in PATH that joins its standard
// streams to a fake engine's socket, as `docker system dial-stdio` would at
// the other end.
func TestSSH(t *testing.T) {
	host, _ := fakeEngine(t, "1.43", nil)
	dir := t.TempDir()
	args := filepath.Join(dir, "args")
	script := "#!/bin/sh\necho \"$@\" > " + args + "\nDOCKERCLIENT_TEST_PIPE=" + host + " exec " + os.Args[0] + "\n"
	path := filepath.Join(dir, "ssh")
	write(t, path, script)
	if err := os.Chmod(path, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	c := newClient(t, dockerclient.Config{Host: "ssh://me@far.example:2222"})
	if v, err := c.APIVersion(t.Context()); err != nil || v != "1.43" {
		t.Fatalf("version %q, %v", v, err)
	}
	got, err := os.ReadFile(args)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"-l me", "-p 2222", "far.example", "docker system dial-stdio"} {
		if !strings.Contains(string(got), want) {
			t.Errorf("ssh was run with %q, without %q", got, want)
		}
	}
}

// strangerCA is the certificate of an authority that signed nothing here.
const strangerCA = `-----BEGIN CERTIFICATE-----
MIIBSDCB76ADAgECAgEBMAoGCCqGSM49BAMCMBMxETAPBgNVBAMTCHN0cmFuZ2Vy
MCAXDTcwMDEwMTAwMDAwMFoYDzIwOTYxMDAyMDcwNjQwWjATMREwDwYDVQQDEwhz
dHJhbmdlcjBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABNq84FreJNLVrsD9A+0x
eqbqUHYp1WEdeElQkGGtUqxyYlydS/1BVEF8s1q31z2u9HqkmM0qmjGRxsZ7ADOE
R/+jMjAwMA8GA1UdEwEB/wQFMAMBAf8wHQYDVR0OBBYEFD0v2uVuMEN6TA5AEhx9
etC78Ne/MAoGCCqGSM49BAMCA0gAMEUCIQC1Vw3GaG5YtkSfff/cYZVd61xaswB7
js1RfWxGGdQOQwIgOLiGhvUKkmyHDuD0TdwV11TtsyaJNqOk5/JnQdlbGo0=
-----END CERTIFICATE-----
`

package images

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/registry"

	"github.com/caisson-dev/caisson/internal/freeport"
	"github.com/caisson-dev/caisson/sandbox"
)

// TestRealRegistry pushes an image to Debian's docker-registry and pulls it
// back.
func TestRealRegistry(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("docker-registry"); err != nil {
		t.Skip("needs docker-registry: apt-get install docker-registry")
	}
	tests := []struct {
		name      string
		tls, auth bool
	}{{"plain", false, false}, {"TLS", true, false}, {"authentication", false, true}, {"TLS and authentication", true, true}}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			made, err := f.Ensure(t.Context(), f.ref)
			if err != nil {
				t.Fatal(err)
			}
			addr := startRegistry(t, tc.tls, tc.auth)
			ref := addr + "/ann/thing:1"
			push(t, f, ref)
			s, _ := puller(t, ref)
			if tc.auth {
				if _, err := s.Pull(t.Context(), ref, sandbox.PullImageOptions{}); !errors.Is(err, sandbox.Denied) {
					t.Errorf("without credentials: %v (%v)", err, sandbox.KindOf(err))
				}
				auth := base64.StdEncoding.EncodeToString([]byte("ann:secret"))
				writeFile(t, filepath.Join(s.cfg.DockerConfig, "config.json"), []byte(`{"auths":{"`+addr+`":{"auth":"`+auth+`"}}}`))
			}
			img, err := s.Pull(t.Context(), ref, sandbox.PullImageOptions{})
			if err != nil || img.ID != made.ID {
				t.Errorf("pulled %+v, %v; want the ID %s that was pushed", img, err, made.ID)
			}
			pin, err := s.pinOf(t.Context(), ref)
			if err != nil || !strings.HasPrefix(pin.Digest, addr+"/ann/thing@sha256:") {
				t.Errorf("pin %+v, %v", pin, err)
			}
			secondClient(t, s, addr, pin.ImagePin, made.ID)
		})
	}
}

// secondClient has skopeo say what the registry has, and put it there under
// another name, which is pulled then.
func secondClient(t *testing.T, s *Store, addr string, pin sandbox.ImagePin, id string) {
	t.Helper()
	if _, err := exec.LookPath("skopeo"); err != nil {
		t.Log("skopeo, the second client, is not there: apt-get install skopeo")
		return
	}
	skopeo := func(args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "skopeo", args...).CombinedOutput()
		if err != nil {
			t.Fatalf("skopeo %v: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	const who = "ann:secret"
	was, now := "docker://"+addr+"/ann/thing:1", "docker://"+addr+"/ann/copy:2"
	if got := skopeo("inspect", "--tls-verify=false", "--creds", who, "--format", "{{.Digest}}", was); !strings.HasSuffix(pin.Digest, "@"+got) {
		t.Errorf("skopeo says %s, the pin %s", got, pin.Digest)
	}
	skopeo("copy", "--quiet", "--insecure-policy", "--src-tls-verify=false", "--dest-tls-verify=false", "--src-creds", who, "--dest-creds", who, was, now)
	ref := strings.TrimPrefix(now, "docker://")
	t.Cleanup(func() { (&fixture{engine: s.cfg.Engine, ref: ref}).remove(t) })
	if img, err := s.Pull(t.Context(), ref, sandbox.PullImageOptions{}); err != nil || img.ID != id {
		t.Errorf("pulled what skopeo pushed: %+v, %v; want %s", img, err, id)
	}
}

// annsPassword is "ann", "secret" as htpasswd writes it.
const annsPassword = "ann:$2a$04$PSIAcrLK4Wa5put3Ur4OLuwpih/qfNanjj6rh3yxffRSEkWVVVboy\n"

// startRegistry runs a registry on loopback until the test's end, and returns
// its address.
func startRegistry(t *testing.T, tls, auth bool) string {
	t.Helper()
	dir, addr := t.TempDir(), freeport.Address()
	config := fmt.Sprintf("version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: %s/data}}\nhttp:\n  addr: %s\n", dir, addr)
	if tls {
		writeCertificate(t, dir)
		config += fmt.Sprintf("  tls: {certificate: %s/cert.pem, key: %s/key.pem}\n", dir, dir)
	}
	if auth {
		writeFile(t, dir+"/htpasswd", []byte(annsPassword))
		config += fmt.Sprintf("auth: {htpasswd: {realm: test, path: %s/htpasswd}}\n", dir)
	}
	writeFile(t, dir+"/config.yml", []byte(config))
	cmd := exec.Command("docker-registry", "serve", dir+"/config.yml")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	eventually(t, "the registry to listen", func() bool {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	return addr
}

// writeCertificate makes cert.pem and key.pem for 127.0.0.1.
func writeCertificate(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir+"/cert.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}))
	writeFile(t, dir+"/key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
}

// push uploads the fixture's image under another name, and forgets it here.
func push(t *testing.T, f *fixture, ref string) {
	t.Helper()
	api := mustAPI(t, f)
	if err := api.ImageTag(t.Context(), f.ref, ref); err != nil {
		t.Fatal(err)
	}
	auth, err := registry.EncodeAuthConfig(registry.AuthConfig{Username: "ann", Password: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	body, err := api.ImagePush(t.Context(), ref, image.PushOptions{RegistryAuth: auth})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = body.Close() }()
	for dec := json.NewDecoder(body); ; {
		var m pullMessage
		if err := dec.Decode(&m); err == io.EOF {
			break
		} else if err != nil || m.Error != "" {
			t.Fatalf("push: %v %s", err, m.Error)
		}
	}
	for _, name := range []string{ref, f.ref} {
		if _, err := api.ImageRemove(t.Context(), name, image.RemoveOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

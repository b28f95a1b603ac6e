package images

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
)

// fakeRegistry serves one image, as well or as badly as its fields say.
type fakeRegistry struct {
	user, password string        // wanted, where user is set
	cutBlobs       int           // so many answers with the layer end half-way
	lie            bool          // the layer's bytes are not what its digest says
	hold           chan struct{} // the layer waits for this
	failManifests  int           // so many answers are 503
	drip           time.Duration // the layer comes in sixteen pieces, so far apart
	other          []byte        // is given for the manifest, where set
	moved          *fakeRegistry // has what the tag names, where set

	manifest, config, layer []byte

	mu     sync.Mutex
	asks   int      // questions for the manifest
	blobs  int      // answers with the layer
	ranges []string // that were asked for
}

const (
	typeManifest = "application/vnd.docker.distribution.manifest.v2+json"
	typeConfig   = "application/vnd.docker.container.image.v1+json"
	typeLayer    = "application/vnd.docker.image.rootfs.diff.tar.gzip"
)

// newRegistry makes an image with a layer of its own, so that no engine has
// it, and returns the registry and the image's reference.
func newRegistry(t *testing.T, arch string, tls bool) (*fakeRegistry, string) {
	t.Helper()
	noise := make([]byte, 512<<10)
	_, _ = rand.Read(noise)
	plain := tarOf(t, tar.Header{Typeflag: tar.TypeReg, Name: "noise", Mode: 0o644, Uname: string(noise)})
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	r := &fakeRegistry{layer: packed.Bytes()}
	r.config = mustJSON(t, map[string]any{
		"architecture": arch, "os": "linux", "config": map[string]any{"Env": []string{"FROM=registry"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{digest.FromBytes(plain).String()}},
	})
	part := func(kind string, data []byte) map[string]any {
		return map[string]any{"mediaType": kind, "size": len(data), "digest": digest.FromBytes(data).String()}
	}
	r.manifest = mustJSON(t, map[string]any{
		"schemaVersion": 2, "mediaType": typeManifest, "config": part(typeConfig, r.config), "layers": []any{part(typeLayer, r.layer)},
	})
	srv := httptest.NewUnstartedServer(r)
	srv.Config.ErrorLog = nil
	if tls {
		srv.StartTLS()
	} else {
		srv.Start()
	}
	t.Cleanup(srv.Close)
	return r, srv.Listener.Addr().String() + "/test/image:1"
}

// digest is the content digest of the image's manifest.
func (r *fakeRegistry) digest() string { return digest.FromBytes(r.manifest).String() }

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func nativeRegistry(t *testing.T, tls bool) (*fakeRegistry, string) {
	return newRegistry(t, runtime.GOARCH, tls)
}

// ServeHTTP answers as a registry of version 2 does.
func (r *fakeRegistry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if user, password, _ := req.BasicAuth(); r.user != "" && (user != r.user || password != r.password) {
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	w.Header().Set("Docker-Distribution-Api-Version", "registry/2.0")
	path := req.URL.Path
	switch {
	case path == "/v2/":
	case strings.HasPrefix(path, "/v2/test/image/manifests/"):
		r.serveManifest(w, strings.TrimPrefix(path, "/v2/test/image/manifests/"))
	case strings.HasSuffix(path, digest.FromBytes(r.config).String()):
		_, _ = w.Write(r.config)
	case strings.HasSuffix(path, digest.FromBytes(r.layer).String()):
		r.serveLayer(w, req)
	case r.moved != nil:
		r.moved.ServeHTTP(w, req)
	default:
		http.Error(w, `{"errors":[{"code":"NAME_UNKNOWN","message":"name unknown"}]}`, http.StatusNotFound)
	}
}

func (r *fakeRegistry) serveManifest(w http.ResponseWriter, tag string) {
	r.mu.Lock()
	r.asks++
	fail := r.failManifests > 0
	r.failManifests--
	r.mu.Unlock()
	switch {
	case r.moved != nil && tag != digest.FromBytes(r.manifest).String():
		r.moved.serveManifest(w, tag)
	case fail:
		w.WriteHeader(http.StatusServiceUnavailable)
	case tag != "1" && tag != digest.FromBytes(r.manifest).String():
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}`))
	default:
		w.Header().Set("Content-Type", typeManifest)
		w.Header().Set("Docker-Content-Digest", digest.FromBytes(r.manifest).String())
		if r.other != nil {
			_, _ = w.Write(r.other)
			return
		}
		_, _ = w.Write(r.manifest)
	}
}

func (r *fakeRegistry) serveLayer(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	r.blobs++
	r.ranges = append(r.ranges, req.Header.Get("Range"))
	cut := r.cutBlobs > 0
	r.cutBlobs--
	r.mu.Unlock()
	data := r.layer
	if r.lie {
		data = bytes.Clone(data)
		data[len(data)/2] ^= 1
	}
	if cut {
		w.Header().Set("Content-Length", "1000000")
		_, _ = w.Write(data[:len(data)/2])
		panic(http.ErrAbortHandler)
	}
	if r.drip > 0 {
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
		for piece := range slices.Chunk(data, len(data)/16+1) {
			_, _ = w.Write(piece)
			w.(http.Flusher).Flush()
			time.Sleep(r.drip)
		}
		return
	}
	if r.hold != nil {
		_, _ = w.Write(data[:1000])
		w.(http.Flusher).Flush()
		select {
		case <-r.hold:
		case <-req.Context().Done():
		}
		return
	}
	http.ServeContent(w, req, "", time.Time{}, bytes.NewReader(data))
}

// asked returns how often the manifest was asked for.
func (r *fakeRegistry) asked() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asks
}

// counts returns how often the layer was asked for, and with which ranges.
func (r *fakeRegistry) counts() (blobs int, ranges string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.blobs, strings.Join(r.ranges, " ")
}

package sink_test

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caisson-dev/caisson/bridge/sink"
	"github.com/caisson-dev/caisson/sandbox"
)

// news is a thousand changes.
func news() iter.Seq[sandbox.ChangeNews] {
	return func(yield func(sandbox.ChangeNews) bool) {
		for i := range 1000 {
			n := sandbox.ChangeNews{Session: "work", Exec: "e", Record: int64(i), More: i < 999}
			n.FileChange = sandbox.FileChange{Path: "a\nb\xff", Op: sandbox.OpCreated, By: sandbox.ByOwn, After: sandbox.FileState{Kind: sandbox.KindFile, Size: 3}}
			if !yield(n) {
				return
			}
		}
	}
}

// whole checks that all lines came, in their order.
func whole(t *testing.T, b []byte) {
	t.Helper()
	lines := bufio.NewScanner(bytes.NewReader(b))
	at := 0
	for ; lines.Scan(); at++ {
		var n sandbox.ChangeNews
		if err := json.Unmarshal(lines.Bytes(), &n); err != nil {
			t.Fatal(err)
		}
		if n.Record != int64(at) || n.Session != "work" || n.Exec != "e" || n.Path != "a\nb\xff" || n.Op != sandbox.OpCreated {
			t.Fatalf("line %d: %s", at, lines.Bytes())
		}
	}
	if at != 1000 {
		t.Errorf("%d lines", at)
	}
}

func none(t *testing.T) func(int, error) {
	return func(n int, err error) { t.Errorf("%d lost: %v", n, err) }
}

// TestFileAndCommand appends to a file, and feeds a program.
func TestFileAndCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, open := range map[string]func(string) (sink.Sink, error){
		"file":    sink.File,
		"command": func(path string) (sink.Sink, error) { return sink.Command("cat > '" + path + "'") },
	} {
		path := filepath.Join(dir, name)
		s, err := open(path)
		if err != nil {
			t.Fatal(err)
		}
		sink.Pump(t.Context(), news(), s, none(t))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		whole(t, b)
	}
	if _, err := sink.File(filepath.Join(dir, "none", "f")); !errors.Is(err, sandbox.Invalid) {
		t.Error(err)
	}
	// A program that goes away loses what it does not read, and says so.
	s, err := sink.Command("exit 3")
	if err != nil {
		t.Fatal(err)
	}
	lost := 0
	for range 100 {
		sink.Pump(t.Context(), news(), s, func(n int, _ error) { lost += n })
	}
	if err := s.Close(); err == nil || lost == 0 {
		t.Errorf("lost %d, %v", lost, err)
	}
}

// TestWebhook posts signed lines, and counts those that a server refuses.
func TestWebhook(t *testing.T) {
	t.Parallel()
	secret := []byte("0123456789abcdef")
	var got bytes.Buffer
	var refuse atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(r.Header.Get("X-Caisson-Timestamp") + "."))
		mac.Write(b)
		if err != nil || r.Header.Get("X-Caisson-Signature") != "sha256="+hex.EncodeToString(mac.Sum(nil)) || refuse.Load() {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		got.Write(b)
	}))
	defer server.Close()
	s, err := sink.Webhook(server.URL, secret, true)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	sink.Pump(t.Context(), news(), s, none(t))
	whole(t, got.Bytes())
	refuse.Store(true)
	lost := 0
	sink.Pump(t.Context(), news(), s, func(n int, _ error) { lost += n })
	if lost != 1000 {
		t.Errorf("%d lost", lost)
	}
	for _, bad := range []string{server.URL, "https://", "ftp://x", "https://u:p@x/", strings.Repeat("%", 3)} {
		if _, err := sink.Webhook(bad, secret, false); !errors.Is(err, sandbox.Invalid) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

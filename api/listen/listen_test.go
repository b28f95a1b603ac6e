package listen_test

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caisson-dev/caisson/api/listen"
	"github.com/caisson-dev/caisson/sandbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve answers by h until the test ends or stop is called.
func serve(t *testing.T, cfg listen.Config, h http.HandlerFunc) (s *listen.Sockets, stop func() error) {
	t.Helper()
	s, err := listen.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, h, nil) }()
	var once error
	done := false
	stop = func() error {
		if !done {
			cancel()
			once, done = <-ended, true
		}
		return once
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return s, stop
}

func who(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "trusted=%v", listen.Trusted(r)) }

// get asks an address of a server, and returns the status with the answer.
func get(t *testing.T, address string, change func(*http.Request)) string {
	t.Helper()
	tr := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer tr.CloseIdleConnections()
	if path, ok := strings.CutPrefix(address, "unix://"); ok {
		tr.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		}
		address = "http://caisson"
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(r)
	}
	res, err := (&http.Client{Transport: tr}).Do(r)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(res.StatusCode, " ", string(b))
}

// TestUnix has its user alone reach the socket, without a token.
func TestUnix(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run", "s.sock")
	s, stop := serve(t, listen.Config{Addresses: []string{"unix://" + path}}, who)
	st, err := os.Stat(path)
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}
	if got := s.Addresses(); len(got) != 1 || got[0] != "unix://"+path {
		t.Error(got)
	}
	if got := get(t, "unix://"+path, nil); got != "200 trusted=true" {
		t.Error(got)
	}
	if _, err := listen.Open(t.Context(), listen.Config{Addresses: []string{"unix://" + path}}); !errors.Is(err, sandbox.Conflict) {
		t.Errorf("a second server: %v", err)
	}
	if got := get(t, "unix://"+path, nil); got != "200 trusted=true" {
		t.Errorf("after a second server was refused: %s", got)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	rest, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(rest) != 0 {
		t.Errorf("left %v, %v", rest, err)
	}
	// What a server that was killed has left is replaced; what is no socket stays.
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	_ = dead.Close()
	serve(t, listen.Config{Addresses: []string{"unix://" + path}}, who)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for address, kind := range map[string]sandbox.Kind{"unix://" + file: sandbox.Conflict, "unix://s.sock": sandbox.Invalid, "unix:///" + strings.Repeat("x", 110): sandbox.Invalid} {
		if _, err := listen.Open(t.Context(), listen.Config{Addresses: []string{address}}); !errors.Is(err, kind) {
			t.Errorf("%s: %v", address, err)
		}
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "mine" {
		t.Errorf("%q, %v", b, err)
	}
}

// TestBeyondLoopback has nobody listen there without tokens that are kept from view.
func TestBeyondLoopback(t *testing.T) {
	for name, tt := range map[string]struct {
		cfg  listen.Config
		kind error
	}{
		"loopback":     {listen.Config{Addresses: []string{"127.0.0.1:0", "localhost:0"}}, nil},
		"in the clear": {listen.Config{Addresses: []string{"0.0.0.0:0"}}, sandbox.Denied},
		"everywhere":   {listen.Config{Addresses: []string{":0"}}, sandbox.Denied},
		"behind":       {listen.Config{Addresses: []string{"0.0.0.0:0"}, Plain: true}, nil},
		"open":         {listen.Config{Addresses: []string{"0.0.0.0:0"}, Plain: true, Open: true}, sandbox.Denied},
		"open, TLS":    {listen.Config{Addresses: []string{"0.0.0.0:0"}, Open: true, TLS: listen.TLS{SelfSigned: t.TempDir()}}, sandbox.Denied},
		"TLS":          {listen.Config{Addresses: []string{"0.0.0.0:0"}, TLS: listen.TLS{SelfSigned: t.TempDir()}}, nil},
		"half of TLS":  {listen.Config{Addresses: []string{"127.0.0.1:0"}, TLS: listen.TLS{Cert: "x"}}, sandbox.Invalid},
		"no file":      {listen.Config{Addresses: []string{"127.0.0.1:0"}, TLS: listen.TLS{Cert: "/none", Key: "/none"}}, sandbox.Invalid},
		"no port":      {listen.Config{Addresses: []string{"127.0.0.1"}}, sandbox.Invalid},
		"nowhere":      {listen.Config{}, sandbox.Invalid},
		"not ours":     {listen.Config{Addresses: []string{"192.0.2.1:0"}, Plain: true}, sandbox.Unavailable},
	} {
		s, err := listen.Open(t.Context(), tt.cfg)
		if (tt.kind == nil) != (err == nil) || tt.kind != nil && !errors.Is(err, tt.kind) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			_ = s.Close()
		} else if sandbox.HintOf(err) == "" {
			t.Errorf("%s: %v has no hint", name, err)
		}
	}
	first, err := listen.Open(t.Context(), listen.Config{Addresses: []string{"127.0.0.1:0"}})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	taken := strings.TrimPrefix(first.Addresses()[0], "http://")
	if _, err := listen.Open(t.Context(), listen.Config{Addresses: []string{"127.0.0.1:0", taken}}); !errors.Is(err, sandbox.Conflict) {
		t.Errorf("a taken port: %v", err)
	}
}

// TestSelfSigned shows the certificate whose fingerprint is told, and keeps it.
func TestSelfSigned(t *testing.T) {
	cfg := listen.Config{Addresses: []string{"127.0.0.1:0"}, TLS: listen.TLS{SelfSigned: t.TempDir(), Names: []string{"box.example"}}, Hosts: []string{"other.example"}}
	s, stop := serve(t, cfg, who)
	address := s.Addresses()[0]
	if !strings.HasPrefix(address, "https://") {
		t.Fatal(address)
	}
	d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	c, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(address, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	leaf := c.(*tls.Conn).ConnectionState().PeerCertificates[0]
	_ = c.Close()
	sum := sha256.Sum256(leaf.Raw)
	if s.Fingerprint() != "sha256:"+hex.EncodeToString(sum[:]) || leaf.VerifyHostname("box.example") != nil || leaf.VerifyHostname("127.0.0.1") != nil {
		t.Errorf("%s, %v %v", s.Fingerprint(), leaf.DNSNames, leaf.IPAddresses)
	}
	for host, want := range map[string]string{"box.example": "200 trusted=false", "other.example": "200 trusted=false", "evil.example": "403 "} {
		if got := get(t, address, func(r *http.Request) { r.Host = host }); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", host, got)
		}
	}
	_ = stop()
	again, err := listen.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if again.Fingerprint() != s.Fingerprint() {
		t.Error("the certificate was not kept")
	}
	cfg.TLS.Names = append(cfg.TLS.Names, "new.example")
	other, err := listen.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if other.Fingerprint() == s.Fingerprint() {
		t.Error("a new name is not in the certificate")
	}
}

// TestGuard has pages of strangers ask in vain.
func TestGuard(t *testing.T) {
	s, _ := serve(t, listen.Config{Addresses: []string{"127.0.0.1:0"}, Open: true, Hosts: []string{"*.sandbox.example"}, Origins: []string{"https://console.example"}, AnyOrigin: func(r *http.Request) bool { return strings.HasPrefix(r.Host, "80-") }}, who)
	address := s.Addresses()[0]
	host := strings.TrimPrefix(address, "http://")
	for name, tt := range map[string]struct {
		host, origin, site string
		ok                 bool
	}{
		"an address":        {ok: true},
		"localhost":         {host: "localhost:1", ok: true},
		"IPv6":              {host: "[::1]:1", ok: true},
		"below localhost":   {host: "a.localhost", ok: true},
		"rebound":           {host: "evil.example:80"},
		"with a dot":        {host: "evil.example."},
		"nothing":           {host: "x"},
		"below a name":      {host: "3000-id.sandbox.example", ok: true},
		"the name itself":   {host: "sandbox.example"},
		"its end":           {host: "xsandbox.example"},
		"own page":          {origin: "http://" + host, ok: true},
		"a known page":      {origin: "https://console.example", ok: true},
		"a stranger":        {origin: "http://evil.example"},
		"a file":            {origin: "null"},
		"a preview":         {host: "80-x.localhost", origin: "http://evil.example", ok: true},
		"a link to one":     {host: "80-x.localhost", site: "cross-site", ok: true},
		"a rebound preview": {host: "80-x.evil.example"},
		"another port":      {origin: "http://127.0.0.1:1"},
		"without origin":    {site: "cross-site"},
		"typed by a person": {site: "none", ok: true},
	} {
		got := get(t, address, func(r *http.Request) {
			if tt.host != "" {
				r.Host = tt.host
			}
			if tt.origin != "" {
				r.Header.Set("Origin", tt.origin)
			}
			if tt.site != "" {
				r.Header.Set("Sec-Fetch-Site", tt.site)
			}
		})
		if ok := got == "200 trusted=true"; ok != tt.ok || !ok && !strings.HasPrefix(got, `403 {"code":403,"hint":`) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestDrain lets what is being answered end, tells who streams that it is time, and
// cuts what takes too long.
func TestDrain(t *testing.T) {
	begun, goOn := make(chan struct{}, 2), make(chan struct{})
	h := func(w http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		select {
		case <-goOn:
			fmt.Fprint(w, "whole")
		case <-r.Context().Done():
			fmt.Fprint(w, "cut")
		}
	}
	for name, tt := range map[string]struct {
		drain time.Duration
		let   bool
		want  string
	}{"in time": {time.Minute, true, "200 whole"}, "never": {time.Millisecond, false, ""}} {
		s, err := listen.Open(t.Context(), listen.Config{Addresses: []string{"127.0.0.1:0"}, Drain: tt.drain})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended, got := make(chan error, 1), make(chan string, 1)
		go func() {
			ended <- s.Serve(ctx, http.HandlerFunc(h), func() {
				if tt.let {
					goOn <- struct{}{}
				}
			})
		}()
		go func() { got <- get(t, s.Addresses()[0], nil) }()
		<-begun
		cancel()
		if answer := <-got; tt.want != "" && answer != tt.want || tt.want == "" && strings.HasSuffix(answer, "whole") {
			t.Errorf("%s: %s", name, answer)
		}
		if err := <-ended; err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := get(t, s.Addresses()[0], nil); !strings.Contains(got, "refused") {
			t.Errorf("%s: answers after its end: %s", name, got)
		}
	}
}

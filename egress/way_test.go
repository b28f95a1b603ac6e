package egress_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/egress"
	"github.com/caisson-dev/caisson/sandbox"
)

// outside is a world of names and of the addresses that were dialled.
type outside struct {
	mu       sync.Mutex
	names    map[string][]string // the answers one after the other; the last stays
	resolved []string
	dialled  []string
	patience time.Duration
	meters   []*egress.Meter
	judge    func(context.Context, egress.Asked) (egress.Answer, error)
}

func (o *outside) config() egress.Config {
	return egress.Config{
		Patience: o.patience, Judge: o.judge, Meters: o.meters,
		Resolve: func(_ context.Context, name string) ([]netip.Addr, error) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.resolved = append(o.resolved, name)
			answers := o.names[name]
			if len(answers) == 0 {
				return nil, errors.New("no such host")
			}
			if len(answers) > 1 {
				o.names[name] = answers[1:]
			}
			var addrs []netip.Addr
			for a := range strings.FieldsSeq(answers[0]) {
				addrs = append(addrs, netip.MustParseAddr(a))
			}
			return addrs, nil
		},
		Dial: func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			o.mu.Lock()
			o.dialled = append(o.dialled, to.String())
			o.mu.Unlock()
			if !to.Addr().IsLoopback() {
				return nil, errors.New("not dialled in a test")
			}
			return new(net.Dialer).DialContext(ctx, "tcp", to.String())
		},
	}
}

// proxy serves a way on the loopback device, as the agent does inside.
func (o *outside) proxy(t *testing.T, network sandbox.Network) (*egress.Way, string) {
	t.Helper()
	w, err := egress.New(o.config(), network)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { w.Serve(ctx, c.(*net.TCPConn)) })
		}
	})
	t.Cleanup(func() { _ = ln.Close(); cancel(); serving.Wait() })
	return w, ln.Addr().String()
}

func allow(hosts ...string) sandbox.Network {
	return sandbox.Network{Mode: sandbox.NetworkAllow, Allow: hosts}
}

// say connects to the proxy, says something, and returns all that comes.
func say(t *testing.T, proxy, text string) string {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", proxy)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// The proxy may have had enough before the end.
	_, _ = io.WriteString(c, text)
	_ = c.(*net.TCPConn).CloseWrite()
	got, _ := io.ReadAll(c) // a connection that is refused may be reset
	return string(got)
}

// until waits for connections to be told.
func until(t *testing.T, w *egress.Way, n int) []sandbox.Connection {
	t.Helper()
	for range 6000 {
		if told, _ := w.Connections(); len(told) >= n {
			return told
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%d connections are not told", n)
	return nil
}

// TestChecked refuses what is not listed, and each address that a listed name may not
// have; what is dialled was checked.
func TestChecked(t *testing.T) {
	t.Parallel()
	names := map[string][]string{
		"a.test": {"192.0.3.1"}, "sub.a.test": {"192.0.3.2"}, "inner.test": {"10.0.0.1"}, "meta.test": {"169.254.169.254"}, "me.test": {"127.0.0.1 ::1"},
		"six.test": {"fd00::1"}, "mapped.test": {"::ffff:10.0.0.1"}, "nat.test": {"64:ff9b::a00:1"}, "both.test": {"10.0.0.1 192.0.3.3"}, "zero.test": {"0.0.0.0"},
		"denied.test": {"192.0.3.66"},
	}
	for _, tt := range []struct{ host, port, dialled, why string }{
		{"a.test", "443", "192.0.3.1:443", ""},
		{"A.TEST.", "80", "192.0.3.1:80", ""},
		{"a.test", "22", "", "it is not on the list"},
		{"sub.a.test", "443", "", "it is not on the list"},
		{"x.wild.test", "8443", "", "the list denies it"},
		{"wild.test", "8443", "", "it is not on the list"},
		{"a.test.evil", "443", "", "it is not on the list"},
		{"inner.test", "443", "", "its address 10.0.0.1 is not a public one, and not listed itself"},
		{"meta.test", "80", "", "its address 169.254.169.254 is not a public one, and not listed itself"},
		{"me.test", "443", "", "its address ::1 is not a public one, and not listed itself"},
		{"six.test", "443", "", "its address fd00::1 is not a public one, and not listed itself"},
		{"mapped.test", "443", "", "its address 10.0.0.1 is not a public one, and not listed itself"},
		{"nat.test", "443", "", "its address 64:ff9b::a00:1 is not a public one, and not listed itself"},
		{"zero.test", "443", "", "its address 0.0.0.0 is not a public one, and not listed itself"},
		{"both.test", "443", "192.0.3.3:443", ""},
		{"denied.test", "443", "", "the list denies its address 192.0.3.66"},
		{"192.0.3.1", "443", "", "it is not on the list"},
		{"192.168.7.7", "5000", "192.168.7.7:5000", ""},
		{"192.168.7.8", "5000", "", "it is not on the list"},
		{"10.9.1.1", "1", "10.9.1.1:1", ""},
		{"[2001:db8::7]", "443", "[2001:db8::7]:443", ""},
		{"[::ffff:192.168.7.7]", "5000", "192.168.7.7:5000", ""},
		{"0x7f.1", "443", "", "it is no name of a host"},
		{"2130706433", "443", "", "it is no name of a host"},
		{"127.1", "443", "", "it is no name of a host"},
		{"[fe80::1%25lo]", "443", "", "an address with a zone"},
		{"a.test", "0", "", "port 0"},
		{"a.test", "65979", "", "port 65979"},
	} {
		t.Run(tt.host+" "+tt.port, func(t *testing.T) {
			t.Parallel()
			o := &outside{names: names}
			network := allow("a.test", "*.wild.test:8443", "inner.test", "meta.test", "me.test", "six.test", "mapped.test", "nat.test", "both.test", "zero.test",
				"denied.test", "192.168.7.7:5000", "10.9.0.0/16:*", "2001:db8::7")
			network.Deny = []string{"*.wild.test", "192.0.3.64/26"}
			w, proxy := o.proxy(t, network)
			got := say(t, proxy, "CONNECT "+tt.host+":"+tt.port+" HTTP/1.1\r\nHost: a.test\r\n\r\n")
			told := until(t, w, 1)[0]
			if strings.Join(o.dialled, " ") != tt.dialled || told.Address != tt.dialled {
				t.Errorf("dialled %q, told %+v", o.dialled, told)
			}
			status := "HTTP/1.1 502 "
			if tt.why != "" {
				status = "HTTP/1.1 403 "
				if told.Verdict != sandbox.Deny || told.Why != tt.why {
					t.Errorf("told %+v, want %q", told, tt.why)
				}
			} else if told.Verdict != sandbox.Allow {
				t.Errorf("told %+v", told)
			}
			if !strings.HasPrefix(got, status) {
				t.Errorf("%s", got)
			}
		})
	}
}

// TestRebinding resolves a name once for a connection, and judges each anew.
func TestRebinding(t *testing.T) {
	t.Parallel()
	o := &outside{names: map[string][]string{"a.test": {"192.0.3.1", "127.0.0.1", "192.0.3.1"}}}
	w, proxy := o.proxy(t, allow("a.test"))
	for range 3 {
		say(t, proxy, "CONNECT a.test:443 HTTP/1.1\r\n\r\n")
	}
	told := until(t, w, 3)
	if len(o.resolved) != 3 || strings.Join(o.dialled, " ") != "192.0.3.1:443 192.0.3.1:443" || told[1].Verdict != sandbox.Deny {
		t.Errorf("resolved %v, dialled %v, told %+v", o.resolved, o.dialled, told)
	}
}

// here is a server on this host, and the name and port by which it is listed.
func here(t *testing.T, s *httptest.Server) (o *outside, port string, network sandbox.Network) {
	t.Helper()
	t.Cleanup(s.Close)
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return &outside{names: map[string][]string{"a.test": {"127.0.0.1"}, "b.test": {"127.0.0.1"}}}, port, allow("a.test:"+port, "127.0.0.1:"+port)
}

// seen is a handler that notes what came.
type seen struct {
	mu   sync.Mutex
	what []string
}

func (s *seen) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.what = append(s.what, strings.TrimSpace(fmt.Sprintf("%s %s%s %s", r.Method, strings.Split(r.Host, ":")[0], r.URL.Path, body)))
	s.mu.Unlock()
	_, _ = io.WriteString(w, "hello")
}

func (s *seen) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.what, "; ")
}

// TestPlain reads each request of plain HTTP and writes it anew, whatever way it came.
func TestPlain(t *testing.T) {
	t.Parallel()
	const tunnel = "CONNECT a.test:PORT HTTP/1.1\r\n\r\n"
	for name, tt := range map[string]struct{ text, seen, answers string }{
		"proxied":              {"GET http://a.test:PORT/x HTTP/1.1\r\nHost: a.test\r\n\r\n", "GET a.test/x", "200"},
		"another Host":         {"GET http://a.test:PORT/x HTTP/1.1\r\nHost: b.test\r\n\r\n", "GET a.test/x", "200"},
		"two Hosts":            {"GET http://a.test:PORT/x HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n\r\n", "", "400"},
		"not listed":           {"GET http://b.test:PORT/x HTTP/1.1\r\nHost: a.test\r\n\r\n", "", "403"},
		"a second one":         {"GET http://a.test:PORT/1 HTTP/1.1\r\nHost: a.test\r\n\r\nGET http://b.test:PORT/2 HTTP/1.1\r\nHost: a.test\r\n\r\n", "GET a.test/1", "200 403"},
		"both allowed":         {"GET http://a.test:PORT/1 HTTP/1.1\r\nHost: a.test\r\n\r\nPOST http://a.test:PORT/2 HTTP/1.1\r\nHost: a.test\r\nContent-Length: 2\r\n\r\nhi", "GET a.test/1; POST a.test/2 hi", "200 200"},
		"hidden by lengths":    {"POST http://a.test:PORT/1 HTTP/1.1\r\nHost: a.test\r\nContent-Length: 60\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /2 HTTP/1.1\r\nHost: b.test\r\n\r\n", "POST a.test/1", "200 400"},
		"hidden by two sizes":  {"POST http://a.test:PORT/1 HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\nContent-Length: 40\r\n\r\nGET /2 HTTP/1.1\r\nHost: b.test\r\n\r\n", "", "400"},
		"no proxy's":           {"GET /x HTTP/1.1\r\nHost: a.test:PORT\r\n\r\n", "", "400"},
		"of another sort":      {"GET https://a.test:PORT/x HTTP/1.1\r\nHost: a.test\r\n\r\n", "", "400"},
		"expects":              {"POST http://a.test:PORT/x HTTP/1.1\r\nHost: a.test\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi", "POST a.test/x hi", "100 200"},
		"an endless head":      {"GET http://a.test:PORT/x HTTP/1.1\r\nX: " + strings.Repeat("x", 200<<10), "", "400"},
		"tunnelled":            {tunnel + "GET /x HTTP/1.1\r\nHost: a.test\r\n\r\n", "GET a.test/x", "200 200"},
		"tunnelled, twice":     {tunnel + "GET /1 HTTP/1.1\r\nHost: a.test:PORT\r\n\r\nGET /2 HTTP/1.1\r\nHost: a.test\r\n\r\n", "GET a.test/1; GET a.test/2", "200 200 200"},
		"tunnelled, another":   {tunnel + "GET /x HTTP/1.1\r\nHost: b.test\r\n\r\n", "", "200 403"},
		"tunnelled, absolute":  {tunnel + "GET http://b.test/x HTTP/1.1\r\nHost: a.test\r\n\r\n", "", "200 403"},
		"tunnelled, smuggled":  {tunnel + "GET /1 HTTP/1.1\r\nHost: a.test\r\n\r\nGET /2 HTTP/1.1\r\nHost: b.test\r\n\r\n", "GET a.test/1", "200 200 403"},
		"tunnelled, late":      {tunnel + "\r\n\r\nGET /x HTTP/1.1\r\nHost: b.test\r\n\r\n", "", "200"},
		"tunnelled in another": {tunnel + "CONNECT b.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\n", "", "200 403"},
		"HTTP/2 without TLS":   {tunnel + "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "", "200 403"},
		"an upgrade refused":   {tunnel + "GET /1 HTTP/1.1\r\nHost: a.test\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: b.test\r\n\r\n", "GET a.test/1", "200 200 403"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s seen
			o, port, network := here(t, httptest.NewServer(&s))
			_, proxy := o.proxy(t, network)
			got := say(t, proxy, strings.ReplaceAll(tt.text, "PORT", port))
			var answers []string
			for line := range strings.Lines(strings.ReplaceAll(got, "hello", "hello\n")) {
				if rest, ok := strings.CutPrefix(line, "HTTP/1.1 "); ok {
					answers = append(answers, rest[:3])
				}
			}
			if s.all() != tt.seen || strings.Join(answers, " ") != tt.answers {
				t.Errorf("seen %q, answered %q:\n%s", s.all(), answers, got)
			}
		})
	}
}

// client is one that goes by a proxy.
func client(t *testing.T, proxy, scheme, serverName string) *http.Client {
	tr := &http.Transport{
		Proxy:           http.ProxyURL(&url.URL{Scheme: scheme, Host: proxy}),
		TLSClientConfig: &tls.Config{ServerName: serverName, InsecureSkipVerify: true},
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// TestServerName lets TLS pass to the host that was asked for, by both kinds of proxy.
func TestServerName(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"http", "socks5h"} {
		for name, want := range map[string]string{"a.test": "", "b.test": "its TLS names the server b.test", "127.0.0.1": "its TLS names no server"} {
			t.Run(scheme+" "+name, func(t *testing.T) {
				t.Parallel()
				var s seen
				o, port, network := here(t, httptest.NewTLSServer(&s))
				w, proxy := o.proxy(t, network)
				req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://a.test:"+port+"/x", nil)
				c := client(t, proxy, scheme, name)
				resp, err := c.Do(req)
				if err == nil {
					_ = resp.Body.Close()
				}
				c.CloseIdleConnections()
				told := until(t, w, 1)[0]
				switch {
				case want == "" && (err != nil || s.all() != "GET a.test/x" || told.Verdict != sandbox.Allow || told.Sent == 0 || told.Received == 0):
					t.Errorf("%v, seen %q, told %+v", err, s.all(), told)
				case want != "" && (err == nil || s.all() != "" || told.Verdict != sandbox.Deny || told.Why != want):
					t.Errorf("%v, seen %q, told %+v", err, s.all(), told)
				}
			})
		}
	}
}

// TestSOCKS answers as the protocol has it.
func TestSOCKS(t *testing.T) {
	t.Parallel()
	var s seen
	o, port, network := here(t, httptest.NewServer(&s))
	w, proxy := o.proxy(t, network)
	n := 0
	_, _ = fmt.Sscan(port, &n)
	at := string([]byte{byte(n >> 8), byte(n)})
	for name, tt := range map[string]struct{ say, want string }{
		"an address":     {"\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01" + at, "\x05\x00\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"},
		"a name":         {"\x05\x02\x02\x00\x05\x01\x00\x03\x06a.test" + at, "\x05\x00\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"},
		"not listed":     {"\x05\x01\x00\x05\x01\x00\x03\x06b.test" + at, "\x05\x00\x05\x02\x00\x01\x00\x00\x00\x00\x00\x00"},
		"IPv6":           {"\x05\x01\x00\x05\x01\x00\x04" + strings.Repeat("\x00", 15) + "\x01" + at, "\x05\x00\x05\x02\x00\x01\x00\x00\x00\x00\x00\x00"},
		"BIND":           {"\x05\x01\x00\x05\x02\x00\x01\x7f\x00\x00\x01" + at, "\x05\x00\x05\x07\x00\x01\x00\x00\x00\x00\x00\x00"},
		"a password":     {"\x05\x01\x02", "\x05\xff"},
		"half a request": {"\x05\x01\x00\x05\x01", "\x05\x00"},
	} {
		if got := say(t, proxy, tt.say); got != tt.want {
			t.Errorf("%s: %x, want %x", name, got, tt.want)
		}
	}
	if told := until(t, w, 4); len(told) != 4 {
		t.Errorf("%+v", told)
	}
}

// TestWebSocket carries what both sides say after an upgrade.
func TestWebSocket(t *testing.T) {
	t.Parallel()
	o, port, network := here(t, httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		_, _ = io.Copy(c, rw)
	})))
	_, proxy := o.proxy(t, network)
	for _, text := range []string{"GET http://a.test:PORT/ HTTP/1.1\r\n", "CONNECT a.test:PORT HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n"} {
		got := say(t, proxy, strings.ReplaceAll(text, "PORT", port)+"Host: a.test\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nping\x00")
		if !strings.Contains(got, " 101 ") || !strings.HasSuffix(got, "ping\x00") {
			t.Errorf("%q", got)
		}
	}
}

// TestFirstToSpeak serves protocols in which the host begins, at a port that is
// listed, and no smuggled HTTP behind them.
func TestFirstToSpeak(t *testing.T) {
	t.Parallel()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
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
			go func() {
				defer c.Close()
				_, _ = io.WriteString(c, "220 ready\n")
				line, _ := bufio.NewReader(c).ReadString('\n')
				_, _ = io.WriteString(c, "you said "+line)
			}()
		}
	}()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	o := &outside{names: map[string][]string{"a.test": {"127.0.0.1"}}}
	_, proxy := o.proxy(t, allow("a.test:"+port, "127.0.0.1:"+port))
	for say, want := range map[string]string{"HELO me\n": "you said HELO me\n", "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n": ""} {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", proxy)
		if err != nil {
			t.Fatal(err)
		}
		r := bufio.NewReader(c)
		_, _ = io.WriteString(c, "CONNECT a.test:"+port+" HTTP/1.1\r\n\r\n")
		for _, line := range []string{"HTTP/1.1 200 Connection established\r\n", "\r\n", "220 ready\n"} {
			if got, err := r.ReadString('\n'); got != line {
				t.Fatalf("%q, %v", got, err)
			}
		}
		_, _ = io.WriteString(c, say)
		if got, _ := io.ReadAll(r); string(got) != want {
			t.Errorf("%q: %q", say, got)
		}
		_ = c.Close()
	}
}

// TestUnknownProtocol is refused at a port that nobody listed.
func TestUnknownProtocol(t *testing.T) {
	t.Parallel()
	config := (&outside{names: map[string][]string{"a.test": {"192.0.3.1"}}}).config()
	config.Dial = func(context.Context, netip.AddrPort) (net.Conn, error) {
		here, there := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, there) }()
		return here, nil
	}
	w, err := egress.New(config, allow("a.test"))
	if err != nil {
		t.Fatal(err)
	}
	inside, program := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, program) }()
	go func() { _, _ = io.WriteString(program, "CONNECT a.test:443 HTTP/1.1\r\n\r\nSSH-2.0-x\r\n") }()
	w.Serve(t.Context(), pipe{inside})
	if told, _ := w.Connections(); len(told) != 1 || told[0].Verdict != sandbox.Deny || told[0].Sent != 0 {
		t.Errorf("%+v", told)
	}
}

type pipe struct{ net.Conn }

func (p pipe) CloseWrite() error { return p.Close() }

// TestSilent ends connections that say nothing, or not enough, wherever they stop.
func TestSilent(t *testing.T) {
	t.Parallel()
	o, port, network := here(t, httptest.NewServer(&seen{}))
	o.patience = 100 * time.Millisecond
	_, proxy := o.proxy(t, network)
	for _, text := range []string{"", "\x05", "\x05\x01\x00", "GET http://a", "CONNECT a.test:PORT HTTP/1.1\r\n\r\n", "CONNECT a.test:PORT HTTP/1.1\r\n\r\n\x16\x03\x01",
		"CONNECT a.test:PORT HTTP/1.1\r\n\r\nGET / HT"} {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", proxy)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, strings.ReplaceAll(text, "PORT", port))
		_, _ = io.ReadAll(c) // it returns: that is the test
		_ = c.Close()
	}
}

// TestEnd ends what is open when its exec does.
func TestEnd(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	o, port, network := here(t, httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release })))
	defer close(release)
	w, err := egress.New(o.config(), network)
	if err != nil {
		t.Fatal(err)
	}
	inside, program := net.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = io.WriteString(program, "CONNECT a.test:"+port+" HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
	}()
	go func() {
		_, _ = bufio.NewReader(program).ReadString('\n')
		cancel()
		_, _ = io.Copy(io.Discard, program)
	}()
	w.Serve(ctx, pipe{inside})
	if told, _ := w.Connections(); len(told) != 1 {
		t.Errorf("%+v", told)
	}
}

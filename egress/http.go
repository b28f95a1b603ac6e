package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// mostHead bounds what comes before the body of a request, and idlePatience how long
// a program may keep its connection to the proxy without a request.
const (
	mostHead     = 64 << 10
	idlePatience = 2 * time.Minute
)

// metered is a connection that reads no more than is left.
type metered struct {
	Conn
	left int64
}

func (m *metered) Read(p []byte) (int, error) {
	if m.left <= 0 {
		return 0, errors.New("the head of the request is too long")
	}
	n, err := m.Conn.Read(p[:min(int64(len(p)), m.left)])
	m.left -= int64(n)
	return n, err
}

// readRequest reads the head of a request.
func (i *inside) readRequest() (*http.Request, error) {
	i.meter.left = mostHead
	defer func() { i.meter.left = math.MaxInt64 }()
	return http.ReadRequest(i.r)
}

// serveHTTP speaks as an HTTP proxy: each request is to a host of its own, until one
// of them asks for a tunnel.
func (w *Way) serveHTTP(ctx context.Context, in *inside) {
	for {
		req, err := in.readRequest()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				answer(in, http.StatusBadRequest, "this is no request that a proxy takes")
			}
			return
		}
		if req.Method == http.MethodConnect {
			w.connect(ctx, in, req)
			return
		}
		if !w.forward(ctx, in, req) || in.SetReadDeadline(time.Now().Add(idlePatience)) != nil {
			return
		}
	}
}

// answer tells a program what became of its request. One that is gone needs no answer.
func answer(out io.Writer, status int, text string) {
	_, _ = fmt.Fprintf(out, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\ncaisson: %s\n",
		status, http.StatusText(status), len(text)+len("caisson: \n"), text)
}

// answerFailed tells why a host cannot be reached.
func answerFailed(out io.Writer, t target, err error) {
	status, text := http.StatusBadGateway, err.Error()
	if isRefused(err) {
		status, text = http.StatusForbidden, "the sandbox may not reach it: "+text
	}
	answer(out, status, fmt.Sprintf("%s: %s", net.JoinHostPort(t.host, strconv.Itoa(t.port)), text))
}

// connect opens a tunnel.
func (w *Way) connect(ctx context.Context, in *inside, req *http.Request) {
	host, text, err := net.SplitHostPort(req.Host)
	port, bad := strconv.Atoi(text)
	if err != nil || bad != nil {
		answer(in, http.StatusBadRequest, "CONNECT takes HOST:PORT")
		return
	}
	l, t, err := w.reach(ctx, host, port)
	if err != nil {
		answerFailed(in, t, err)
		return
	}
	if _, err := io.WriteString(in, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		l.end(nil)
		return
	}
	w.tunnel(ctx, in, l, t)
}

// forward carries out one request to a proxy, over a connection of its own, and
// reports whether another may follow.
func (w *Way) forward(ctx context.Context, in *inside, req *http.Request) bool {
	port := 80
	if text := req.URL.Port(); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			n = 0
		}
		port = n
	}
	if req.URL.Scheme != "http" || req.URL.Hostname() == "" {
		answer(in, http.StatusBadRequest, "this is a proxy: it takes CONNECT HOST:PORT and GET http://HOST/…")
		return false
	}
	l, t, err := w.reach(ctx, req.URL.Hostname(), port)
	if err != nil {
		answerFailed(in, t, err)
		return false
	}
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	again := !req.Close
	// The name is the one of the address, as it is for every proxy: what the
	// program wrote as Host beside it was dropped when the request was read.
	req.Close = !upgrades(req)
	again, err = w.exchange(in, req, l, func() *bufio.Reader { return bufio.NewReaderSize(l, 32<<10) }, again)
	if err != nil {
		answerFailed(in, t, err)
	}
	l.end(err)
	return again && err == nil
}

// requests carries out the requests of a program that speaks plain HTTP in a tunnel.
func (w *Way) requests(tn *tunnel) error {
	for {
		req, err := tn.in.readRequest()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return refuse("its HTTP cannot be read: %v", err)
		}
		if why := tn.checkHost(req); why != nil {
			answerFailed(tn.in, tn.t, why)
			return why
		}
		again, err := w.exchange(tn.in, req, tn.l, func() *bufio.Reader {
			<-tn.came
			return tn.out
		}, !req.Close)
		if err != nil || !again {
			return err
		}
		if err := tn.in.SetReadDeadline(time.Now().Add(idlePatience)); err != nil {
			return err
		}
	}
}

// checkHost refuses a request that is not for the host of its tunnel.
func (tn *tunnel) checkHost(req *http.Request) error {
	if req.Method == http.MethodConnect || req.ProtoMajor != 1 {
		return refuse("plain HTTP that asks for something else: %s", req.Method)
	}
	host := req.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if !tn.t.same(host) {
		return refuse("its HTTP names the host %q", host)
	}
	return nil
}

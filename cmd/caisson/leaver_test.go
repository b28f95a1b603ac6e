package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"

	"github.com/caisson-dev/caisson/api/wire"
)

// leaver is a client of a server that will be gone without a word.
type leaver struct {
	base, token string
	http        http.Client

	mu    sync.Mutex
	conns []*net.TCPConn
	sends []*io.PipeWriter // what it was about to send
	waits sync.WaitGroup
}

func newLeaver(address, token string) *leaver {
	l := &leaver{base: address, token: token}
	l.http.Transport = &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		var d net.Dialer
		c, err := d.DialContext(ctx, network, address)
		if err == nil {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.conns = append(l.conns, c.(*net.TCPConn))
		}
		return c, err
	}}
	return l
}

// cut ends its connections: in their order, or by a reset.
func (l *leaver) cut(reset bool) {
	l.mu.Lock()
	for _, c := range l.conns {
		if reset {
			_ = c.SetLinger(0) // it may have given this one up by itself
		}
		_ = c.Close() // as above
	}
	l.mu.Unlock()
	for _, w := range l.sends {
		_ = w.Close() // never fails
	}
	l.waits.Wait()
}

func (l *leaver) request(t *testing.T, method, path, accept string, body io.Reader) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), method, l.base+path, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+l.token)
	r.Header.Set("Content-Type", "application/json")
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	return r
}

// waitsFor sends what will have no answer before it is cut. It is on its way then.
func (l *leaver) waitsFor(t *testing.T, method, path string, body io.Reader) {
	t.Helper()
	r, sent := l.request(t, method, path, "", body), make(chan struct{})
	r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{WroteHeaders: func() { close(sent) }}))
	failed := make(chan struct{})
	defer func() {
		select {
		case <-sent:
		case <-failed:
			t.Fatalf("%s is not sent", path)
		}
	}()
	l.waits.Go(func() {
		defer close(failed)
		res, err := l.http.Do(r)
		if err == nil {
			text, _ := io.ReadAll(res.Body)
			_ = res.Body.Close()
			t.Errorf("%s is answered: %d %s", path, res.StatusCode, text)
		}
	})
}

// reads reads an answer up to a line that holds a text, and then no more of it.
func (l *leaver) reads(t *testing.T, method, path, accept string, body io.Reader, text string) {
	t.Helper()
	res, err := l.http.Do(l.request(t, method, path, accept, body))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	if res.StatusCode != http.StatusOK {
		all, _ := io.ReadAll(res.Body)
		t.Fatalf("%s: %d %s", path, res.StatusCode, all)
	}
	for in := bufio.NewReader(res.Body); text != ""; {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatalf("%s: %q, %v", path, line, err)
		}
		if strings.Contains(line, text) {
			return
		}
	}
}

// joins opens a WebSocket, says what is wanted, and reads until a text was in what came.
func (l *leaver) joins(t *testing.T, path string, begin *wire.Begin, text string) (*websocket.Conn, error) {
	t.Helper()
	ws, res, err := websocket.Dial(t.Context(), l.base+path, &websocket.DialOptions{HTTPClient: &l.http, HTTPHeader: http.Header{"Authorization": {"Bearer " + l.token}}})
	if err != nil {
		return nil, err
	}
	if res.Body != nil {
		_ = res.Body.Close() // it is the connection's by now
	}
	t.Cleanup(func() { _ = ws.CloseNow() })
	if begin != nil {
		b, err := json.Marshal(begin)
		if err == nil {
			err = ws.Write(t.Context(), websocket.MessageText, b)
		}
		if err != nil {
			return nil, err
		}
	}
	return ws, hears(t.Context(), ws, text)
}

// hears reads a WebSocket until a text was in what came.
func hears(ctx context.Context, ws *websocket.Conn, text string) error {
	for all := ""; !strings.Contains(all, text); {
		_, b, err := ws.Read(ctx)
		if err != nil {
			return fmt.Errorf("after %q: %w", all, err)
		}
		all += string(b)
	}
	return nil
}

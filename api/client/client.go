// Package client speaks with a server of caisson: [Client] is an [api.Service]
// over HTTP. What comes of a call is what came of it there, errors with their
// kinds and hints included. A folder of this host cannot travel: it is
// Unsupported.
package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/coder/websocket"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/api/wire"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/telemetry"
)

// Config says which server is spoken with.
type Config struct {
	// Host is unix:///path/of/socket, http://host:port or https://host:port.
	Host  string
	Token string // "" is none
	// TLS is for https; nil trusts whom this host trusts.
	TLS *tls.Config
	// Progress is told how long steps of the server's go, such as the making of
	// images. nil tells nobody.
	Progress func(sandbox.Progress)
}

// Client is caisson on a server. It is safe for concurrent use. Who made it
// closes it.
type Client struct {
	cfg  Config
	base string
	http *http.Client

	mu   sync.Mutex
	held map[string]*websocket.Conn // by temporary session
}

var _ api.Service = (*Client)(nil)

// New checks a Config and connects to nothing yet. Errors: Invalid.
func New(cfg Config) (*Client, error) {
	u, err := url.Parse(cfg.Host)
	if err != nil {
		return nil, badHost(cfg.Host)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 64
	transport.DisableCompression = true
	transport.TLSClientConfig = cfg.TLS
	base := strings.TrimSuffix(cfg.Host, "/")
	switch {
	case u.Scheme == "unix" && u.Host == "" && u.Path != "":
		var d net.Dialer
		transport.Proxy = nil
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return d.DialContext(ctx, "unix", u.Path) }
		base = "http://localhost"
	case (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.RawQuery == "":
	default:
		return nil, badHost(cfg.Host)
	}
	if cfg.Progress == nil {
		cfg.Progress = func(sandbox.Progress) {}
	}
	return &Client{cfg: cfg, base: base, http: &http.Client{Transport: transport}}, nil
}

func badHost(host string) error {
	return sandbox.Errorf(sandbox.Invalid, "%q is no server", host).WithHint("write unix:///path/of/socket, http://host:port or https://host:port")
}

// Close gives up connections that are idle, and the temporary sessions that it made.
// It is idempotent.
func (c *Client) Close() error {
	c.mu.Lock()
	held := slices.Collect(maps.Keys(c.held))
	c.mu.Unlock()
	for _, session := range held {
		c.release(session)
	}
	c.http.CloseIdleConnections()
	return nil
}

// request is one request to the server.
type request struct {
	method, path string
	query        url.Values
	body         any       // in JSON; nil is none
	raw          io.Reader // in its place
	accept       string
	header       http.Header
}

// path is a path with names in the places of %.
func path(form string, names ...string) string {
	var b strings.Builder
	for part := range strings.SplitAfterSeq(form, "%") {
		plain, is := strings.CutSuffix(part, "%")
		b.WriteString(plain)
		if is {
			b.WriteString(segment(names[0]))
			names = names[1:]
		}
	}
	return b.String()
}

// segment is a name as a part of a path, also where it is made of dots, which a
// path would take for folders.
func segment(name string) string {
	if strings.Trim(name, ".") == "" {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return url.PathEscape(name)
}

// send sends a request and returns its answer, which the caller closes. An answer
// that is an error is one.
func (c *Client) send(ctx context.Context, r request) (*http.Response, error) {
	body := r.raw
	if r.body != nil {
		b, err := json.Marshal(r.body)
		if err != nil {
			return nil, sandbox.Errorf(sandbox.Invalid, "write the request: %w", err)
		}
		body = bytes.NewReader(b)
	}
	target := c.base + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, body)
	if err != nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "%w", err)
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	c.sign(req.Header)
	telemetry.Inject(ctx, req.Header)
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.accept != "" {
		req.Header.Set("Accept", r.accept)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	if res.StatusCode >= http.StatusBadRequest {
		defer res.Body.Close()
		return nil, problemIn(res)
	}
	return res, nil
}

func (c *Client) sign(h http.Header) {
	if c.cfg.Token != "" {
		h.Set("Authorization", "Bearer "+c.cfg.Token)
	}
}

// unreachable classes an error of the connection.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return sandbox.Errorf(sandbox.Unavailable, "reach the server %s: %w", c.cfg.Host, err).WithHint("see that caisson serve runs there, and what --host or CAISSON_HOST says")
}

// failure is an error that a server has answered, with what came of the call
// nonetheless.
type failure struct {
	error
	result json.RawMessage
}

// Unwrap gives the error itself.
func (f *failure) Unwrap() error { return f.error }

// problemIn reads the error that an answer is.
func problemIn(res *http.Response) error {
	b, err := io.ReadAll(io.LimitReader(res.Body, 256<<20)) // as much as a Result can hold, twice
	var p wire.Problem
	if err != nil || json.Unmarshal(b, &p) != nil || p.Kind == "" {
		return sandbox.Errorf(sandbox.Unavailable, "the server answered %s, and not as caisson does", res.Status).WithHint("see what --host or CAISSON_HOST says")
	}
	return failureOf(p)
}

func failureOf(p wire.Problem) error { return &failure{p.Err(), p.Result} }

// call sends a request and reads its answer.
func call[O any](ctx context.Context, c *Client, r request) (out O, err error) {
	res, err := c.send(ctx, r)
	if err != nil {
		return partly[O](err)
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusNoContent {
		return out, nil
	}
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil {
		return out, c.unreachable(ctx, err)
	}
	return out, nil
}

// partly is what came of a call that failed, and how.
func partly[O any](err error) (out O, _ error) {
	f, ok := err.(*failure) //nolint:errorlint // ours, as it was made
	if !ok {
		return out, err
	}
	if f.result != nil {
		_ = json.Unmarshal(f.result, &out) // the error counts
	}
	return out, f.error
}

// none is a call that answers nothing.
func (c *Client) none(ctx context.Context, r request) error {
	_, err := call[struct{}](ctx, c, r)
	return err
}

// listAll reads all pages of a list, or as many items as limit says where that is
// not 0.
func listAll[T any](ctx context.Context, c *Client, r request, after string, limit int) ([]T, error) {
	items := []T{} // as JSON has a list that is empty
	if r.query == nil {
		r.query = url.Values{}
	}
	for cursor := after; ; {
		size := wire.MaxPage
		if limit > 0 {
			size = min(size, limit-len(items))
		}
		setString(r.query, "cursor", cursor)
		setInt(r.query, "limit", int64(size))
		p, err := call[wire.Page[T]](ctx, c, r)
		if err != nil {
			return items, err
		}
		items = append(items, p.Items...)
		if cursor = p.Next; cursor == "" || limit > 0 && len(items) >= limit {
			return items, nil
		}
	}
}

// list is a list that has no pages.
func list[T any](ctx context.Context, c *Client, r request) ([]T, error) {
	p, err := call[wire.Page[T]](ctx, c, r)
	return p.Items, err
}

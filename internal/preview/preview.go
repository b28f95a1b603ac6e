// Package preview hands HTTP requests on to programs that listen in sandboxes. Such a
// program is a stranger: what shows who asks is none of its business, and what it
// answers must not act for whoever looks at it.
package preview

import (
	"context"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
)

// Target says where a request goes.
type Target struct {
	// Dial connects to the program; the context is the request's.
	Dial func(ctx context.Context) (net.Conn, error)
	// Host is what the program is asked as; "" is as the request is. Path, escaped, is
	// what it is asked for; "" is the request's.
	Host, Path string
	// Hidden are headers of the request that the program does not get.
	Hidden []string
	// Shared says that the answer has its origin together with caisson's own API. A page
	// of it then gets none: its scripts may ask nothing that takes one, and it has no
	// cookies.
	Shared bool
	// Fail answers a request that does not reach the program.
	Fail func(w http.ResponseWriter, err error)
}

// secrets are the headers by which callers of caisson are let in, and what browsers
// send for an origin.
var secrets = []string{"Authorization", "X-API-Key", "X-Amz-Security-Token", "Cookie"}

// noOrigin takes a page's origin from it.
const noOrigin = "sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts"

// mostHeader bounds the header of a program's answer, in bytes.
const mostHeader = 256 << 10

// Serve hands a request on, of any method and WebSockets too, over a connection of its
// own, until both have said all or the request's context is done.
func Serve(w http.ResponseWriter, r *http.Request, to Target) {
	transport := &http.Transport{
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return to.Dial(r.Context()) },
		DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: mostHeader,
	}
	proxy := &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetXForwarded()
			p.Out.URL.Scheme, p.Out.URL.Host = "http", "sandbox"
			p.Out.Host = p.In.Host
			if to.Host != "" {
				p.Out.Host = to.Host
			}
			if to.Path != "" {
				p.Out.URL.RawPath = to.Path
				p.Out.URL.Path, _ = url.PathUnescape(to.Path) // it comes from an URL that was parsed
			}
			hidden := to.Hidden
			if to.Shared {
				hidden = slices.Concat(hidden, secrets)
			}
			for _, name := range hidden {
				p.Out.Header.Del(name)
			}
		},
		ModifyResponse: func(res *http.Response) error {
			contain(res, to.Shared)
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) { to.Fail(w, err) },
	}
	proxy.ServeHTTP(w, r)
}

// contain takes from an answer what would reach beyond its own origin.
func contain(res *http.Response, shared bool) {
	cookies := res.Cookies()
	res.Header.Del("Set-Cookie")
	if shared {
		res.Header.Add("Content-Security-Policy", noOrigin) // beside the program's own: both hold
		return
	}
	for _, c := range cookies {
		c.Domain = "" // other previews are not this program's
		res.Header.Add("Set-Cookie", c.String())
	}
}

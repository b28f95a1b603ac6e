package outbox

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/caisson-dev/caisson/sandbox"
)

// PosterConfig says where a [Poster] may post to.
type PosterConfig struct {
	// Private allows http, and addresses of private networks, of this host and of
	// the link.
	Private bool
	// Allows is the setting that Private comes from, for hints.
	Allows string
}

// Poster posts to addresses that strangers name: redirects are not followed, no
// proxy is used, and the address is checked when it is dialed, after its name was
// resolved. It is safe for concurrent use.
type Poster struct {
	c      PosterConfig
	client *http.Client
}

// NewPoster returns a Poster.
func NewPoster(c PosterConfig) *Poster {
	return &Poster{c: c, client: newClient(newTransport(!c.Private))}
}

// newTransport dials directly, and with public no address but public ones.
func newTransport(public bool) *http.Transport {
	dialer := &net.Dialer{Timeout: webhookPatience}
	if public {
		dialer.Control = onlyPublic
	}
	return &http.Transport{
		MaxResponseHeaderBytes: 64 << 10, TLSHandshakeTimeout: webhookPatience, DialContext: dialer.DialContext,
		IdleConnTimeout: webhookPatience, MaxIdleConnsPerHost: mostAtOnce,
	}
}

func newClient(t http.RoundTripper) *http.Client {
	return &http.Client{
		Timeout: webhookPatience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, Transport: t,
	}
}

// Check says what is wrong with an address without asking anybody. Errors: Invalid,
// and Denied for one that is not allowed.
func (p *Poster) Check(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" {
		return sandbox.Errorf(sandbox.Invalid, "%s is not an address to post to", sandbox.ShownAddress(address)).WithHint("give an https address without a user")
	}
	if p.c.Private {
		return nil
	}
	if u.Scheme == "http" {
		return sandbox.Errorf(sandbox.Denied, "%s: an address without TLS is not posted to", sandbox.ShownAddress(address)).WithHint("give an https address; %s", p.c.Allows)
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && !sandbox.PublicAddress(ip) {
		return p.refused(address)
	}
	return nil
}

func (p *Poster) refused(address string) error {
	return sandbox.Errorf(sandbox.Denied, "%s: %w", sandbox.ShownAddress(address), errPrivate).WithHint("give a public address; %s", p.c.Allows)
}

// Post posts JSON once. With a secret it is signed as [Sign] says. Errors:
// those of Check, Denied for an address that is not allowed, and Unavailable for
// anything but an answer of 2xx.
func (p *Poster) Post(ctx context.Context, address string, secret []byte, headers map[string]string, body []byte) error {
	if err := p.Check(address); err != nil {
		return err
	}
	r, err := post(ctx, p.client, address, secret, "application/json", headers, body)
	switch {
	case errors.Is(err, errPrivate):
		return p.refused(address)
	case err != nil:
		return sandbox.Errorf(sandbox.Unavailable, "post: %w", err)
	case r.Status/100 != 2:
		return sandbox.Errorf(sandbox.Unavailable, "%s answered %d %s", sandbox.ShownAddress(address), r.Status, http.StatusText(r.Status))
	}
	return nil
}

// Close gives up idle connections.
func (p *Poster) Close() error { p.client.CloseIdleConnections(); return nil }

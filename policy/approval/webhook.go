package approval

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"syscall"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// WebhookConfig names a server that answers questions.
type WebhookConfig struct {
	URL string // https, or http where AllowPrivate is set
	// Secret signs what is sent: X-Caisson-Signature is "sha256=" and the HMAC
	// in hex of X-Caisson-Timestamp, a dot, and the body. Required.
	Secret []byte
	// AllowPrivate lets the server have an address of a private network, of
	// this host or of the link. Otherwise such a connection is refused after
	// the name was resolved, whatever the name.
	AllowPrivate bool
	// Timeout bounds one request, 10 s where 0; Backoff is the first pause
	// between two, 500 ms where 0, which doubles up to 15 s. The question's own
	// time bounds all of it.
	Timeout, Backoff time.Duration
	Now              func() time.Time // nil is [time.Now]
}

// Webhook makes an asker of a server. It posts the question as JSON; 200 with a
// reply as in [Command] answers, 202 or 204 means that the answer comes by
// another way (caisson approvals, the API), 408, 425, 429, 5xx and failures of
// the network are tried again, anything else is an error. Redirects are not
// followed and no proxy is used. Errors: Invalid.
func Webhook(c WebhookConfig) (sandbox.Asker, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && (u.Scheme != "http" || !c.AllowPrivate) {
		return nil, sandbox.Errorf(sandbox.Invalid, "%s is not the address of a webhook", sandbox.ShownAddress(c.URL)).
			WithHint("set CAISSON_APPROVE_WEBHOOK to an https address without a user; CAISSON_APPROVE_WEBHOOK_PRIVATE=1 allows http and private networks")
	}
	if len(c.Secret) < 16 {
		return nil, sandbox.Errorf(sandbox.Invalid, "the webhook's secret has fewer than 16 bytes").
			WithHint("set CAISSON_APPROVE_WEBHOOK_SECRET to what the server checks signatures with")
	}
	if c.Timeout <= 0 {
		c.Timeout = 10 * time.Second
	}
	if c.Backoff <= 0 {
		c.Backoff = 500 * time.Millisecond
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	h := &hook{c: c, client: &http.Client{
		Timeout:       c.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy: nil, TLSHandshakeTimeout: c.Timeout, MaxResponseHeaderBytes: 64 << 10,
			DialContext: (&net.Dialer{Timeout: c.Timeout, Control: c.control}).DialContext,
		},
	}}
	return h.ask, nil
}

// errPrivate refuses an address.
var errPrivate = errors.New("the address is not a public one")

// control looks at the address that is about to be connected to, after names
// were resolved.
func (c WebhookConfig) control(_, address string, _ syscall.RawConn) error {
	if c.AllowPrivate {
		return nil
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if !public(at.Addr()) {
		return fmt.Errorf("%w: %s", errPrivate, at.Addr())
	}
	return nil
}

// reserved are ranges beside those that netip names which are nobody's server,
// or which hide another address.
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("192.88.99.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("100::/64"),
	netip.MustParsePrefix("2001::/23"), netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("::/96"),
	netip.MustParsePrefix("fec0::/10"),
}

func public(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() {
		return false
	}
	for _, p := range reserved {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

type hook struct {
	c      WebhookConfig
	client *http.Client
}

// errLater says that the server will answer by another way.
var errLater = errors.New("the answer comes later")

func (h *hook) ask(ctx context.Context, a sandbox.Approval) (sandbox.ApprovalAnswer, error) {
	body, err := json.Marshal(a)
	if err != nil {
		return sandbox.ApprovalAnswer{}, err
	}
	defer h.client.CloseIdleConnections()
	for pause := h.c.Backoff; ; pause = min(2*pause, 15*time.Second) {
		ans, again, err := h.post(ctx, a, body)
		switch {
		case err == nil:
			return ans, nil
		case errors.Is(err, errLater):
			<-ctx.Done()
			return ans, ctx.Err()
		case !again || ctx.Err() != nil:
			return ans, err
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ans, err
		}
	}
}

// post asks once.
func (h *hook) post(ctx context.Context, a sandbox.Approval, body []byte) (ans sandbox.ApprovalAnswer, again bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.c.URL, bytes.NewReader(body))
	if err != nil {
		return ans, false, sandbox.ShownError(err)
	}
	stamp := strconv.FormatInt(h.c.Now().Unix(), 10)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Caisson-Approval", string(a.ID))
	req.Header.Set("X-Caisson-Timestamp", stamp)
	req.Header.Set("X-Caisson-Signature", "sha256="+Sign(h.c.Secret, stamp, body))
	res, err := h.client.Do(req)
	if err != nil {
		wrapped := sandbox.Errorf(sandbox.Unavailable, "the webhook: %w", sandbox.ShownError(err))
		if errors.Is(err, errPrivate) {
			return ans, false, wrapped.WithHint("CAISSON_APPROVE_WEBHOOK_PRIVATE=1 allows private networks")
		}
		return ans, true, wrapped
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, mostAnswer+1))
	switch {
	case err != nil:
		return ans, true, sandbox.Errorf(sandbox.Unavailable, "the webhook: %w", err)
	case res.StatusCode == http.StatusAccepted, res.StatusCode == http.StatusNoContent:
		return ans, false, errLater
	case res.StatusCode == http.StatusOK && len(b) <= mostAnswer:
		ans, err = answer(b, "webhook", req.URL.Hostname())
		return ans, false, err
	}
	switch res.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		again = true
	default:
		again = res.StatusCode >= 500
	}
	return ans, again, sandbox.Errorf(sandbox.Unavailable, "the webhook answered %s", res.Status)
}

// Sign is the signature of a question: the HMAC-SHA256, in hex, of the
// timestamp, a dot and the body. A server compares it in constant time, and
// refuses timestamps that are old.
func Sign(secret []byte, timestamp string, body []byte) string {
	m := hmac.New(sha256.New, secret)
	m.Write([]byte(timestamp + "."))
	m.Write(body)
	return hex.EncodeToString(m.Sum(nil))
}

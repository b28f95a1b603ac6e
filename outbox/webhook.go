package outbox

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// WebhookConfig names a server that takes letters.
type WebhookConfig struct {
	URL    string // https, or http where Plain is set
	Secret []byte // signs what is sent; none leaves it unsigned
	Plain  bool
	// Setting is what the URL is set by, for errors: CAISSON_ALERTS_WEBHOOK, say,
	// whose Plain is CAISSON_ALERTS_WEBHOOK_PLAIN.
	Setting string
}

// webhookPatience bounds one request.
const webhookPatience = 10 * time.Second

// Webhook posts letters to a server, as application/x-ndjson: each is a line, or
// several. With a secret, X-Caisson-Signature is what [Sign] says of
// X-Caisson-Timestamp and the body. Anything but 2xx is a failure. Redirects are
// not followed and no proxy is used. Errors: Invalid.
func Webhook(c WebhookConfig) (Receiver, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && (u.Scheme != "http" || !c.Plain) {
		return nil, sandbox.Errorf(sandbox.Invalid, "%s is not the address of a webhook", sandbox.ShownAddress(c.URL)).
			WithHint("set %[1]s to an https address without a user; %[1]s_PLAIN=1 allows http", c.Setting)
	}
	return &webhook{c: c, client: &http.Client{
		Timeout: webhookPatience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{MaxResponseHeaderBytes: 64 << 10},
	}}, nil
}

type webhook struct {
	c      WebhookConfig
	client *http.Client
}

// Sign is the signature of what is sent: "sha256=" and the HMAC in hex of the
// timestamp, a dot, and the body. A server compares it in constant time, and
// refuses timestamps that are old.
func Sign(secret []byte, timestamp string, body []byte) string {
	m := hmac.New(sha256.New, secret)
	m.Write([]byte(timestamp + "."))
	m.Write(body)
	return "sha256=" + hex.EncodeToString(m.Sum(nil))
}

// Deliver posts letters in one request.
func (h *webhook) Deliver(ctx context.Context, letters []sandbox.Letter) error {
	body := lines(letters)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.c.URL, bytes.NewReader(body))
	if err != nil {
		return sandbox.ShownError(err)
	}
	at := strconv.FormatInt(time.Now().Unix(), 10)
	req.Header.Set("Content-Type", "application/x-ndjson")
	req.Header.Set("X-Caisson-Timestamp", at)
	if len(h.c.Secret) > 0 {
		req.Header.Set("X-Caisson-Signature", Sign(h.c.Secret, at, body))
	}
	res, err := h.client.Do(req)
	if err != nil {
		return sandbox.ShownError(err)
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10)) // so that the connection is used again
	if err := res.Body.Close(); err != nil {
		return err
	}
	if res.StatusCode/100 != 2 {
		return sandbox.Errorf(sandbox.Unavailable, "the webhook answered %s", res.Status)
	}
	return nil
}

// Close gives up idle connections.
func (h *webhook) Close() error { h.client.CloseIdleConnections(); return nil }

// lines are letters one behind the other, each ended.
func lines(letters []sandbox.Letter) []byte {
	var b bytes.Buffer
	for _, l := range letters {
		b.Write(l.Body)
		if !bytes.HasSuffix(l.Body, []byte("\n")) {
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
}

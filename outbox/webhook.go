package outbox

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// WebhookConfig names a server that takes letters.
type WebhookConfig struct {
	URL    string // https, or http where Plain is set
	Secret []byte // signs what is sent; none leaves it unsigned
	Plain  bool
	// Signed requires a secret, of 16 bytes at least.
	Signed bool
	// Public refuses connections to addresses of private networks, of this host and
	// of the link, after names were resolved. Where Correspondent is nil such a
	// failure is as any other.
	Public bool
	// Setting is what the URL is set by, for errors: CAISSON_ALERTS_WEBHOOK, say.
	// Allows is the setting that Plain and not Public come from, and what it does;
	// "" is Setting_PLAIN=1.
	Setting, Allows string
	// Correspondent has each letter posted by itself, and hears the answers. nil
	// posts them together.
	Correspondent Correspondent
	// Transport is for tests; nil is one of its own.
	Transport http.RoundTripper
}

// Correspondent speaks with a server by letters. It is called from several
// goroutines.
type Correspondent interface {
	// Request returns what is posted for a letter, as JSON, with headers of its
	// own. No body means that the letter is not wanted any more. An error has it
	// tried again.
	Request(ctx context.Context, l sandbox.Letter) (headers map[string]string, body []byte, err error)
	// Reply hears what became of it. An error has it tried again.
	Reply(ctx context.Context, l sandbox.Letter, r sandbox.Reply) error
}

const (
	// webhookPatience bounds one request.
	webhookPatience = 10 * time.Second
	// mostReply bounds what is read of an answer.
	mostReply = 64 << 10
	// mostAtOnce bounds the requests of a correspondent that are under way.
	mostAtOnce = 8
	// leastSecret is how long a secret is that has to be one.
	leastSecret = 16
)

// Webhook posts letters to a server, as application/x-ndjson: each is a line, or
// several. With a secret, X-Caisson-Signature is what [Sign] says of
// X-Caisson-Timestamp and the body. Anything but 2xx is a failure. Redirects are
// not followed and no proxy is used. Errors: Invalid.
func Webhook(c WebhookConfig) (Receiver, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && (u.Scheme != "http" || !c.Plain) {
		return nil, sandbox.Errorf(sandbox.Invalid, "%s is not the address of a webhook", sandbox.ShownAddress(c.URL)).
			WithHint("set %s to an https address without a user; %s", c.Setting, c.allows())
	}
	if c.Signed && len(c.Secret) < leastSecret {
		return nil, sandbox.Errorf(sandbox.Invalid, "the webhook's secret has fewer than %d bytes", leastSecret).
			WithHint("set %s_SECRET to what the server checks signatures with", c.Setting)
	}
	if c.Transport == nil {
		c.Transport = newTransport(c.Public)
	}
	return &webhook{c: c, host: u.Hostname(), taken: map[int64]bool{}, client: newClient(c.Transport)}, nil
}

func (c WebhookConfig) allows() string { return cmp.Or(c.Allows, c.Setting+"_PLAIN=1 allows http") }

type webhook struct {
	c      WebhookConfig
	host   string
	client *http.Client
	taken  map[int64]bool // letters that were, of a delivery that failed
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

// Deliver posts letters in one request, or has a correspondent speak of each.
func (h *webhook) Deliver(ctx context.Context, letters []sandbox.Letter) error {
	if h.c.Correspondent != nil {
		return h.each(ctx, letters)
	}
	r, err := post(ctx, h.client, h.c.URL, h.c.Secret, "application/x-ndjson", nil, lines(letters))
	if err == nil && r.Status/100 != 2 {
		err = sandbox.Errorf(sandbox.Unavailable, "the webhook answered %d %s", r.Status, http.StatusText(r.Status))
	}
	return err
}

// each delivers letters one by one, some at once. Those that were taken are not
// posted again for the others.
func (h *webhook) each(ctx context.Context, letters []sandbox.Letter) error {
	errs := make([]error, len(letters))
	slots := make(chan struct{}, mostAtOnce)
	var all sync.WaitGroup
	for i, l := range letters {
		if h.taken[l.ID] {
			continue
		}
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			errs[i] = h.one(ctx, l)
		})
	}
	all.Wait()
	for i, l := range letters {
		if errs[i] == nil {
			h.taken[l.ID] = true
		}
	}
	err := errors.Join(errs...)
	if err == nil {
		clear(h.taken)
	}
	return err
}

// one posts a letter and has its answer heard.
func (h *webhook) one(ctx context.Context, l sandbox.Letter) error {
	headers, body, err := h.c.Correspondent.Request(ctx, l)
	if err != nil || body == nil {
		return err
	}
	r, err := post(ctx, h.client, h.c.URL, h.c.Secret, "application/json", headers, body)
	if errors.Is(err, errPrivate) { // no later attempt mends that
		r.Failed = sandbox.Errorf(sandbox.Unavailable, "the webhook: %w", err).WithHint("%s", h.c.allows())
	} else if err != nil {
		return sandbox.Errorf(sandbox.Unavailable, "the webhook: %w", err)
	}
	r.From = h.host
	return h.c.Correspondent.Reply(ctx, l, r)
}

// post makes one request.
func post(ctx context.Context, client *http.Client, address string, secret []byte, kind string, headers map[string]string, body []byte) (r sandbox.Reply, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return r, sandbox.ShownError(err)
	}
	at := strconv.FormatInt(time.Now().Unix(), 10)
	req.Header.Set("Content-Type", kind)
	req.Header.Set("X-Caisson-Timestamp", at)
	for name, v := range headers {
		req.Header.Set(name, v)
	}
	if len(secret) > 0 {
		req.Header.Set("X-Caisson-Signature", Sign(secret, at, body))
	}
	res, err := client.Do(req)
	if err != nil {
		return r, sandbox.ShownError(err)
	}
	defer res.Body.Close()
	r.Status = res.StatusCode
	r.Body, err = io.ReadAll(io.LimitReader(res.Body, mostReply+1)) // also so that the connection is used again
	if len(r.Body) > mostReply {
		r.Body = nil
	}
	return r, err
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

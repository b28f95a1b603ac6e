package tools

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/caisson-dev/caisson/sandbox"
)

// statusKinds class what an endpoint refuses; others that are no success are internal.
var statusKinds = map[int]sandbox.Kind{
	http.StatusBadRequest: sandbox.Invalid, http.StatusUnprocessableEntity: sandbox.Invalid, http.StatusUnauthorized: sandbox.Denied,
	http.StatusForbidden: sandbox.Denied, http.StatusNotFound: sandbox.NotFound, http.StatusConflict: sandbox.Conflict,
	http.StatusTooManyRequests: sandbox.Exhausted, http.StatusBadGateway: sandbox.Unavailable, http.StatusServiceUnavailable: sandbox.Unavailable,
	http.StatusGatewayTimeout: sandbox.TimedOut,
}

// Endpoint makes a tool of an HTTP endpoint: the arguments are posted to it as JSON,
// with the headers, and its result is the body of a successful answer: JSON, or a text,
// or base64 where it is neither. A redirect is no success: the headers are for this
// place alone. A nil client is the default one.
func Endpoint(t sandbox.Tool, address string, headers map[string]string, client *http.Client) (sandbox.Callable, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return sandbox.Callable{}, sandbox.Errorf(sandbox.Invalid, "tool %s: %q is no address of an endpoint", t.Name, address).WithHint("write url: https://host/path")
	}
	if client == nil {
		client = http.DefaultClient
	}
	own := *client
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return sandbox.Callable{Tool: t, Call: func(ctx context.Context, arguments json.RawMessage) (json.RawMessage, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(arguments))
		if err != nil {
			return nil, sandbox.Errorf(sandbox.Invalid, "tool %s: %w", t.Name, err)
		}
		req.Header.Set("Content-Type", "application/json")
		for name, value := range headers {
			req.Header.Set(name, value)
		}
		res, err := own.Do(req)
		if err != nil {
			return nil, sandbox.Errorf(sandbox.Unavailable, "tool %s: its endpoint does not answer: %w", t.Name, withoutAddress(err))
		}
		defer res.Body.Close()
		body, err := io.ReadAll(io.LimitReader(res.Body, int64(sandbox.MaxToolData)+1))
		switch {
		case err != nil:
			return nil, sandbox.Errorf(sandbox.Unavailable, "tool %s: read the answer of its endpoint: %w", t.Name, err)
		case res.StatusCode/100 != 2:
			kind, ok := statusKinds[res.StatusCode]
			if !ok {
				kind = sandbox.Internal
			}
			return nil, sandbox.Errorf(kind, "tool %s: %s: %s", t.Name, res.Status, shortened(strings.TrimSpace(strings.ToValidUTF8(string(body), "?"))))
		case len(body) > int(sandbox.MaxToolData):
			return nil, sandbox.Errorf(sandbox.Exhausted, "tool %s: its endpoint answered more than %s", t.Name, sandbox.MaxToolData.Human())
		case len(body) == 0:
			return json.RawMessage("null"), nil
		case !utf8.Valid(body):
			return json.Marshal(base64.StdEncoding.EncodeToString(body))
		}
		return textOrJSON(body)
	}}, nil
}

// withoutAddress is why a request failed, without where it went: the program need not
// know, and a key may stand there.
func withoutAddress(err error) error {
	if u, ok := err.(*url.Error); ok { //nolint:errorlint // the client wraps in it, and nothing else is taken off
		return u.Err
	}
	return err
}

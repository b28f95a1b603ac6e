package dockerclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docker/cli/cli/config"
	"github.com/docker/cli/cli/context/docker"
	"github.com/docker/docker/api/types/versions"
	"github.com/docker/docker/client"

	"github.com/caisson-dev/caisson/sandbox"
)

// MinAPIVersion is the oldest API that caisson speaks: Docker Engine 20.10.
const MinAPIVersion = "1.41"

// Config says which engine is meant. Its zero value means the one that the
// docker command would use.
type Config struct {
	// Host overrides DOCKER_HOST, Context overrides DOCKER_CONTEXT. A Host
	// beats a Context.
	Host    string
	Context string
	// ConfigDir overrides DOCKER_CONFIG; "" is docker's own default.
	ConfigDir string
	// PingTimeout bounds the first answer of the engine. 0 is 10 s; an engine
	// behind ssh has 45 s.
	PingTimeout time.Duration
	// Getenv reads the environment. nil is [os.Getenv].
	Getenv func(string) string
}

// Client is the way to one engine. It is safe for concurrent use. Who made it
// closes it.
type Client struct {
	sdk     *client.Client
	fresh   *client.Client // opens a connection for each call
	host    string
	context string
	timeout time.Duration

	verified atomic.Bool
	mu       sync.Mutex // held over the ping, so that a process pings once
	version  string     // of the API, guarded by mu
}

// New resolves the engine's address and makes a client, without connecting.
// Its errors are [sandbox.Invalid] for an address or a TLS file that cannot be
// used, and [sandbox.NotFound] for a context that does not exist.
func New(cfg Config) (*Client, error) {
	if cfg.Getenv == nil {
		cfg.Getenv = os.Getenv
	}
	cfg.ConfigDir = cmp.Or(cfg.ConfigDir, cfg.Getenv("DOCKER_CONFIG"), config.Dir())
	ep, name, err := cfg.endpoint()
	if err != nil {
		return nil, err
	}
	host := cmp.Or(ep.Host, client.DefaultDockerHost)
	if v := cfg.Getenv(client.EnvOverrideAPIVersion); v != "" && versions.LessThan(strings.TrimPrefix(v, "v"), MinAPIVersion) {
		return nil, sandbox.Errorf(sandbox.Unsupported, "%s=%s asks for an older API than %s", client.EnvOverrideAPIVersion, v, MinAPIVersion).
			WithHint("unset %s", client.EnvOverrideAPIVersion)
	}
	c := &Client{host: host, context: name}
	if c.sdk, err = newSDK(ep, host); err != nil {
		return nil, err
	}
	c.fresh = c.sdk
	if !strings.HasPrefix(host, "ssh://") {
		if c.fresh, err = newSDK(ep, host, withoutKeepAlive); err != nil {
			return nil, err
		}
	}
	if cfg.PingTimeout == 0 {
		cfg.PingTimeout = 10 * time.Second
		if strings.HasPrefix(host, "ssh://") {
			cfg.PingTimeout = 45 * time.Second
		}
	}
	c.timeout = cfg.PingTimeout
	return c, nil
}

func newSDK(ep docker.Endpoint, host string, more ...client.Opt) (*client.Client, error) {
	options, err := ep.ClientOpts()
	if err == nil {
		var sdk *client.Client
		sdk, err = client.NewClientWithOpts(append(append(options, client.WithUserAgent("caisson")), more...)...)
		if err == nil {
			return sdk, nil
		}
	}
	return nil, sandbox.Errorf(sandbox.Invalid, "engine %s: %w", host, err).
		WithHint("DOCKER_HOST takes unix:///path, tcp://host:port or ssh://user@host")
}

// withoutKeepAlive has the SDK's client open a connection for each call.
func withoutKeepAlive(c *client.Client) error {
	t, ok := c.HTTPClient().Transport.(*http.Transport)
	if !ok {
		return fmt.Errorf("the SDK's transport is a %T", c.HTTPClient().Transport)
	}
	t.DisableKeepAlives = true
	return nil
}

// Missing reports whether nobody has named an engine and there is nothing at the usual
// place: not one that is there and does not answer.
func (c *Client) Missing() bool {
	if c.host != client.DefaultDockerHost {
		return false
	}
	_, err := os.Stat(strings.TrimPrefix(c.host, "unix://"))
	return errors.Is(err, fs.ErrNotExist)
}

// Host is the engine's address, such as "unix:///var/run/docker.sock".
func (c *Client) Host() string { return c.host }

// Context is the docker context that named the engine, or "default".
func (c *Client) Context() string { return c.context }

// Local reports whether the engine is spoken to over a Unix socket. That is
// most often an engine of this host, but no proof: a socket can be forwarded.
func (c *Client) Local() bool { return strings.HasPrefix(c.host, "unix://") }

// API returns the SDK's client once the engine has answered and its API is new
// enough. Only the first success costs a round trip; a failure is not
// remembered, so that an engine that is started later is found.
//
// Its errors are [sandbox.Unavailable] (no engine, or something that is not
// one), [sandbox.Denied] (no permission), [sandbox.Unsupported] (too old) and
// [sandbox.TimedOut], each with a hint.
func (c *Client) API(ctx context.Context) (*client.Client, error) {
	if c.verified.Load() {
		return c.sdk, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.verified.Load() {
		return c.sdk, nil
	}
	if err := c.verifyLocked(ctx); err != nil {
		return nil, err
	}
	c.verified.Store(true)
	return c.sdk, nil
}

// Fresh is [Client.API] on connections that no call had before. What creates or
// starts a container must use it: an engine that shuts down closes its door
// first, but goes on to serve the connections that are open, and what it makes
// then can leave a mount behind, for which nobody can remove that container. A
// caller that has seen a container end, which is how it learns of a shutdown, is
// refused here. Each call costs a connection; behind ssh, where that is a login,
// Fresh is the same as API.
func (c *Client) Fresh(ctx context.Context) (*client.Client, error) {
	if _, err := c.API(ctx); err != nil {
		return nil, err
	}
	return c.fresh, nil
}

// APIVersion returns the version that was negotiated, such as "1.41". It
// connects where that has not happened yet, with the errors of [Client.API].
func (c *Client) APIVersion(ctx context.Context) (string, error) {
	if _, err := c.API(ctx); err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version, nil
}

// Close ends the idle connections to the engine. It may be called twice.
func (c *Client) Close() error { return errors.Join(c.sdk.Close(), c.fresh.Close()) }

func (c *Client) verifyLocked(ctx context.Context) error {
	pingCtx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	ping, err := c.sdk.Ping(pingCtx)
	switch {
	case err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		return sandbox.Errorf(sandbox.TimedOut, "the engine at %s did not answer within %s", c.host, c.timeout).
			WithHint("look at the engine's log, or restart it: systemctl restart docker")
	case err != nil:
		return c.unreachable(err)
	case ping.APIVersion == "":
		return sandbox.Errorf(sandbox.Unavailable, "%s answers, but not as a Docker Engine does", c.host).
			WithHint("something else listens there: check DOCKER_HOST and `docker context ls`")
	case versions.LessThan(ping.APIVersion, MinAPIVersion):
		return sandbox.Errorf(sandbox.Unsupported, "the engine at %s speaks API %s, and caisson needs %s or newer",
			c.host, ping.APIVersion, MinAPIVersion).WithHint("upgrade to Docker Engine 20.10 or newer")
	}
	c.sdk.NegotiateAPIVersionPing(ping)
	c.fresh.NegotiateAPIVersionPing(ping)
	c.version = c.sdk.ClientVersion()
	return nil
}

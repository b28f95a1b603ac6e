package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/caisson-dev/caisson"
	"github.com/caisson-dev/caisson/api/listen"
	"github.com/caisson-dev/caisson/api/server"
	"github.com/caisson-dev/caisson/cli"
	"github.com/caisson-dev/caisson/mcp"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// loopback is where a server listens beside its Unix socket.
const loopback = "127.0.0.1:7373"

// serve answers over HTTP until ctx is done.
func (a *app) serve(ctx context.Context, o cli.ServeOptions) (err error) {
	if a.getenv("CAISSON_RUNTIME") == runtimes.Auto {
		return sandbox.Errorf(sandbox.Invalid, "a server does not choose a runtime").WithHint("set CAISSON_RUNTIME to one, or unset it for docker")
	}
	if o.Lease != "" {
		held, stop, err := whileHeld(ctx, o.Lease)
		if err != nil {
			return err
		}
		defer stop()
		ctx = held
	}
	door := a.serving(o)
	svc, err := door.Open(ctx)
	if err != nil {
		return err
	}
	cfg, err := sockets(door, o)
	if err != nil {
		return err
	}
	var others []server.Wire
	cfg.AnyOrigin = func(r *http.Request) bool { return server.Owner(others, r) != nil }
	s, err := listen.Open(ctx, cfg)
	if err != nil {
		return err
	}
	agents, err := mcp.New(mcp.Config{Service: svc, Version: caisson.Version(), Log: a.log})
	if err != nil {
		return errors.Join(err, s.Close())
	}
	defer agents.Close()
	state, _, err := door.Folders()
	if err != nil {
		return errors.Join(err, s.Close())
	}
	let := authenticate(door)
	var rest func()
	if others, rest, err = wires(ctx, o.Wires, wireParts{svc, state, o.Snapshots, a.log}); err != nil {
		return errors.Join(err, s.Close())
	}
	defer rest()
	h, err := server.New(server.Config{Service: svc, Authenticate: letIn(others, let), Log: a.log, Version: caisson.Version(), MCP: agents.Handler(), Wires: others})
	if err != nil {
		return errors.Join(err, s.Close())
	}
	for _, address := range s.Addresses() {
		if _, err := fmt.Fprintln(a.out, address); err != nil {
			return errors.Join(err, s.Close())
		}
	}
	if f := s.Fingerprint(); f != "" {
		fmt.Fprintln(a.err, "caisson: certificate", f)
	}
	_, _ = daemon.SdNotify(false, daemon.SdNotifyReady) // nobody has asked for it
	calm, stop := resting(h, a.giveBack)
	defer stop()
	return s.Serve(ctx, calm, func() {
		_, _ = daemon.SdNotify(false, daemon.SdNotifyStopping) // as above
		h.EndStreams()
	})
}

// sockets is where the options have the server listen.
func sockets(door *caisson.Caisson, o cli.ServeOptions) (listen.Config, error) {
	cfg := listen.Config{
		Addresses: o.Listen, Activated: true, Open: o.NoAuth, Plain: o.Plain, Hosts: o.AllowHosts, Origins: o.AllowOrigins, Drain: time.Duration(o.Drain),
		TLS: listen.TLS{Cert: o.Cert, Key: o.Key, ClientCA: o.ClientCA, Names: o.Names},
	}
	state, run, err := door.Folders()
	if err != nil {
		return cfg, err
	}
	if o.SelfSigned {
		cfg.TLS.SelfSigned = filepath.Join(state, "tls")
	}
	if len(o.Listen) == 0 && os.Getenv("LISTEN_FDS") == "" {
		cfg.Addresses = []string{"unix://" + filepath.Join(run, "caisson.sock"), loopback}
	}
	return cfg, nil
}

// secretHeaders are where callers show their tokens: that of HTTP (also as a
// password, for clients that know their server by an address alone), that of many
// APIs, and where the vendor of functions has what is temporary.
var secretHeaders = []string{"Authorization", "X-API-Key", "X-Amz-Security-Token"}

// authenticate says who asks: by their token, or by the socket that they came by.
func authenticate(door *caisson.Caisson) func(*http.Request) (sandbox.Caller, error) {
	return func(r *http.Request) (sandbox.Caller, error) {
		for _, name := range secretHeaders {
			secret := r.Header.Get(name)
			if name == "Authorization" {
				var is bool
				if secret, is = cutBearer(secret); !is {
					if _, secret, is = r.BasicAuth(); !is {
						continue
					}
				}
			}
			if secret != "" {
				return door.Authenticate(r.Context(), secret)
			}
		}
		if listen.Trusted(r) {
			return sandbox.Caller{}, nil
		}
		return sandbox.Caller{}, sandbox.Errorf(sandbox.Denied, "no token").WithHint("send Authorization: Bearer TOKEN; make one where the server runs with: caisson token create")
	}
}

func cutBearer(header string) (string, bool) {
	scheme, secret, ok := strings.Cut(header, " ")
	return strings.TrimSpace(secret), ok && strings.EqualFold(scheme, "Bearer")
}

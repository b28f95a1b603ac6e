package main

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"strings"

	"github.com/caisson-dev/caisson/api/client"
	"github.com/caisson-dev/caisson/cli"
	"github.com/caisson-dev/caisson/sandbox"
)

// connect has the commands speak with a server, where there is one to speak with.
func (a *app) connect(host string) error {
	if host == "" {
		return nil
	}
	token, err := a.token()
	if err != nil {
		return err
	}
	trusted, err := a.trusted()
	if err != nil {
		return err
	}
	a.progress = cli.NewProgress(a.err)
	a.remote, err = client.New(client.Config{Host: host, Token: token, TLS: trusted, Progress: a.progress.Show})
	return err
}

// token is what a server is shown. It is no flag: a process's arguments are for
// everybody to see.
func (a *app) token() (string, error) {
	if token := a.getenv("CAISSON_TOKEN"); token != "" {
		return token, nil
	}
	name := a.getenv("CAISSON_TOKEN_FILE")
	if name == "" {
		return "", nil
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return "", sandbox.Errorf(sandbox.Invalid, "read the token: %w", err).WithHint("see what CAISSON_TOKEN_FILE says")
	}
	return strings.TrimSpace(string(b)), nil
}

// trusted are the authorities that vouch for a server, nil for those of this host.
func (a *app) trusted() (*tls.Config, error) {
	name := a.getenv("CAISSON_TLS_CA")
	if name == "" {
		return nil, nil
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "read the server's authority: %w", err).WithHint("see what CAISSON_TLS_CA says")
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(b) {
		return nil, sandbox.Errorf(sandbox.Invalid, "%s holds no certificate", name).WithHint("name a file in PEM with CAISSON_TLS_CA")
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}

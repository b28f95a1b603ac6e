package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-dev/caisson/sandbox"
)

// ServeOptions say how a server listens, and whom it lets in.
type ServeOptions struct {
	Listen                   []string // "unix:///path" or "host:port"; none is a socket of the user's and loopback
	NoAuth                   bool     // on loopback nobody needs a token
	Cert, Key, ClientCA      string   // files
	SelfSigned, Plain        bool
	Names                    []string // in the certificate that is made
	AllowHosts, AllowOrigins []string
	AllowRuntimes            []string         // that callers with a token may ask for
	Wires                    []string         // APIs of other products
	Snapshots                sandbox.Duration // how long those of E2B's clients are kept
	OthersApprove            bool
	Drain                    sandbox.Duration
	Lease                    string // a FIFO: the server ends once nobody holds it open for writing
}

func newServe(cfg Config) *cobra.Command {
	o := ServeOptions{Drain: sandbox.Duration(30 * time.Second), Snapshots: sandbox.Duration(30 * 24 * time.Hour)}
	cmd := &cobra.Command{
		Use: "serve", Short: "Serve the API over HTTP, until interrupted", Args: cobra.NoArgs,
		Long: `Serve the API over HTTP, until interrupted: on a Unix socket that its user alone
can reach, and on 127.0.0.1:7373 with tokens (caisson token create), unless --listen
says otherwise. The addresses are printed once it answers. With CAISSON_HOST set to
one of them, and CAISSON_TOKEN, every command works against the server.

Sessions, and what runs in them in the background, go on when the server ends, and
are taken up by the next. Who can reach the server as an admin is as powerful as
root on the engine's host: docs/server.md says more.`,
		Example: `  caisson serve                                       # needs to be interrupted, as the others
  caisson serve --listen 127.0.0.1:8000 --no-auth    # needs a place where all users are trusted
  caisson serve --listen 0.0.0.0:443 --tls-self-signed --tls-name box.example    # needs a port of root's`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cfg.Serve(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.Listen, "listen", nil, "`ADDRESS` to listen on: unix:///path/of.sock or host:port (repeatable)")
	f.BoolVar(&o.NoAuth, "no-auth", false, "on loopback, take everybody for the local user")
	f.StringVar(&o.Cert, "tls-cert", "", "`FILE` with the certificate, in PEM")
	f.StringVar(&o.Key, "tls-key", "", "`FILE` with its key")
	f.StringVar(&o.ClientCA, "tls-client-ca", "", "`FILE` with what has to have signed the certificates of callers")
	f.BoolVar(&o.SelfSigned, "tls-self-signed", false, "make a certificate, keep it in the state folder, and print its fingerprint")
	f.StringArrayVar(&o.Names, "tls-name", nil, "`NAME` or address in that certificate, beside localhost and this machine's name (repeatable)")
	f.BoolVar(&o.Plain, "plain-http", false, "listen beyond loopback without TLS, where a proxy before it has that")
	f.StringArrayVar(&o.AllowHosts, "allow-host", nil, "`NAME` under which it may be asked, beside addresses, localhost and those in its certificate (repeatable)")
	f.StringArrayVar(&o.AllowOrigins, "allow-origin", nil, "`ORIGIN` whose pages may ask it from a browser (repeatable)")
	f.StringArrayVar(&o.AllowRuntimes, "allow-runtime", nil, "`RUNTIME` that callers who are no admins may ask for, beside the server's own (repeatable)")
	f.StringArrayVar(&o.Wires, "wire", nil, "answer clients of another product too, by its `NAME`: e2b, fusion or swerex (repeatable)")
	durationVar(f, &o.Snapshots, "e2b-snapshots", o.Snapshots, "how long a snapshot of E2B's clients is kept that nothing is made of; 0 is for ever")
	f.BoolVar(&o.OthersApprove, "others-approve", false, "who asks may not approve: what a token asks, another has to")
	durationVar(f, &o.Drain, "drain", o.Drain, "time for what is being answered, once the server ends")
	f.StringVar(&o.Lease, "lease", "", "end once nobody has `FIFO` open for writing any more: for a server that its users start")
	return cmd
}

// Serve serves as options say until ctx is done.
type Serve func(ctx context.Context, o ServeOptions) error

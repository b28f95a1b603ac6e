package listen

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/docker/go-connections/tlsconfig"

	"github.com/caisson-dev/caisson/sandbox"
)

// TLS says how connections are secured. The zero value does not.
type TLS struct {
	Cert, Key string // files in PEM
	ClientCA  string // a file: who connects has to show a certificate that it signed
	// SelfSigned is a folder in which a certificate of our own is kept, which is made
	// where it is missing. "" is none.
	SelfSigned string
	// Names and addresses stand in that certificate, beside localhost and the name
	// of this machine.
	Names []string
}

// load returns the settings, the certificate's fingerprint, and the names in it; all
// are zero without TLS. Errors: Invalid.
func (t TLS) load() (cfg *tls.Config, fingerprint string, names []string, err error) {
	switch {
	case t.SelfSigned != "" && t.Cert != "":
		return nil, "", nil, sandbox.Errorf(sandbox.Invalid, "both a certificate and a self-signed one are asked for").WithHint("leave --tls-cert or --tls-self-signed out")
	case t.SelfSigned != "":
		if t.Cert, t.Key, err = t.selfSigned(); err != nil {
			return nil, "", nil, err
		}
	case t.Cert == "" && t.Key == "" && t.ClientCA == "":
		return nil, "", nil, nil
	case t.Cert == "" || t.Key == "":
		return nil, "", nil, sandbox.Errorf(sandbox.Invalid, "a certificate and its key belong together").WithHint("give both --tls-cert and --tls-key")
	}
	o := tlsconfig.Options{CertFile: t.Cert, KeyFile: t.Key, CAFile: t.ClientCA, ExclusiveRootPools: true}
	if t.ClientCA != "" {
		o.ClientAuth = tls.RequireAndVerifyClientCert
	}
	cfg, err = tlsconfig.Server(o)
	if err != nil {
		return nil, "", nil, sandbox.Errorf(sandbox.Invalid, "read the certificate: %w", err).WithHint("--tls-cert, --tls-key and --tls-client-ca name files in PEM")
	}
	leaf, err := x509.ParseCertificate(cfg.Certificates[0].Certificate[0])
	if err != nil {
		return nil, "", nil, sandbox.Errorf(sandbox.Invalid, "read the certificate: %w", err)
	}
	sum := sha256.Sum256(leaf.Raw)
	return cfg, "sha256:" + hex.EncodeToString(sum[:]), leaf.DNSNames, nil
}

// selfSigned returns the files of the certificate that is kept, making it first
// where there is none that is good for a day more.
func (t TLS) selfSigned() (cert, key string, err error) {
	cert, key = filepath.Join(t.SelfSigned, "server.crt"), filepath.Join(t.SelfSigned, "server.key")
	if pair, err := tls.LoadX509KeyPair(cert, key); err == nil && time.Now().Add(24*time.Hour).Before(pair.Leaf.NotAfter) && covers(pair.Leaf, t.Names) {
		return cert, key, nil
	}
	fail := func(err error) (string, string, error) {
		return "", "", sandbox.Errorf(sandbox.Unavailable, "make a certificate: %w", err).WithHint("check the permissions of %s", t.SelfSigned)
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fail(err)
	}
	raw, err := x509.CreateCertificate(rand.Reader, t.template(), t.template(), &private.PublicKey, private)
	if err != nil {
		return fail(err)
	}
	pk, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return fail(err)
	}
	err = errors.Join(os.MkdirAll(t.SelfSigned, 0o700),
		os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pk}), 0o600),
		os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), 0o644))
	if err != nil {
		return fail(err)
	}
	return cert, key, nil
}

func (t TLS) template() *x509.Certificate {
	now := time.Now()
	c := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "caisson"}, NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	if name, err := os.Hostname(); err == nil {
		c.DNSNames = append(c.DNSNames, name)
	}
	for _, name := range t.Names {
		if ip := net.ParseIP(name); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else {
			c.DNSNames = append(c.DNSNames, name)
		}
	}
	return c
}

func covers(c *x509.Certificate, names []string) bool {
	for _, name := range names {
		if c.VerifyHostname(name) != nil {
			return false
		}
	}
	return true
}

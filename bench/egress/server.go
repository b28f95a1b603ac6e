//go:build linux

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// maxTime bounds the client's run.
const maxTime = 30 * time.Minute

// server answers over TLS as bench.test.
type server struct {
	*httptest.Server
	port      int
	authority string
}

func serve(large int) (*server, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"bench.test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/small", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "small") // who is gone needs no answer
	})
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(large))
		block := make([]byte, 1<<20)
		for range large / len(block) {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	})
	s := &server{Server: httptest.NewUnstartedServer(mux), authority: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))}
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS13}
	s.StartTLS()
	s.port = s.Listener.Addr().(*net.TCPAddr).Port
	return s, nil
}

func (s *server) resolve(context.Context, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
}

func (s *server) network() sandbox.Network {
	port := strconv.Itoa(s.port)
	return sandbox.Network{Mode: sandbox.NetworkAllow, Allow: []string{"bench.test:" + port, "127.0.0.1:" + port}}
}

// pipe is one direction of what is said with a client.
type pipe struct {
	r *io.PipeReader
	w *io.PipeWriter
}

func pipes() (in, out pipe) {
	in.r, in.w = io.Pipe()
	out.r, out.w = io.Pipe()
	return in, out
}

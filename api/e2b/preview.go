package e2b

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/caisson-dev/caisson/internal/preview"
	"github.com/caisson-dev/caisson/sandbox"
)

// trafficHeader has the pass for previews of those whose name has none.
const trafficHeader = "E2b-Traffic-Access-Token"

// previewed is what the name of a preview says, as clients put it together: a port and
// a sandbox, before the domain that they were told, which begins with the pass.
type previewed struct {
	port      int
	box, pass string
}

// passForm is the form of a pass for previews: what is left of it when a token's id
// stands before the x fits a name's part.
var passForm = regexp.MustCompile(`^(` + string(localToken) + `|[0-9a-f]{32})x[0-9a-f]{30}$`)

// passBytes are those of the sign in a pass for previews.
const passBytes = 15

// previewPass lets its holder reach what listens in one sandbox, and do nothing else:
// the programs there see it, and pages of theirs.
func (s *Server) previewPass(box string, token sandbox.ID) string {
	return fmt.Sprintf("%sx%x", token, s.sign("preview", box, string(token))[:passBytes])
}

// previewOf reads the name that a request is for.
func previewOf(r *http.Request) (p previewed, is bool) {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	parts := strings.Split(strings.ToLower(host), ".")
	port, box, ok := strings.Cut(parts[0], "-")
	if !ok || len(parts) < 2 || box == "" {
		return p, false
	}
	if p.port, err = strconv.Atoi(port); err != nil || p.port < 1 || p.port > 65535 {
		return p, false
	}
	if p.box, p.pass = box, r.Header.Get(trafficHeader); passForm.MatchString(parts[1]) {
		p.pass = parts[1]
	}
	return p, true
}

// Owns reports whether a request is for a preview, whatever its path.
func (s *Server) Owns(r *http.Request) bool {
	_, is := previewOf(r)
	return is
}

// visitor is who was handed the pass of a preview.
func (s *Server) visitor(ctx context.Context, p previewed) (sandbox.Caller, error) {
	id, _, _ := strings.Cut(p.pass, "x")
	return s.holder(ctx, p.box, p.pass, s.previewPass(p.box, sandbox.ID(id)), sandbox.ID(id))
}

// servePreview hands a request on to what listens in a sandbox. Who asks is in the
// request's context.
func (s *Server) servePreview(w http.ResponseWriter, r *http.Request, p previewed) {
	if _, err := s.running(r.Context(), p.box); err != nil {
		fail(w, err)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.ending, cancel)()
	preview.Serve(w, r.WithContext(ctx), preview.Target{
		Dial:   func(ctx context.Context) (net.Conn, error) { return s.svc.DialPort(ctx, p.box, p.port) },
		Hidden: []string{trafficHeader},
		Fail: func(w http.ResponseWriter, err error) {
			if !errors.Is(err, sandbox.Exhausted) {
				err = statusError{err, http.StatusBadGateway} // as a proxy answers
			}
			fail(w, err)
		},
	})
}

// domainOf is what the names of a sandbox's previews end with: the pass, unless it is
// to be shown, and what the client asked at. A loopback address has no names below it,
// and localhost has.
func (s *Server) domainOf(r *http.Request, of sandbox.Session, token sandbox.ID) string {
	if of.Labels[labelPrivate] == "true" {
		return domain(r)
	}
	return s.previewPass(of.Name, token) + "." + domain(r)
}

func domain(r *http.Request) string {
	host, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		return r.Host
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

package e2b

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"

	"github.com/caisson-dev/caisson/sandbox"
)

// Headers of the data plane.
const (
	sandboxHeader = "E2b-Sandbox-Id"
	accessHeader  = "X-Access-Token"
)

// localToken stands where a token's id does, for who needed none.
const localToken sandbox.ID = "local"

// pass is what lets a caller reach one sandbox: whose token it was asked for with,
// and our word that it was. It is worth what that token is worth: once that is
// revoked or has expired, nothing.
func (s *Server) pass(box string, token sandbox.ID) string {
	return string(token) + "." + hex.EncodeToString(s.sign(string(token), box))
}

// sign signs some words that have no zero byte in them.
func (s *Server) sign(words ...string) []byte {
	mac := hmac.New(sha256.New, s.cfg.Key)
	mac.Write([]byte(strings.Join(words, "\x00")))
	return mac.Sum(nil)
}

// tokenOf is the id of the token of whoever asks.
func (s *Server) tokenOf(ctx context.Context) (sandbox.ID, error) {
	who := sandbox.CallerFrom(ctx)
	if who.Name == "" {
		return localToken, nil
	}
	tokens, err := s.svc.Tokens(asLocal(ctx))
	if err != nil {
		return "", err
	}
	for _, t := range tokens {
		if t.Name == who.Name {
			return t.ID, nil
		}
	}
	return "", sandbox.Errorf(sandbox.Denied, "the token %s is not there any more", who.Name).WithHint("make one with: caisson token create")
}

// callers are those who may hold a pass, by their tokens' ids.
func (s *Server) callers(ctx context.Context) (map[sandbox.ID]sandbox.Caller, error) {
	tokens, err := s.svc.Tokens(asLocal(ctx))
	if err != nil {
		return nil, err
	}
	all := map[sandbox.ID]sandbox.Caller{localToken: {}}
	for _, t := range tokens {
		if t.Expires.IsZero() || s.cfg.Now().Before(t.Expires) {
			all[t.ID] = t.Caller()
		}
	}
	return all, nil
}

// reach says which sandbox a request of the data plane is for, and who asks: by the
// pass of that sandbox, by a signature made with it, or as everything else is asked.
func (s *Server) reach(r *http.Request) (box string, who sandbox.Caller, err error) {
	box = r.Header.Get(sandboxHeader)
	if given := r.Header.Get(accessHeader); given != "" && box != "" {
		id, _, _ := strings.Cut(given, ".")
		who, err = s.holder(r.Context(), box, given, s.pass(box, sandbox.ID(id)), sandbox.ID(id))
		return box, who, err
	}
	if sig := r.URL.Query().Get("signature"); sig != "" && r.URL.Path == "/files" {
		return s.signer(r, box, sig)
	}
	if box == "" {
		return "", who, sandbox.Errorf(sandbox.Invalid, "no sandbox is named").WithHint("send %s", sandboxHeader)
	}
	return box, sandbox.CallerFrom(r.Context()), nil
}

// holder is who was handed a pass, which is to be the right one of a token.
func (s *Server) holder(ctx context.Context, box, given, right string, token sandbox.ID) (sandbox.Caller, error) {
	refused := statusError{sandbox.Errorf(sandbox.Denied, "the access token is not one of sandbox %s", box).WithHint("connect to the sandbox again"), http.StatusUnauthorized}
	if subtle.ConstantTimeCompare([]byte(given), []byte(right)) != 1 {
		return sandbox.Caller{}, refused
	}
	all, err := s.callers(ctx)
	if err != nil {
		return sandbox.Caller{}, err
	}
	who, ok := all[token]
	if !ok {
		return sandbox.Caller{}, refused
	}
	return who, nil
}

// signer finds who signed an URL. It need not name the sandbox: whose pass fits is it.
func (s *Server) signer(r *http.Request, box, given string) (string, sandbox.Caller, error) {
	refused := statusError{sandbox.Errorf(sandbox.Denied, "the signature does not fit").WithHint("have the SDK make the URL anew"), http.StatusUnauthorized}
	q := r.URL.Query()
	operation := "read"
	if r.Method == http.MethodPost {
		operation = "write"
	}
	if until := q.Get("signature_expiration"); until != "" {
		seconds, err := strconv.ParseInt(until, 10, 64)
		if err != nil || s.cfg.Now().Unix() > seconds {
			return "", sandbox.Caller{}, statusError{sandbox.Errorf(sandbox.Denied, "the signature has expired").WithHint("have the SDK make the URL anew"), http.StatusUnauthorized}
		}
	}
	all, err := s.callers(r.Context())
	if err != nil {
		return "", sandbox.Caller{}, err
	}
	views, err := s.svc.Sessions(asLocal(r.Context()), sandbox.SessionFilter{Labels: sandbox.Labels{labelWire: "true"}, Running: true})
	if err != nil {
		return "", sandbox.Caller{}, err
	}
	for _, v := range views {
		for id, who := range all {
			name := who.Shown(v.Name)
			if box != "" && name != box || !who.Sees(v.Owner) {
				continue
			}
			if subtle.ConstantTimeCompare([]byte(given), []byte(signature(q.Get("path"), operation, q.Get("username"), s.pass(name, id), q.Get("signature_expiration")))) == 1 {
				return name, who, nil
			}
		}
	}
	return "", sandbox.Caller{}, refused
}

// signature is what clients put into an URL in place of a pass.
func signature(path, operation, user, pass, until string) string {
	text := strings.Join([]string{path, operation, user, pass}, ":")
	if until != "" {
		text += ":" + until
	}
	sum := sha256.Sum256([]byte(text))
	return "v1_" + base64.RawStdEncoding.EncodeToString(sum[:])
}

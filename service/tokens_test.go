package service_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// TestTokens has a secret let in whom it was made for, until it is ended or its
// time is over, and stand nowhere.
func TestTokens(t *testing.T) {
	t.Parallel()
	p := open(t, nil)
	made, err := p.CreateToken(t.Context(), sandbox.TokenOptions{Name: "ci", Owner: "alice", Access: sandbox.AccessViewer, TTL: sandbox.Duration(time.Hour)})
	if err != nil || made.Secret == "" || made.Expires.Sub(made.Created) != time.Hour {
		t.Fatalf("%+v, %v", made, err)
	}
	who, err := p.Authenticate(t.Context(), made.Secret)
	if want := (sandbox.Caller{Owner: "alice", Name: "ci", Access: sandbox.AccessViewer}); err != nil || who != want {
		t.Errorf("%+v, %v", who, err)
	}
	for _, secret := range []string{"", "csn_", made.Secret[:len(made.Secret)-1], made.Secret + "A", strings.ToLower(made.Secret), string(made.ID), "ci"} {
		if who, err := p.Authenticate(t.Context(), secret); !errors.Is(err, sandbox.Denied) || who != (sandbox.Caller{}) {
			t.Errorf("%q lets in %+v, %v", secret, who, err)
		}
	}
	if _, err := p.CreateToken(t.Context(), sandbox.TokenOptions{Name: "ci"}); !errors.Is(err, sandbox.Conflict) {
		t.Errorf("a second of the name: %v", err)
	}
	for name, o := range map[string]sandbox.TokenOptions{
		"role": {Access: "root"}, "owner": {Owner: "a~b"}, "name": {Name: "a b"}, "negative": {TTL: -1},
	} {
		if _, err := p.CreateToken(t.Context(), o); !errors.Is(err, sandbox.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	short, err := p.CreateToken(t.Context(), sandbox.TokenOptions{TTL: 1})
	if err != nil || short.Access != sandbox.AccessUser {
		t.Fatalf("%+v, %v", short, err)
	}
	if _, err := p.Authenticate(t.Context(), short.Secret); !errors.Is(err, sandbox.Denied) {
		t.Errorf("an expired token lets in: %v", err)
	}
	if err := p.RevokeToken(t.Context(), "ci"); err != nil {
		t.Error(err)
	}
	if err := p.RevokeToken(t.Context(), "ci"); !errors.Is(err, sandbox.NotFound) {
		t.Error(err)
	}
	if _, err := p.Authenticate(t.Context(), made.Secret); !errors.Is(err, sandbox.Denied) {
		t.Errorf("an ended token lets in: %v", err)
	}
	var kinds []string
	for e, err := range p.Events(t.Context(), sandbox.EventFilter{}) {
		if text, _ := json.Marshal(e); err != nil || bytes.Contains(text, []byte("csn_")) {
			t.Errorf("%s, %v", text, err)
		}
		kinds = append(kinds, e.Kind)
	}
	if got := strings.Join(kinds, " "); got != "token.created token.created token.revoked" {
		t.Error(got)
	}
	files, err := filepath.Glob(filepath.Join(p.dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && (bytes.Contains(b, []byte(made.Secret)) || bytes.Contains(b, []byte(made.Secret[len("csn_"):]))) {
			t.Errorf("%s has the secret", f)
		}
	}
}

package storetest

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/sandbox"
)

// tokens are found by the hash of their secret and by nothing else, until they
// are ended.
func tokens(t *testing.T, open Open) {
	s := fresh(t, open)
	made := time.Now().UTC().Truncate(time.Second)
	ann := sandbox.Token{ID: sandbox.NewID(), Name: "ann", Owner: "a", Access: sandbox.AccessViewer, Created: made, Expires: made.Add(time.Hour)}
	bob := sandbox.Token{ID: sandbox.NewID(), Name: "bob", Access: sandbox.AccessAdmin, Created: made}
	for _, one := range []sandbox.Token{bob, ann} {
		apply(t, s, sandbox.Transaction{CreateToken: &sandbox.KeptToken{Token: one, Hash: bytes.Repeat([]byte(one.Name), 8)}})
	}
	again := sandbox.KeptToken{Token: ann, Hash: []byte("other")}
	again.ID = sandbox.NewID()
	refuse(t, s, sandbox.Transaction{CreateToken: &again}, sandbox.Conflict)
	again.Name, again.Hash = "carl", bytes.Repeat([]byte("ann"), 8)
	refuse(t, s, sandbox.Transaction{CreateToken: &again}, sandbox.Conflict)
	list, err := s.Tokens(t.Context())
	if d := cmp.Diff([]sandbox.Token{ann, bob}, list); err != nil || d != "" {
		t.Error(err, d)
	}
	found, err := s.TokenByHash(t.Context(), bytes.Repeat([]byte("ann"), 8))
	if d := cmp.Diff(ann, found); err != nil || d != "" {
		t.Error(err, d)
	}
	for _, hash := range [][]byte{nil, {}, []byte("ann"), []byte("%")} {
		if _, err := s.TokenByHash(t.Context(), hash); !errors.Is(err, sandbox.NotFound) {
			t.Errorf("%q: %v", hash, err)
		}
	}
	apply(t, s, sandbox.Transaction{DeleteToken: ann.ID})
	refuse(t, s, sandbox.Transaction{DeleteToken: ann.ID}, sandbox.NotFound)
	if _, err := s.TokenByHash(t.Context(), bytes.Repeat([]byte("ann"), 8)); !errors.Is(err, sandbox.NotFound) {
		t.Errorf("an ended token lets in: %v", err)
	}
}

package service

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/caisson-dev/caisson/internal/lazyregexp"
	"github.com/caisson-dev/caisson/sandbox"
)

// Keys is where tokens are kept.
type Keys interface {
	// Apply makes all of a change or nothing of it.
	Apply(ctx context.Context, c sandbox.Transaction) error
	// Tokens returns all tokens, by name.
	Tokens(ctx context.Context) ([]sandbox.Token, error)
	// TokenByHash returns the token with that hash of its secret. Errors: NotFound.
	TokenByHash(ctx context.Context, hash []byte) (sandbox.Token, error)
}

// secretPrefix begins every secret, so that whoever finds one knows what it is.
const secretPrefix = "csn_"

var tokenName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9@._-]{0,62}$`)

// CreateToken makes a token.
func (s *Service) CreateToken(ctx context.Context, o sandbox.TokenOptions) (sandbox.NewToken, error) {
	if _, err := may(ctx, governs); err != nil {
		return sandbox.NewToken{}, err
	}
	if err := s.hasKeys(); err != nil {
		return sandbox.NewToken{}, err
	}
	t := sandbox.Token{
		ID: sandbox.NewID(), Name: o.Name, Owner: o.Owner, Access: cmp.Or(o.Access, sandbox.AccessUser), Created: time.Now().UTC(),
	}
	if t.Name == "" {
		t.Name = "t-" + string(t.ID[:8])
	}
	if err := checkToken(t, o.TTL); err != nil {
		return sandbox.NewToken{}, err
	}
	if o.TTL > 0 {
		t.Expires = t.Created.Add(time.Duration(o.TTL))
	}
	secret := secretPrefix + rand.Text() + rand.Text()
	err := s.cfg.Keys.Apply(ctx, sandbox.Transaction{CreateToken: &sandbox.KeptToken{Token: t, Hash: hashOf(secret)}, Events: []sandbox.Event{s.tokenEvent(ctx, sandbox.EventTokenCreated, t)}})
	if errors.Is(err, sandbox.Conflict) {
		err = sandbox.Errorf(sandbox.Conflict, "a token %s exists", t.Name).WithHint("choose another name, or end it with: caisson token revoke %s", t.Name)
	}
	return sandbox.NewToken{Token: t, Secret: secret}, err
}

func checkToken(t sandbox.Token, ttl sandbox.Duration) error {
	if !tokenName().MatchString(t.Name) {
		return sandbox.Errorf(sandbox.Invalid, "%q is not a token's name", t.Name).WithHint("use letters, digits, and @ . _ - behind the first, at most 63")
	}
	if t.Owner != "" {
		if err := sandbox.CheckOwner(t.Owner); err != nil {
			return err
		}
	}
	if !slices.Contains(sandbox.Accesses(), t.Access) {
		return sandbox.Errorf(sandbox.Invalid, "no role is called %q", t.Access).WithHint("the roles are admin, user, viewer and approver")
	}
	if ttl < 0 {
		return sandbox.Errorf(sandbox.Invalid, "a time that is negative").WithHint("--ttl takes a time such as 720h; 0 is for good")
	}
	return nil
}

// Tokens returns those that there are.
func (s *Service) Tokens(ctx context.Context) ([]sandbox.Token, error) {
	if _, err := may(ctx, governs); err != nil {
		return nil, err
	}
	if err := s.hasKeys(); err != nil {
		return nil, err
	}
	return s.cfg.Keys.Tokens(ctx)
}

// RevokeToken ends a token.
func (s *Service) RevokeToken(ctx context.Context, name string) error {
	all, err := s.Tokens(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(t sandbox.Token) bool { return t.Name == name || string(t.ID) == name })
	if i < 0 {
		return sandbox.Errorf(sandbox.NotFound, "no token %s", name).WithHint("see those there are with: caisson token list")
	}
	return s.cfg.Keys.Apply(ctx, sandbox.Transaction{DeleteToken: all[i].ID, Events: []sandbox.Event{s.tokenEvent(ctx, sandbox.EventTokenRevoked, all[i])}})
}

// Authenticate says who asks with a secret. Errors: Denied for one that lets
// nobody in, without a word on why.
func (s *Service) Authenticate(ctx context.Context, secret string) (sandbox.Caller, error) {
	if err := s.hasKeys(); err != nil {
		return sandbox.Caller{}, err
	}
	t, err := s.cfg.Keys.TokenByHash(ctx, hashOf(secret))
	if errors.Is(err, sandbox.NotFound) || err == nil && !t.Expires.IsZero() && time.Now().After(t.Expires) {
		return sandbox.Caller{}, sandbox.Errorf(sandbox.Denied, "the token is not known, or it has expired").
			WithHint("make one where the server runs with: caisson token create --owner OWNER")
	}
	if err != nil {
		return sandbox.Caller{}, err
	}
	return t.Caller(), nil
}

func hashOf(secret string) []byte {
	h := sha256.Sum256([]byte(secret))
	return h[:]
}

func (s *Service) hasKeys() error {
	if s.cfg.Keys == nil {
		return sandbox.Errorf(sandbox.Unsupported, "this caisson keeps no tokens")
	}
	return nil
}

// tokenEvent tells of a token; its hash and its secret are in no event.
func (s *Service) tokenEvent(ctx context.Context, kind string, t sandbox.Token) sandbox.Event {
	data, err := json.Marshal(t)
	if err != nil {
		data = []byte(`{}`) // it is of plain fields, and always encodes
	}
	return sandbox.Event{Kind: kind, Time: time.Now().UTC(), Actor: s.actor(ctx), Owner: t.Owner, Data: data}
}

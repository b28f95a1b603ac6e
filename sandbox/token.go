package sandbox

import "time"

// Token lets a program or a person ask a server. Its secret is not part of it.
type Token struct {
	ID ID `json:"id"`
	// Name stands in the audit for who asks; no two tokens have the same.
	Name    string    `json:"name"`
	Owner   string    `json:"owner,omitempty"` // "" is the local user's
	Access  Access    `json:"role"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"` // zero is never
}

// Caller is who asks with the token.
func (t Token) Caller() Caller { return Caller{Owner: t.Owner, Name: t.Name, Access: t.Access} }

// KeptToken is a token as the store has it.
type KeptToken struct {
	Token
	Hash []byte // SHA-256 of the secret
}

// TokenOptions ask for a token. The zero value is an [AccessUser]'s of the local
// user that never expires.
type TokenOptions struct {
	Name   string   `json:"name,omitempty"` // "" makes one up
	Owner  string   `json:"owner,omitempty"`
	Access Access   `json:"role,omitempty"`
	TTL    Duration `json:"ttl_ms,omitempty"` // 0 is for good
}

// NewToken is a token that was just made, with what is never told again.
type NewToken struct {
	Token
	Secret string `json:"secret"`
}

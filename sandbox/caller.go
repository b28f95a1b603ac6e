package sandbox

import (
	"context"
	"regexp"
	"strings"
	"sync"
)

// Caller is who asks, as the door that was asked at has found out. It settles
// whose it is what is made, who stands in the audit, and what can be seen and
// done. The zero value is this process's own user, who may do everything; so is
// who asks with a context that carries none.
type Caller struct {
	Owner string // the tenant; "" is the local user
	Name  string // for the audit, such as a token's name; "" is the process's own
	// Access is what the caller may do. "" is everything without an owner, and
	// [AccessUser] with one.
	Access Access
}

// Access says what a caller may do.
type Access string

// The kinds of access. All but the first concern what belongs to the caller's
// own owner.
const (
	AccessAdmin    Access = "admin"    // everything, of every owner
	AccessUser     Access = "user"     // runs, changes and answers
	AccessViewer   Access = "viewer"   // reads
	AccessApprover Access = "approver" // reads, and answers what policy asks
)

// Accesses lists every kind of access.
func Accesses() []Access {
	return []Access{AccessAdmin, AccessUser, AccessViewer, AccessApprover}
}

// IsAdmin reports whether c may do everything.
func (c Caller) IsAdmin() bool {
	return c.Access == AccessAdmin || c.Access == "" && c.Owner == ""
}

// Sees reports whether c sees what belongs to an owner.
func (c Caller) Sees(owner string) bool { return c.IsAdmin() || c.Owner == owner }

// ownerMark stands between an owner and the name of a session of theirs. No name
// that anybody chooses has it.
const ownerMark = "~"

// SessionName is a session's name as it is kept: each owner has names of its own.
func SessionName(owner, name string) string {
	if owner == "" {
		return name
	}
	return owner + ownerMark + name
}

// Kept is the name of a session as it is kept, by the one that the caller uses.
func (c Caller) Kept(name string) string {
	if name == "" || strings.Contains(name, ownerMark) {
		return name
	}
	return SessionName(c.Owner, name)
}

// Shown is the name of a session that the caller uses, by the one that is kept.
func (c Caller) Shown(kept string) string {
	return strings.TrimPrefix(kept, SessionName(c.Owner, ""))
}

// SessionOwner is whose a session is, by its name as it is kept.
func SessionOwner(kept string) string {
	owner, _, found := strings.Cut(kept, ownerMark)
	if !found {
		return ""
	}
	return owner
}

var ownerName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]{0,31}$`) })

// CheckOwner says what is wrong with an owner's name. Errors: Invalid.
func CheckOwner(owner string) error {
	if !ownerName().MatchString(owner) {
		return Errorf(Invalid, "%q is not an owner's name", owner).WithHint("use lower case letters, digits, and . _ - behind the first, at most 32")
	}
	return nil
}

type callerKey struct{}

// WithCaller returns a context that says who asks.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerFrom returns who asks: the local user where ctx does not say.
func CallerFrom(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

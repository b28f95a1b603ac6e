package sandbox

import "context"

// Caller is who asks, as the door that was asked at has found out. It settles whose
// it is what is made, and who stands in the audit; it does not yet keep anybody from
// anything. The zero value is this process's own user, and so is a call whose
// context carries none.
type Caller struct {
	Owner string // the tenant; "" is the local user
	Name  string // for the audit, such as a token's name; "" is the process's own
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

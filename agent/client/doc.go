// Package client is the host's side of the agent: it opens calls on a
// connection to it and gives their results in the words of package sandbox.
//
// It does not make sandboxes or connections, and it does not trust the agent,
// which shares a kernel namespace with code that nobody has read: what it says
// of sizes, offsets and reasons is checked, and what makes no sense ends the
// connection with [sandbox.ReasonInfra], never with success.
package client

// Package tools answers what programs in a sandbox ask of the host: it knows which
// tools there are, and takes each call its way.
//
//	is there such a tool → do the arguments fit its schema → what does policy say →
//	rate and budget → its turn → run it → does the result fit → the audit → the answer
//
// A tool is a Go function, a command, or an HTTP endpoint; all of them become a
// [sandbox.Callable]. What comes from inside is taken to be hostile: the connections
// are bounded in calls and in bytes, and no call holds up another.
//
// What programs speak with is in the folder inside: modules of Python and Node, which
// an exec finds staged. Package agent/wire has the protocol.
package tools

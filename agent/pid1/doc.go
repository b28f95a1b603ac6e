// Package pid1 is the agent: the first process of a sandbox. It runs what the
// host side asks for as a user of little power, hands out its output, ends the
// whole of it on demand, reaps what is left, and says what it used.
//
// It is not a policy: it runs what it is asked to. It speaks
// [github.com/caisson-dev/caisson/agent/wire] over a Unix socket that no user
// of the sandbox can reach.
//
// The agent shares its process limit and its memory with code that may want it
// dead. It therefore starts its threads before any user code runs, bounds what
// it blocks on, and keeps no more output than [outputKeep] a stream.
//
// Every exec has a supplementary group of its own, which its descendants
// inherit and cannot drop, so that all of them can be found whatever they do to
// their session, their parent or their name.
package pid1

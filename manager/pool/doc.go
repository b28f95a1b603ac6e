// Package pool keeps sandboxes ready that nobody has asked for yet. One that is
// taken serves its taker alone and is destroyed after, never put back.
//
// A pool has a shelf for each kind of sandbox: those that its owner wants, and some
// more that were asked for lately. A shelf is filled by few workers at a time, when
// no sandbox was taken for a moment, and pauses after a failure; one that nobody has
// asked for in a while is let down. Agents that nobody has claimed end by themselves
// a minute after their pool was last heard of, so that a pool that dies leaves
// nothing that runs.
//
// [Pool.Share] lets other processes of the same state folder take from it, over a
// Unix socket; [Shared] is their side. It makes no sandbox itself and knows no
// runtime: its owner does, by [Config].Make.
package pool

// Package runtimetest is what every runtime must pass, as one function, and a
// runtime in memory that passes it too.
//
// The suite claims sandboxes and runs a corpus of commands in them through the
// real client of the agent; a runtime that passes gives the same bytes as every
// other. [Memory] isolates nothing and runs no process: its agent speaks the
// wire protocol and acts the corpus out. It serves tests of what stands above a
// runtime.
package runtimetest

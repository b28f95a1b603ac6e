// Package harden is a second layer inside a sandbox, which the agent lays around
// what it runs for others: Landlock holds a program to the folders that it may write
// in and to the processes of its own exec, and a filter refuses system calls that no
// such program needs. It is set by a thread upon itself, and everything that the
// thread starts has it for good.
//
// It is not the wall: that is the runtime's. It takes no privilege, and holds as well
// where an engine is told to be lax, or has a fault.
package harden

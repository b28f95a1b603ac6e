// Package sandbox is caisson's vocabulary: what a run asks for, what a
// sandbox is, what came of an exec, what policy decided, and the kinds of
// error. Every other package speaks it.
//
// It is not where anything happens: it does no I/O, starts nothing, and
// imports the standard library alone. Its types are plain data; a value may be
// read by many goroutines, and is written by one.
package sandbox

// Package local is what runtimes share that make sandboxes of this host's own
// processes, without an engine: the places of what they keep, records that stand
// for labels, control groups, and how a sandbox's first process is started,
// awaited and ended. It isolates nothing: that is each runtime's own.
//
// A sandbox has a folder below [Place].Base, and a volume one below
// [Place].State: each with a record of what it is.
package local

//go:build !linux

package caisson

// ownHost are the runtimes of this host's own processes: there are none yet but on
// Linux.
var ownHost []named

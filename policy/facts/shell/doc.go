// Package shell turns the source of a shell script into facts: which commands
// it would run with which arguments, which files and hosts it names, and what
// could not be resolved.
//
// It walks the syntax tree of mvdan.cc/sh as an interpreter would, but with
// values that may be known, one of a few, or partly unknown, and without ever
// running anything: no process, no file, no network, no clock. Both sides of a
// branch are walked, loops over constants are unrolled within bounds, functions
// are followed at their calls, and small filters (base64, tr, rev, sed, …) are
// computed on constants, so that text which becomes code is judged as code.
// Files that a script writes exist in a table, so that a script which writes
// another and runs it is read twice.
//
// It is not a shell: where a value depends on the machine it stays unknown, and
// a command name or a piece of code that stays unknown becomes a fact of its
// own, which policy treats as doubt. A bound that is reached becomes a fact too.
package shell

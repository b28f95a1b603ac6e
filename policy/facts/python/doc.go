// Package python finds the facts of Python programs. Its extractor parses with
// tree-sitter and then walks the program as it would run, with abstract values
// in place of real ones: every branch is taken, constants are folded, names
// are bound, and the program's own functions are followed with the arguments
// that they are called with. A call of anything outside goes to the
// [facts.Builder] under its dotted name, however it was reached; what such a
// call means stands in the tables, not here.
//
// It is not an interpreter: it runs nothing, reads no file, and gives up at
// bounds on time, size, depth and work. What it could not tell is a fact too.
package python

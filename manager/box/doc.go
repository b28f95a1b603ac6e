// Package box makes sandboxes and holds them while they run. There is one way to
// a box, whoever asks and whether or not it is kept in a book:
//
//	image present ─► plan ─► judge ─► book ─► create ─► claim ─► book
//
// It knows runtimes and images, and nothing of sessions or policy: who asks for a
// box says how it is judged and where it is written down. Of execs it knows when
// they begin and end, and looks on meanwhile.
package box

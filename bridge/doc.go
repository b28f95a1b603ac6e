// Package bridge knows a session's workspace: what each exec changed in it, how
// that reads as a diff, and how to take it back.
//
// A [Book] belongs to one session. It remembers what the workspace held when
// somebody last looked (a [Ledger]), and the contents that were there ([Packs],
// bounded). [Book.Record] asks the workspace what was touched, reads what may
// differ, and writes down what does: so the old content of a file is kept before
// anything can modify it. Whoever touches a workspace beside an exec is recorded
// first, as the session's own.
//
// Contents are hashed here and not in the sandbox, except those that are too
// large to be kept. What a sandbox says of its files is a claim of what runs in
// it: a lie spoils that session's record, and nothing else. The bridge itself
// opens no file of a workspace; it asks for them, and an undo is carried out in
// the sandbox with its user's rights.
package bridge

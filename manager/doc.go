// Package manager makes sandboxes, runs execs in them, and sees that nothing
// is left of either. It joins a runtime, a source of images and a gate:
//
//	Run ─┬─► gate: may this run?  ───────────────────────────────────┐
//	     └─► image present ─► plan ─► gate ─► book ─► create ─► claim ─┴─► put files ─► exec ─► destroy
//
// Judging runs beside getting ready, so that it hides behind it; nothing
// starts before both are done. A running sandbox is a [box.Box], and package box
// is the one way to it: for a run of its own, for who opens one, for a session,
// whose book says that it is made before it is, and that it is ready.
//
// It knows contracts only: no engine, no policy language, no database, no HTTP.
package manager

// Package manager makes sandboxes, runs execs in them, and sees that nothing
// is left of either. It joins a runtime, a source of images and a gate:
//
//	Run ─┬─► gate: may this run?  ─────────────────────────┐
//	     └─► image present ─► plan ─► gate ─► create ─► claim ─► put files ─► exec ─► destroy
//
// Judging runs beside getting ready, so that it hides behind it; nothing
// starts before both are done.
//
// It knows contracts only: no engine, no policy language, no database, no HTTP.
package manager

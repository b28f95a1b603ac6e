// Package facts says what a program would do, as plain data that rules can be
// asked about: which files it touches, which hosts it reaches, which commands
// it starts, and what could not be told. A [Document] holds the facts of one
// scan.
//
// It also holds what all extractors share. An [Extractor] reads the syntax
// tree of one language; it resolves names, folds constants to [Value]s, and
// hands what it found to a [Builder]:
//
//   - [Builder.Call] for every call, under its resolved dotted name. What the
//     call means (a file read, a host reached, a command started, code run,
//     a callable applied) stands in [Tables], by language and name, so an
//     extractor needs no knowledge of libraries; it returns what the call
//     gives back, with where that comes from.
//   - [Builder.Command] for every argv, from a shell or from subprocess. It
//     unwraps env, sudo, xargs, sh -c and their like, and derives files and
//     hosts from the program's table.
//   - [Builder.Nested] for text that is code, in whichever language.
//   - [Builder.File], [Builder.Net], [Builder.Env], [Builder.Action],
//     [Builder.Dynamic] and [Builder.Struct] for what no table can say.
//
// Dotted names. Imports are resolved (import os as o; o.system is os.system).
// Methods of an object stand under the name of what made it: the result of
// socket.socket() has the type "socket.socket", so its connect is
// "socket.socket.connect", with the constructor's arguments in [Call.Recv].
// Builtins have their bare name in Python (open, eval) and in JavaScript
// (eval, fetch); node's modules lose their "node:" prefix
// (child_process.exec).
//
// Everything is bounded ([Limits]): what overflows is recorded as the dynamic
// fact "limit", which rules rate high, so overflowing a limit never hides
// anything. The package judges nothing and does no I/O.
package facts

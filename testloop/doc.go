// Package testloop runs tests on code that nobody has read yet, and says truly
// which of them passed: evaluation, and training by tests, stand on that. It
// runs pytest with a runner of its own, compares what programs put out with what
// is expected of them, and has a solution revised until its tests pass.
//
// # How results are kept true
//
// Results are never parsed from what is printed. [Pytest] stages solution and
// tests where nobody in the sandbox can write, and starts a runner of ours on
// them, a text that is handed in with the exec. It reads what the tests are
// before anything of the solution runs. What it finds comes back on a pipe that
// is not standard output any more by then, one line a fact:
//
//	HEX(HMAC-SHA-256(key, json)) SPACE json
//
// The key is new for each process and comes in on standard input. Lines that are
// not signed with it, or not in their order, are not looked at. What the process
// does not say counts against it: a test that began and did not end has crashed,
// or hung, which is watched and ended from outside, and the others are run in a
// process of their own.
//
// One interpreter runs solution and tests, so that much is left to who looks for
// the key in its memory: see docs/testing.md, and [TrustShared]. [Cases] judges
// outside.
package testloop

// Package policy judges what a program would do before it runs. It asks a
// [Scanner] for the facts of a text, puts them before Rego rules, and answers
// with a [sandbox.Decision].
//
// The rules and their data come from the folder policies (or another
// [io/fs.FS]) and from folders of the user. They are read and prepared once,
// by [Load]; [Policy.Reload] swaps in new ones as a whole, or keeps the old
// ones and says why. User rules have no access to network, clock or files and
// can only add findings. Waivers take findings away, for one rule and one
// source, until they expire; what the blacklist names stays.
//
// Doubt denies: without rules, when evaluation fails or takes too long, the
// decision is deny. A scanner that fails, hangs or lies is the finding
// "opaque", which is high, since hostile text can cause that.
//
// It is a gate and not a wall: a program can always be written whose facts are
// not told. The container is the wall.
package policy

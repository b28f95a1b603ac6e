// Package measure compares caisson with what else there is, for the programs
// below bench.
//
// A machine's speed drifts while a benchmark runs: other work, clocks, caches.
// So a figure alone says little, and this package takes all samples of a
// comparison in turn (A B C A B C …), shifting who goes first, in one run. What
// counts is the ratio of two columns of the same table.
//
// It prints a table, or with -json one object a line:
//
//	{"name","unit","n","cpus","p50","mean","p99","peer","peer_p50","peer_mean","peer_p99","ratio","bar","ok"}
//
// where cpus is the CPU limit of what is measured, ratio is p50 by peer_p50,
// bar is what was asked and ok whether it holds. Every sample goes to a file.
package measure

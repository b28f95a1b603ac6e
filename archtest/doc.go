// Package archtest holds the project to its architecture: who may import whom,
// where heavy libraries live, how long files and functions may be, and that
// what is exported is explained. Who may import whom is read from the table in
// [Docs].
//
// It parses the files of a tree and asks no tool about packages: a test that
// shells out to the go command about other packages keeps its cached pass when
// those change.
package archtest

// Package scanner is the host side of caisson-scan: a pool of locked-down
// processes that turn hostile source text into facts.
//
// Protocol. Each message is a frame: its length in four bytes, big-endian, then
// that many bytes of JSON. The host sends one [Hello] with limits and the
// lockdown that it requires, and the tables in a frame of their own, encoded as
// package facts does, so that a scanner decodes only the rows that its texts
// need; the scanner locks itself down and answers
// with a [Ready] that says what it reached. Then every [Ask] is answered by one
// [Answer], in turn. An end of file on standard input ends the scanner.
//
// A scanner that answers late, wrongly or not at all is killed, and the next
// request gets a fresh one. What it says is checked, since the text it read may
// have taken it over: it can lie about the text that took it over, and about
// nothing else, for it serves one owner, is replaced before it serves another,
// and reads no files.
package scanner

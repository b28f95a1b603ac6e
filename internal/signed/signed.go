// Package signed tells what a program of ours says in a sandbox from what the code
// that it runs prints: each line and each mark is signed with a key that is new for
// every process. That keeps out whoever writes to the same descriptors, and not
// whoever looks for the key in the program's memory.
package signed

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// KeySize is the block of SHA-256, so that a key is used as it is.
const KeySize = 64

// Key signs what one process of a program says.
type Key [KeySize]byte

// NewKey returns a fresh key.
func NewKey() (k Key) {
	_, _ = rand.Read(k[:]) // it ends the process rather than fail
	return k
}

// Hex is the key as it is handed to the program.
func (k *Key) Hex() string { return hex.EncodeToString(k[:]) }

// Sign is the signature of a text: HMAC-SHA-256, in hex.
func (k *Key) Sign(text []byte) string {
	h := hmac.New(sha256.New, k[:])
	h.Write(text) // a hash never fails
	return hex.EncodeToString(h.Sum(nil))
}

// Lines reads lines of the form
//
//	HEX(HMAC-SHA-256(key, text)) SPACE text
//
// and passes over whatever is none. It is an [io.Writer] that never fails, and not
// safe for concurrent use.
type Lines struct {
	Key  *Key
	Most int               // bytes of a line: what is longer is none of ours
	Take func(text []byte) // keeps nothing of text

	line []byte
	long bool // the line is passed over
}

// Write implements [io.Writer].
func (l *Lines) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		part, after, ended := bytes.Cut(rest, []byte("\n"))
		if l.long = l.long || len(l.line)+len(part) > l.Most; !l.long {
			l.line = append(l.line, part...)
		}
		if ended {
			l.read()
			l.line, l.long = l.line[:0], false
		}
		rest = after
	}
	return len(p), nil
}

func (l *Lines) read() {
	mac, text, ok := bytes.Cut(l.line, []byte(" "))
	if l.long || !ok || !hmac.Equal(mac, []byte(l.Key.Sign(text))) {
		return
	}
	l.Take(text)
}

// A mark stands in what is printed: NUL, the signature of "mark N", NUL. Marks are
// numbered from 1.
const markSize = 2*sha256.Size + 2

// marksAhead is how many marks may be missing: code can close what it prints to.
const marksAhead = 64

// Marks splits what a process prints at its marks. It is an [io.Writer] that never
// fails, and not safe for concurrent use.
type Marks struct {
	Key *Key
	// Part takes what was printed behind mark n and before the next, piece by piece;
	// 0 is before the first. It keeps nothing of p.
	Part func(n int, p []byte)
	// Passed, where not nil, is told of each mark.
	Passed func(n int)

	rest []byte
	at   int
	next map[string]int // marks that may come next
}

// At is the number of the last mark.
func (m *Marks) At() int { return m.at }

// Write implements [io.Writer].
func (m *Marks) Write(p []byte) (int, error) {
	b := append(m.rest, p...)
	m.rest = nil
	for len(b) > 0 {
		i := bytes.IndexByte(b, 0)
		if i < 0 {
			m.Part(m.at, b)
			break
		}
		m.part(b[:i])
		if b = b[i:]; len(b) < markSize {
			m.rest = bytes.Clone(b)
			break
		}
		if n := m.number(b[:markSize]); n > 0 {
			m.at, m.next, b = n, nil, b[markSize:]
			if m.Passed != nil {
				m.Passed(n)
			}
			continue
		}
		m.part(b[:1])
		b = b[1:]
	}
	return len(p), nil
}

// Flush takes what may have become a mark for what it is now.
func (m *Marks) Flush() {
	m.part(m.rest)
	m.rest = nil
}

func (m *Marks) part(p []byte) {
	if len(p) > 0 {
		m.Part(m.at, p)
	}
}

// number is that of a mark, 0 for what is none.
func (m *Marks) number(b []byte) int {
	if b[markSize-1] != 0 {
		return 0
	}
	if m.next == nil { // whoever prints what looks like marks costs no signatures
		m.next = map[string]int{}
		for n := m.at + 1; n <= m.at+marksAhead; n++ {
			m.next[m.Key.Sign(fmt.Appendf(nil, "mark %d", n))] = n
		}
	}
	return m.next[string(b[1:markSize-1])]
}

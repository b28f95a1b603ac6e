package testloop

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sync"
)

// keySize is the block of SHA-256, so that a key is used as it is.
const keySize = 64

// key signs what one process of a runner says.
type key [keySize]byte

func newKey() (k key) {
	_, _ = rand.Read(k[:]) // it ends the process rather than fail
	return k
}

func (k *key) sign(text []byte) string {
	h := hmac.New(sha256.New, k[:])
	h.Write(text) // a hash never fails
	return hex.EncodeToString(h.Sum(nil))
}

// claim is one line of a runner's.
type claim struct {
	N          int               `json:"n"`
	Kind       string            `json:"kind"`
	ID         string            `json:"id"`
	File       string            `json:"file"`
	Names      []string          `json:"names"`
	Lenient    bool              `json:"lenient"`
	Outcome    Outcome           `json:"outcome"`
	MS         float64           `json:"ms"`
	Type       string            `json:"type"`
	Message    string            `json:"message"`
	Place      string            `json:"place"`
	Line       int               `json:"line"`
	Traceback  []Frame           `json:"traceback"`
	Assertion  *Assertion        `json:"assertion"`
	Parameters map[string]string `json:"parameters"`
	Code       int               `json:"code"`
}

// mostLine bounds a line: what is longer is no runner's.
const mostLine = 1 << 20

// claims reads a runner's lines. Whatever is not signed, or was said before, is
// passed over.
type claims struct {
	key  *key
	take func(claim)
	line []byte
	long bool // the line is passed over
	n    int
}

// Write implements [io.Writer].
func (c *claims) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		part, after, ended := bytes.Cut(rest, []byte("\n"))
		if c.long = c.long || len(c.line)+len(part) > mostLine; !c.long {
			c.line = append(c.line, part...)
		}
		if ended {
			c.read()
			c.line, c.long = c.line[:0], false
		}
		rest = after
	}
	return len(p), nil
}

func (c *claims) read() {
	mac, text, ok := bytes.Cut(c.line, []byte(" "))
	if c.long || !ok || !hmac.Equal(mac, []byte(c.key.sign(text))) {
		return
	}
	var said claim
	if json.Unmarshal(text, &said) != nil || said.N <= c.n {
		return
	}
	c.n = said.N
	c.take(said)
}

// Of what a test prints, so much is kept: at its beginning and at its end.
const (
	keptHead = 8 << 10
	keptTail = 8 << 10
)

// excerpt is the head and the tail of a text.
type excerpt struct {
	head, tail []byte
	lost       int64
}

func (e *excerpt) add(p []byte) {
	n := min(len(p), keptHead-len(e.head))
	e.head = append(e.head, p[:n]...)
	e.tail = append(e.tail, p[n:]...)
	if over := len(e.tail) - keptTail; over > 0 {
		e.lost += int64(over)
		e.tail = append(e.tail[:0], e.tail[over:]...)
	}
}

func (e *excerpt) text() string {
	if e == nil {
		return ""
	}
	middle := ""
	if e.lost > 0 {
		middle = fmt.Sprintf("\n… %d bytes …\n", e.lost)
	}
	return string(bytes.ToValidUTF8(append(append(bytes.Clone(e.head), middle...), e.tail...), []byte("\uFFFD")))
}

// A mark stands in what is printed: NUL, its signature, NUL.
const markSize = 2*sha256.Size + 2

// marksAhead is how many marks may be missing: a test can close what it prints
// to.
const marksAhead = 64

// printed splits what a process prints at its marks. It is safe for concurrent
// use.
type printed struct {
	key *key

	mu    sync.Mutex
	rest  []byte
	at    int
	marks map[string]int   // that may come next
	parts map[int]*excerpt // by the mark before
}

// Write implements [io.Writer].
func (w *printed) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := append(w.rest, p...)
	w.rest = nil
	for len(b) > 0 {
		i := bytes.IndexByte(b, 0)
		if i < 0 {
			w.add(b)
			break
		}
		w.add(b[:i])
		if b = b[i:]; len(b) < markSize {
			w.rest = bytes.Clone(b)
			break
		}
		if n := w.number(b[:markSize]); n > 0 {
			w.at, w.marks, b = n, nil, b[markSize:]
			continue
		}
		w.add(b[:1])
		b = b[1:]
	}
	return len(p), nil
}

// number is that of a mark, 0 for what is none.
func (w *printed) number(b []byte) int {
	if b[markSize-1] != 0 {
		return 0
	}
	if w.marks == nil { // whoever prints what looks like marks costs no signatures
		w.marks = map[string]int{}
		for n := w.at + 1; n <= w.at+marksAhead; n++ {
			w.marks[w.key.sign(fmt.Appendf(nil, "mark %d", n))] = n
		}
	}
	return w.marks[string(b[1:markSize-1])]
}

func (w *printed) add(p []byte) {
	e := w.parts[w.at]
	if e == nil {
		e = &excerpt{}
		w.parts[w.at] = e
	}
	e.add(p)
}

// part is what was printed between mark n and the next.
func (w *printed) part(n int) (text string, lost int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.parts[n]
	if n == w.at && len(w.rest) > 0 {
		w.add(w.rest)
		w.rest, e = nil, w.parts[n]
	}
	if e == nil {
		return "", 0
	}
	return e.text(), e.lost
}

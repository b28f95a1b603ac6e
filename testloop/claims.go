package testloop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/caisson-dev/caisson/internal/signed"
)

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

// claims reads a runner's: whatever is not signed, or was said before, is passed
// over.
func claims(key *signed.Key, take func(claim)) *signed.Lines {
	n := 0
	return &signed.Lines{Key: key, Most: mostLine, Take: func(text []byte) {
		var said claim
		if json.Unmarshal(text, &said) != nil || said.N <= n {
			return
		}
		n = said.N
		take(said)
	}}
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

// printed splits what a process prints at its marks. It is safe for concurrent
// use.
type printed struct {
	mu    sync.Mutex
	marks *signed.Marks
	parts map[int]*excerpt // by the mark before
}

func newPrinted(key *signed.Key) *printed {
	w := &printed{parts: map[int]*excerpt{}}
	w.marks = &signed.Marks{Key: key, Part: w.add}
	return w
}

// Write implements [io.Writer].
func (w *printed) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.marks.Write(p)
}

func (w *printed) add(n int, p []byte) {
	e := w.parts[n]
	if e == nil {
		e = &excerpt{}
		w.parts[n] = e
	}
	e.add(p)
}

// part is what was printed between mark n and the next.
func (w *printed) part(n int) (text string, lost int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n == w.marks.At() {
		w.marks.Flush()
	}
	e := w.parts[n]
	if e == nil {
		return "", 0
	}
	return e.text(), e.lost
}

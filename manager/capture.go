package manager

import (
	"io"
	"strings"
)

// capture keeps the first and the last half of what is written to it, and
// passes everything on.
type capture struct {
	pass  io.Writer // may be nil
	limit int
	head  []byte
	tail  []byte // a ring once it is full
	at    int    // of the oldest byte in a full ring
	total int64
}

func newCapture(pass io.Writer, limit int64) *capture {
	return &capture{pass: pass, limit: int(max(limit, 1))}
}

// Write never fails but by the writer that it passes on to.
func (c *capture) Write(p []byte) (int, error) {
	c.total += int64(len(p))
	c.keep(p)
	if c.pass != nil {
		return c.pass.Write(p)
	}
	return len(p), nil
}

func (c *capture) keep(p []byte) {
	if room := (c.limit+1)/2 - len(c.head); room > 0 {
		n := min(room, len(p))
		c.head = append(c.head, p[:n]...)
		p = p[n:]
	}
	size := c.limit / 2
	if len(p) >= size {
		c.tail = append(c.tail[:0], p[len(p)-size:]...)
		c.at = 0
		return
	}
	if room := size - len(c.tail); room > 0 {
		n := min(room, len(p))
		c.tail = append(c.tail, p[:n]...)
		p = p[n:]
	}
	for len(p) > 0 {
		n := copy(c.tail[c.at:], p)
		c.at = (c.at + n) % size
		p = p[n:]
	}
}

// text is bytes as UTF-8.
func (c *capture) text() (kept string, missing int64) {
	b, missing := c.bytes()
	return strings.ToValidUTF8(string(b), "\uFFFD"), missing
}

// bytes returns what was kept, in order, and how much of the middle was not.
func (c *capture) bytes() (kept []byte, missing int64) {
	kept = make([]byte, 0, len(c.head)+len(c.tail))
	kept = append(kept, c.head...)
	kept = append(kept, c.tail[c.at:]...)
	kept = append(kept, c.tail[:c.at]...)
	return kept, c.total - int64(len(kept))
}

package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/caisson-dev/caisson/sandbox"
)

// cast is a recording of a terminal, an asciicast of version 2: a header, and then a
// line for each thing that was shown. What was typed is not recorded: it may be secret.
type cast struct {
	start time.Time
	mu    sync.Mutex
	file  *os.File
	half  []byte // the beginning of a character
	err   error  // the first
}

// newCast begins one in a new file, or in place of what is in name.
func newCast(name string, size sandbox.TerminalSize, kind string) (*cast, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, missing(name, err)
	}
	c := &cast{start: time.Now(), file: f}
	if size == (sandbox.TerminalSize{}) {
		size = sandbox.TerminalSize{Rows: 24, Cols: 80}
	}
	c.line(map[string]any{"version": 2, "width": size.Cols, "height": size.Rows, "timestamp": c.start.Unix(), "env": map[string]string{"TERM": kind}})
	return c, c.err
}

// line writes one, which the lock is held for once others know of c.
func (c *cast) line(v any) {
	if c.err == nil {
		c.err = json.NewEncoder(c.file).Encode(v)
	}
}

func (c *cast) event(kind, text string) {
	c.line([]any{time.Since(c.start).Seconds(), kind, text})
}

// Write implements [io.Writer] for what the terminal shows.
func (c *cast) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := append(c.half, p...)
	whole := len(b)
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if utf8.RuneStart(b[len(b)-i]) {
			if !utf8.FullRune(b[len(b)-i:]) {
				whole -= i
			}
			break
		}
	}
	c.half = append([]byte(nil), b[whole:]...)
	if whole > 0 {
		c.event("o", string(b[:whole]))
	}
	if c.err != nil {
		return 0, fmt.Errorf("record the terminal: %w", c.err)
	}
	return len(p), nil
}

func (c *cast) resize(s sandbox.TerminalSize) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.event("r", fmt.Sprintf("%dx%d", s.Cols, s.Rows))
}

func (c *cast) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.half) > 0 {
		c.event("o", string(c.half))
	}
	if err := c.file.Close(); c.err == nil {
		c.err = err
	}
	return c.err
}

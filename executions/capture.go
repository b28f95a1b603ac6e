package executions

import (
	"errors"
	"io/fs"
	"os"
)

// capture keeps the head and the tail of one stream. The head is in a file too, as
// it comes, so that the next server has it.
type capture struct {
	keep   int
	head   []byte
	tail   []byte // the newest, of at most keep minus the head's bytes
	offset int64  // in the stream, of what comes next
	whole  bool   // nothing goes into the head any more
	file   func() (*os.File, error)
	f      *os.File
	most   int64  // 0 is no bound
	over   func() // called beyond most, more than once
}

// resume begins with what an earlier server has kept of the head.
func (c *capture) resume(path string) error {
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	c.head = b[:min(len(b), c.keep)]
	c.offset, c.whole = int64(len(b)), true
	return nil
}

// Write keeps what fits.
func (c *capture) Write(p []byte) (int, error) {
	n := len(p)
	c.offset += int64(n)
	if room := c.keep/2 - len(c.head); !c.whole && room > 0 {
		part := p[:min(room, n)]
		c.head, p = append(c.head, part...), p[len(part):]
		if err := c.store(part); err != nil {
			return 0, err
		}
	}
	c.tail = append(c.tail, p...)
	if most := c.keep - len(c.head); len(c.tail) > 2*most+(64<<10) { // now and then
		c.tail = append([]byte(nil), c.tail[len(c.tail)-most:]...)
	}
	if c.most > 0 && c.offset > c.most && c.over != nil {
		c.over()
	}
	return n, nil
}

func (c *capture) store(p []byte) (err error) {
	if c.file == nil {
		return nil
	}
	if c.f == nil {
		if c.f, err = c.file(); err != nil {
			return err
		}
	}
	_, err = c.f.Write(p)
	return err
}

// gap goes on from a later place: what came before was not kept.
func (c *capture) gap(offset int64) {
	if offset > c.offset {
		c.offset, c.whole = offset, true
	}
}

// bytes are what was kept, and how much was not.
func (c *capture) bytes() ([]byte, int64) {
	tail := c.tail[max(0, len(c.tail)-(c.keep-len(c.head))):]
	all := append(append([]byte(nil), c.head...), tail...)
	return all, c.offset - int64(len(all))
}

func (c *capture) close() error {
	if c.f == nil {
		return nil
	}
	return c.f.Close()
}

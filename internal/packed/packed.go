// Package packed writes and reads texts and numbers one behind the other, for
// what a process that starts reads whole and uses little of: nothing is copied
// or looked at before it is asked for. Reader and writer must agree on the
// order; whole texts are checked elsewhere, by a sum or by who sent them.
package packed

import (
	"encoding/binary"
	"errors"
)

// AppendInt appends a number, which must not be negative.
func AppendInt(b []byte, n int) []byte { return binary.AppendUvarint(b, uint64(n)) }

// AppendText appends a text behind its length.
func AppendText[T ~string | ~[]byte](b []byte, text T) []byte {
	return append(AppendInt(b, len(text)), text...)
}

// AppendInts appends a list of numbers, none of which is negative.
func AppendInts(b []byte, list []int) []byte {
	b = AppendInt(b, len(list))
	for _, n := range list {
		b = AppendInt(b, n)
	}
	return b
}

// AppendTexts appends a list of texts.
func AppendTexts(b []byte, list []string) []byte {
	b = AppendInt(b, len(list))
	for _, text := range list {
		b = AppendText(b, text)
	}
	return b
}

// Reader reads what was appended, in that order. After something that is not
// there it gives zero values; [Reader.Close] tells. One goroutine uses it.
type Reader struct {
	rest string
	bad  bool
}

// NewReader reads s. The texts that it gives are parts of s.
func NewReader(s string) *Reader { return &Reader{rest: s} }

// Int reads a number.
func (r *Reader) Int() int {
	var n uint64
	for i := range min(len(r.rest), binary.MaxVarintLen32) {
		c := r.rest[i]
		n |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			r.rest = r.rest[i+1:]
			return int(n)
		}
	}
	r.rest, r.bad = "", true
	return 0
}

// Len reads the number of what follows, each of which takes a byte at least:
// more than there can be is none.
func (r *Reader) Len() int {
	n := r.Int()
	if n > len(r.rest) {
		r.rest, r.bad = "", true
		return 0
	}
	return n
}

// Text reads a text.
func (r *Reader) Text() string {
	n := r.Len()
	text := r.rest[:n]
	r.rest = r.rest[n:]
	return text
}

// Ints reads a list of numbers; nil where it is empty.
func (r *Reader) Ints() []int { return list(r, r.Int) }

// Texts reads a list of texts; nil where it is empty.
func (r *Reader) Texts() []string { return list(r, r.Text) }

func list[T any](r *Reader, read func() T) []T {
	n := r.Len()
	if n == 0 {
		return nil
	}
	all := make([]T, n)
	for i := range all {
		all[i] = read()
	}
	return all
}

// Close reports that something was missing, or that something is left.
func (r *Reader) Close() error {
	if r.bad || r.rest != "" {
		return errors.New("packed: it ends too early or too late")
	}
	return nil
}

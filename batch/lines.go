package batch

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/caisson-dev/caisson/sandbox"
)

// MaxLine bounds a line.
const MaxLine = 64 * sandbox.MiB

// ErrLongLine is the error of a line that is longer than [MaxLine], which harms no
// other.
var ErrLongLine error = sandbox.Errorf(sandbox.Invalid, "the line is longer than %s", MaxLine).WithHint("send large files by a session: caisson files push")

// Lines are the lines of a text without their ends, the last one with or without
// it. A line that is too long is a [ErrLongLine]; any other error is the last.
func Lines(r io.Reader) iter.Seq2[[]byte, error] { return lines(r, int(MaxLine)) }

func lines(r io.Reader, most int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		in := bufio.NewReaderSize(r, 64<<10)
		for {
			line, err := readLine(in, most)
			switch {
			case err == nil || errors.Is(err, ErrLongLine):
				if !yield(line, err) {
					return
				}
			case !errors.Is(err, io.EOF):
				yield(nil, fmt.Errorf("read lines: %w", err))
				return
			default:
				if len(line) > 0 {
					yield(line, nil)
				}
				return
			}
		}
	}
}

// readLine reads one line, and passes over one that is too long. At the end of the
// text it returns io.EOF beside what is left.
func readLine(in *bufio.Reader, most int) (line []byte, err error) {
	long := false
	for {
		part, err := in.ReadSlice('\n')
		if !long {
			line = append(line, part...)
			if long = len(bytes.TrimSuffix(line, []byte("\n"))) > most; long {
				line = nil
			}
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return nil, err
		case long:
			return nil, ErrLongLine
		}
		return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")), err
	}
}

// LinesUntil are the [Lines] of an input that nobody may end: once ctx is over they
// are, and who waits to read another is left behind until this process ends.
func LinesUntil(ctx context.Context, r io.Reader) iter.Seq2[[]byte, error] {
	type line struct {
		text []byte
		err  error
	}
	return func(yield func([]byte, error) bool) {
		read := make(chan line)
		stop := make(chan struct{})
		defer close(stop)
		go func() {
			defer close(read)
			for text, err := range Lines(r) {
				select {
				case read <- line{text, err}:
				case <-stop:
					return
				}
			}
		}()
		for {
			select {
			case l, more := <-read:
				if !more || !yield(l.text, l.err) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

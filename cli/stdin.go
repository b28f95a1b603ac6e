package cli

import (
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/sandbox"
)

// openStdin is what the program may read: the file that --stdin names, or else
// caisson's own input, unless that was the code.
func (o *runOptions) openStdin(cfg Config, t *terminal, s *sandbox.Streams) (func(), error) {
	switch {
	case o.stdin == "" && (o.codeRead || o.detach || o.tty):
		return func() {}, nil
	case o.stdin == "":
		s.Stdin = ownInput(cfg.IO.In, t)
		return func() {}, nil
	case o.stdin == "-":
		s.Stdin = cfg.IO.In
		if f, ok := cfg.IO.In.(*os.File); ok && isTerminal(f) {
			s.Stdin = &typed{file: f, terminal: t}
		}
		return func() {}, nil
	}
	f, err := os.Open(o.stdin)
	if err != nil {
		return nil, missing(o.stdin, err)
	}
	s.Stdin = f
	return func() { _ = f.Close() }, nil // it was only read
}

// ownInput is caisson's standard input where a program could be meant to read
// it: a pipe, a socket, a file, or the terminal while caisson is in its
// foreground; in the background, to read would stop caisson. It is nil for the
// rest, such as /dev/null or an input that is closed.
func ownInput(in io.Reader, t *terminal) io.Reader {
	f, ok := in.(*os.File)
	if !ok {
		return in
	}
	st, err := f.Stat()
	switch {
	case err != nil:
		return nil
	case st.Mode().IsRegular():
		return f
	case st.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0:
		if atEnd(f) {
			return nil
		}
		return f
	case !isTerminal(f):
		return nil
	}
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	if err != nil || group != unix.Getpgrp() {
		return nil
	}
	return &typed{file: f, terminal: t}
}

// typed is what a person types for the program: nothing of what answers a
// question on the same terminal.
type typed struct {
	file     *os.File
	terminal *terminal // nil where nobody is asked
}

// Read implements [io.Reader]. It takes nothing before there is something, so
// that it need not hold the terminal while it waits.
func (t *typed) Read(p []byte) (int, error) {
	if t.terminal == nil {
		return t.file.Read(p)
	}
	for {
		if err := readable(t.file, -1); err != nil {
			return 0, err
		}
		if n, took, err := t.take(p); took {
			return n, err
		}
	}
}

func (t *typed) take(p []byte) (n int, took bool, err error) {
	t.terminal.mu.Lock()
	defer t.terminal.mu.Unlock()
	if readable(t.file, 0) != nil {
		return 0, false, nil // it was an answer
	}
	n, err = t.file.Read(p)
	return n, true, err
}

// atEnd reports whether nothing is in a pipe and nobody is there to write to it.
func atEnd(f *os.File) bool {
	fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&(unix.POLLIN|unix.POLLHUP) == unix.POLLHUP
}

// readable waits until something can be read: for so many milliseconds, or for
// ever where they are negative.
func readable(f *os.File, wait int) error {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}}, wait)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return err
		case n == 0:
			return os.ErrDeadlineExceeded
		default:
			return nil
		}
	}
}

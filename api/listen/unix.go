package listen

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"github.com/caisson-dev/caisson/sandbox"
)

// longestPath is what the kernel takes of a Unix socket's path.
const longestPath = 107

// openUnix listens at a path that its user alone can reach. The socket is made in a
// folder of its own and moved to its place once its mode is set, so that nobody can
// reach it before. One that is there and that nobody answers at is replaced.
func openUnix(ctx context.Context, path string) (_ socket, err error) {
	if !filepath.IsAbs(path) || len(path) > longestPath {
		return socket{}, sandbox.Errorf(sandbox.Invalid, "--listen unix://%s: the path is not absolute, or longer than %d bytes", path, longestPath).
			WithHint("write unix:///path/of.sock")
	}
	if err := free(ctx, path); err != nil {
		return socket{}, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return socket{}, sandbox.Errorf(sandbox.Denied, "listen: %w", err).WithHint("give --listen a path in a folder of yours")
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), ".s")
	if err != nil {
		return socket{}, sandbox.Errorf(sandbox.Denied, "listen: %w", err).WithHint("give --listen a path in a folder of yours")
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	made := filepath.Join(dir, "s")
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "unix", made)
	if err != nil {
		return socket{}, bindError(path, err)
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false) // it is elsewhere then
	if err := errors.Join(os.Chmod(made, 0o600), os.Rename(made, path)); err != nil {
		return socket{}, errors.Join(sandbox.Errorf(sandbox.Unavailable, "listen: %w", err), ln.Close())
	}
	return socket{Listener: at{ln, path}, trusted: true, path: path}, nil
}

// at is a listener that was moved.
type at struct {
	net.Listener
	path string
}

// Addr is where it is now.
func (a at) Addr() net.Addr { return &net.UnixAddr{Net: "unix", Name: a.path} }

// free removes a socket that nobody answers at. Errors: Conflict where somebody
// does, or where something else is there.
func free(ctx context.Context, path string) error {
	st, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return sandbox.Errorf(sandbox.Denied, "listen: %w", err).WithHint("give --listen a path in a folder of yours")
	}
	if st.Mode()&os.ModeSocket == 0 {
		return sandbox.Errorf(sandbox.Conflict, "%s is there and is no socket", path).WithHint("give another --listen")
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", path)
	if err == nil {
		return errors.Join(c.Close(), sandbox.Errorf(sandbox.Conflict, "a server answers at %s already", path).WithHint("use that one, or give another --listen"))
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return sandbox.Errorf(sandbox.Conflict, "listen: %w", err).WithHint("give another --listen")
	}
	return os.Remove(path)
}

func isInUse(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }

package dockerclient

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/client"

	"github.com/caisson-dev/caisson/sandbox"
)

// Wrap classes an error of the SDK and says what was being done, as in
//
//	return dockerclient.Wrap(err, "start container %s", name)
//
// It returns nil for nil. An error that is classed already keeps its kind and
// hint, and errors.Is still finds [context.Canceled] and whatever else err
// wraps.
func Wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	doing := fmt.Sprintf(format, args...)
	if _, ok := errors.AsType[*sandbox.Error](err); ok || errors.Is(err, context.Canceled) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	kind, hint := classify(err)
	return sandbox.Errorf(kind, "%s: %w", doing, plain{err}).WithHint("%s", hint)
}

// Hints that more than one error has.
const (
	hintEngine = "start the engine: systemctl start docker, or install it: apt-get install docker.io; or do without: --runtime bubblewrap"
	hintSocket = "join the docker group (sudo usermod -aG docker $USER, then log in again), or run caisson with sudo"
	hintDisk   = "`docker system df` shows what uses the engine's disk, and `docker system prune` frees it"
	hintBusy   = "something is mounted there on the engine's host: umount the path that the error names, then run: caisson gc"
)

// classify gives an SDK error its kind, and a hint where one helps whatever
// was being done.
func classify(err error) (sandbox.Kind, string) {
	switch {
	case diskFull(err):
		return sandbox.Exhausted, hintDisk
	case errors.Is(err, fs.ErrPermission):
		return sandbox.Denied, hintSocket
	case errors.Is(err, context.DeadlineExceeded), cerrdefs.IsDeadlineExceeded(err):
		return sandbox.TimedOut, ""
	case client.IsErrConnectionFailed(err), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET):
		return sandbox.Unavailable, hintEngine
	case cerrdefs.IsNotFound(err):
		return sandbox.NotFound, ""
	case cerrdefs.IsConflict(err), cerrdefs.IsAlreadyExists(err):
		return sandbox.Conflict, ""
	case cerrdefs.IsInvalidArgument(err), cerrdefs.IsOutOfRange(err):
		return sandbox.Invalid, ""
	case cerrdefs.IsUnauthorized(err), cerrdefs.IsPermissionDenied(err):
		return sandbox.Denied, ""
	case cerrdefs.IsResourceExhausted(err):
		return sandbox.Exhausted, ""
	case cerrdefs.IsNotImplemented(err):
		return sandbox.Unsupported, ""
	case cerrdefs.IsUnavailable(err), shuttingDown(err):
		return sandbox.Unavailable, hintEngine
	case strings.Contains(err.Error(), "device or resource busy"):
		return sandbox.Internal, hintBusy
	}
	return sandbox.Internal, ""
}

// shuttingDown recognises what an engine says whose databases or containerd are
// closed already: it answers, and takes calls for failures of its own.
func shuttingDown(err error) bool {
	text := err.Error()
	for _, sign := range []string{
		"database not open", "failed to update store for object", "containerd.sock", "the client connection is closing", "grpc: the connection is closing",
		"daemon is shutting down",
	} {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return false
}

// diskFull reads the message too: the engine's own ENOSPC travels as text.
func diskFull(err error) bool {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return true
	}
	text := strings.ToLower(err.Error())
	return strings.Contains(text, "no space left on device") || strings.Contains(text, "disk quota exceeded")
}

// preamble stands before everything that the engine itself says.
const preamble = "Error response from daemon: "

// plain prints an SDK error without the words that say nothing to a user.
type plain struct{ error }

func (p plain) Error() string {
	return strings.TrimPrefix(p.error.Error(), preamble)
}

func (p plain) Unwrap() error { return p.error }

// unreachable classes an error of the first ping, where the hint can be told
// apart by what is wrong with the address.
func (c *Client) unreachable(err error) error {
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("connect to the engine at %s: %w", c.host, err)
	}
	kind, hint := sandbox.Unavailable, hintEngine
	what := fmt.Sprintf("no Docker Engine answers at %s", c.host)
	switch other := rootlessSocket(c.host); {
	case errors.Is(err, fs.ErrPermission):
		kind, hint = sandbox.Denied, hintSocket
		what = fmt.Sprintf("no permission to use the Docker Engine at %s", c.host)
	case strings.HasPrefix(c.host, "ssh://"):
		hint = "try `ssh HOST docker version` as the same user"
	case strings.HasPrefix(c.host, "tcp://"):
		hint = "check DOCKER_HOST, the network, and DOCKER_TLS_VERIFY with DOCKER_CERT_PATH"
	case strings.Contains(err.Error(), "malformed HTTP"):
		hint = "something else listens there: check DOCKER_HOST"
	case other != "":
		hint = "a rootless engine is there: export DOCKER_HOST=" + other
	}
	return (&sandbox.Error{Kind: kind, Err: said{what, err}}).WithHint("%s", hint)
}

// said is an error with a text of its own. It leaves out the cause's where
// that is the SDK's paraphrase of the same.
type said struct {
	text  string
	cause error
}

func (s said) Error() string {
	if sys, ok := errors.AsType[*os.SyscallError](s.cause); ok {
		return s.text + ": " + sys.Error()
	}
	if detail := s.cause.Error(); !strings.HasPrefix(detail, "Cannot connect to the Docker daemon") {
		return s.text + ": " + strings.TrimPrefix(strings.TrimPrefix(detail, "error during connect: "), preamble)
	}
	return s.text
}

func (s said) Unwrap() error { return s.cause }

// rootlessSocket names the socket of a rootless engine of this user, if it is
// there and is not host itself.
func rootlessSocket(host string) string {
	dir := os.Getenv("XDG_RUNTIME_DIR")
	if dir == "" {
		return ""
	}
	path := dir + "/docker.sock"
	if st, err := os.Stat(path); err != nil || st.Mode()&fs.ModeSocket == 0 || host == "unix://"+path {
		return ""
	}
	return "unix://" + path
}

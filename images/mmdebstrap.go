package images

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/internal/lazyregexp"
	"github.com/caisson-dev/caisson/sandbox"
)

// mergedUsr makes /bin a link to /usr/bin from the start. Without it, a
// package that does the same later brings the whole of Perl.
const mergedUsr = "/usr/share/mmdebstrap/hooks/merged-usr"

// seedHook begins with the seed, and with the folders that the base's packages
// had before they were emptied and left out: dpkg takes a folder that it meets
// again for one that these packages never had.
const seedHook = `--setup-hook=tar -x -f "$CAISSON_SEED" -C "$1" && cat "$1"/var/lib/dpkg/info/*.list | sed 's|/[^/]*$||; s|^|.|' | sort -u | ` +
	`(cd "$1" && xargs -d '\n' mkdir -p --)`

// installHook adds packages to what the seed has. Those that are given with
// --include mmdebstrap would unpack twice, since it takes the tree for empty.
const installHook = `--customize-hook=APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" apt-get --yes -oDPkg::Chroot-Directory="$1" -oAPT::Install-Recommends=false ` +
	`install $CAISSON_PACKAGES >&2`

// mmdebstrap runs the command of that name, which makes a root file system
// from Debian packages and writes it to standard output as a tar.
type mmdebstrap struct {
	mirror string
	// command replaces the program in tests.
	command string
}

// tree asks for one root file system.
type tree struct {
	suite    string
	packages []string
	// seed is a tar of a root file system to add the packages to. "" starts
	// from nothing.
	seed string
	// work is an empty folder for whatever it needs meanwhile.
	work string
}

// check says what is missing, before anything is begun.
func (m mmdebstrap) check() error {
	if runtime.GOOS != "linux" {
		return sandbox.Errorf(sandbox.Unsupported, "images are assembled on Linux only").
			WithHint("name an image that the engine has with --image, or build one from docker/")
	}
	for _, tool := range []string{m.program(), "unshare"} {
		if _, err := exec.LookPath(tool); err != nil {
			return sandbox.Errorf(sandbox.Unsupported, "%s, which assembles images, is not installed", tool).
				WithHint("apt-get install mmdebstrap util-linux")
		}
	}
	if os.Geteuid() != 0 && m.command == "" {
		return sandbox.Errorf(sandbox.Unsupported, "assembling an image needs root").
			WithHint("run the same command once with sudo; the image is then there for everybody who may use the engine")
	}
	return nil
}

func (m mmdebstrap) program() string { return cmp.Or(m.command, "mmdebstrap") }

// run makes a tree and hands its tar to use while it is being written. When
// ctx ends, or this process dies, everything that it started dies at once, its
// mounts with it: it runs in process and mount namespaces of its own.
func (m mmdebstrap) run(ctx context.Context, t tree, use func(io.Reader) error) error {
	// The kernel's "die with your parent" follows the thread that forked.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	running, stop := context.WithCancel(ctx)
	defer stop()
	cmd := exec.CommandContext(running, "unshare", append(
		[]string{"--mount", "--pid", "--fork", "--mount-proc", "--kill-child=KILL", m.program()}, m.args(t)...)...)
	cmd.Env = append(environment(os.Environ()), "TMPDIR="+t.work, "CAISSON_SEED="+t.seed, "CAISSON_PACKAGES="+strings.Join(t.packages, " "))
	cmd.SysProcAttr = dieWithUs()
	cmd.WaitDelay = 5 * time.Second
	var log tail
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	if err != nil {
		return sandbox.Errorf(sandbox.Internal, "run mmdebstrap: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return sandbox.Errorf(sandbox.Internal, "run mmdebstrap: %w", err)
	}
	space := watchSpace(t.work)
	useErr := use(out)
	cutShort := errors.Is(useErr, io.ErrUnexpectedEOF)
	if useErr != nil && !cutShort {
		stop() // nobody reads on
	}
	err = cmd.Wait()
	ranOut := space.stop()
	switch {
	case log.diskFull(), ranOut && err != nil:
		return full(log.error(err), "assemble")
	case useErr != nil && (err == nil || !cutShort):
		return useErr
	case err != nil:
		return log.classify(err)
	}
	return nil
}

func (m mmdebstrap) args(t tree) []string {
	// What is made has no use for being safe on the disk half-way.
	args := []string{"--mode=root", "--format=tar", "--quiet", "--dpkgopt=force-unsafe-io"}
	if t.seed != "" {
		args = append(args, "--variant=custom", seedHook, "--skip=check/empty", installHook)
	} else {
		args = append(args, "--variant=essential", "--hook-dir="+mergedUsr)
		if len(t.packages) > 0 {
			args = append(args, "--include="+strings.Join(t.packages, ","))
		}
	}
	args = append(args, t.suite, "-")
	if m.mirror != "" {
		args = append(args, m.mirror)
	}
	return args
}

// environment is env without what would change the bytes of an image.
func environment(env []string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains([]string{"SOURCE_DATE_EPOCH", "TMPDIR", "LANG", "LANGUAGE", "DEBIAN_FRONTEND"}, name) ||
			strings.HasPrefix(name, "LC_") || strings.HasPrefix(name, "PYTHON")
	})
	return append(env, "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive")
}

// tail keeps the last bytes that are written to it.
type tail struct{ buf []byte }

const tailSize = 32 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.buf = append(t.buf, p...)
	if extra := len(t.buf) - tailSize; extra > 0 {
		t.buf = t.buf[extra:]
	}
	return len(p), nil
}

func (t *tail) diskFull() bool {
	return bytes.Contains(t.buf, []byte("No space left on device")) || bytes.Contains(t.buf, []byte("Disk quota exceeded")) ||
		bytes.Contains(t.buf, []byte("don't have enough free space"))
}

var (
	noPackage = lazyregexp.New(`Unable to locate package (\S+)|Package '?([^' ]+)'? has no installation candidate`)
	noMirror  = lazyregexp.New(`Could not resolve|Failed to fetch|Could not connect|Connection (refused|failed|timed out)|Unable to connect|Temporary failure`)
)

// classify gives a failed run its kind, from what it wrote.
func (t *tail) classify(err error) error {
	if m := noPackage().FindSubmatch(t.buf); m != nil {
		return sandbox.Errorf(sandbox.Invalid, "assemble: Debian has no package %s%s", m[1], m[2]).
			WithHint("correct the names of the packages, or make an image of your own and name that")
	}
	if noMirror().Match(t.buf) {
		return sandbox.Errorf(sandbox.Unavailable, "assemble: the Debian mirror cannot be reached: %w", t.error(err)).
			WithHint("check the network and apt's proxy settings, or set CAISSON_DEBIAN_MIRROR to a mirror that answers")
	}
	return sandbox.Errorf(sandbox.Internal, "assemble: %w", t.error(err))
}

// error is err with the last lines that say what went wrong.
func (t *tail) error(err error) error {
	var found []string
	for line := range strings.Lines(string(t.buf)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "E:") || strings.HasPrefix(line, "dpkg: error") || strings.Contains(line, "No space left") {
			found = append(found, line)
		}
	}
	if len(found) == 0 {
		if i := bytes.LastIndexByte(bytes.TrimSpace(t.buf), '\n'); len(t.buf) > 0 {
			found = []string{string(bytes.TrimSpace(t.buf)[i+1:])}
		}
	}
	if len(found) > 2 {
		found = found[len(found)-2:]
	}
	if len(found) == 0 {
		return fmt.Errorf("mmdebstrap: %w", err)
	}
	return fmt.Errorf("mmdebstrap: %w: %s", err, strings.Join(found, "; "))
}

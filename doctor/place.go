package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/sandbox"
)

// socket: may we use the engine's, and may strangers?
func socket(_ context.Context, r *round) finding {
	if r.Engine == nil {
		return warn("mend the engine's address, then ask again: caisson doctor", "not known: there is no address")
	}
	path, isUnix := strings.CutPrefix(r.Engine.Host(), "unix://")
	if !isUnix {
		return ok("the engine is not spoken to over a socket of this host")
	}
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return bad("start the engine: systemctl start docker", "%s is not there", path)
	case err != nil:
		return bad("let this user reach "+path, "%v", err)
	case st.Mode()&fs.ModeSocket == 0:
		return bad("remove it, then: systemctl restart docker", "%s is not a socket", path)
	}
	if unix.Access(path, unix.W_OK) != nil {
		return bad("sudo usermod -aG docker $USER, then log in again", "this user may not use %s", path)
	}
	if st.Mode().Perm()&0o002 != 0 && openTo(filepath.Dir(path)) {
		return warn("chmod o-rwx "+path, "everybody on this host may use %s, and so become root", path)
	}
	return ok("%s, mode %04o", path, st.Mode().Perm())
}

// openTo reports whether a folder and all above it can be passed by anybody.
func openTo(dir string) bool {
	for {
		if st, err := os.Stat(dir); err != nil || st.Mode().Perm()&0o001 == 0 {
			return false
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return true
		}
		dir = parent
	}
}

// runtimeDir: where sockets are. A socket's path is bounded, and only its owner
// may close the folder to others.
func runtimeDir(_ context.Context, r *round) finding {
	const mend = "set CAISSON_RUNTIME_DIR to a short path of your own"
	dir := r.RuntimeDir
	if !filepath.IsAbs(dir) {
		return bad(mend, "%q is not an absolute path", dir)
	}
	if r.MaxRuntimeDir > 0 && len(dir) > r.MaxRuntimeDir {
		return bad(mend, "%s has %d bytes, and sockets fit below one of at most %d", dir, len(dir), r.MaxRuntimeDir)
	}
	mode, err := usable(dir)
	if err != nil {
		return bad(mend, "%v", err)
	}
	if owner, known := ownerOf(dir); known && owner != r.Host.UID() && r.Host.UID() != 0 {
		return bad(mend, "%s belongs to user %d", dir, owner)
	}
	return ok("%s%s, %d bytes of path left", dir, mode, max(0, r.MaxRuntimeDir-len(dir)))
}

// stateDir: what is kept in it is ours alone.
func stateDir(_ context.Context, r *round) finding {
	const mend = "set CAISSON_STATE_DIR to a folder of yours"
	if r.StateErr != nil {
		return failed(r.StateErr, mend)
	}
	mode, err := usable(r.StateDir)
	if err != nil {
		if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
			return bad("free some room there, or "+mend, "%v", err)
		}
		return bad(mend, "%v", err)
	}
	if st, err := os.Stat(r.StateDir); err == nil && st.Mode().Perm()&0o077 != 0 {
		return warn("chmod 700 "+r.StateDir, "%s%s: others may look into it", r.StateDir, mode)
	}
	return ok("%s%s", r.StateDir, mode)
}

// usable reports whether a folder can be written, or made where it is not
// there, and its mode for people.
func usable(dir string) (mode string, err error) {
	st, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		parent := existing(dir)
		if st, err := os.Stat(parent); err != nil || !st.IsDir() {
			return "", fmt.Errorf("%s cannot be made: %s is not a folder", dir, parent)
		}
		if err := unix.Access(parent, unix.W_OK|unix.X_OK); err != nil {
			return "", fmt.Errorf("%s cannot be made: %s: %w", dir, parent, err)
		}
		return ", not made yet", nil
	}
	if err != nil {
		return "", err
	}
	if !st.IsDir() {
		return "", fmt.Errorf("%s is not a folder", dir)
	}
	// Only a write tells of a file system that is full or read-only.
	f, err := os.CreateTemp(dir, ".doctor-*")
	if err != nil {
		return "", err
	}
	_, err = f.Write([]byte("caisson doctor\n"))
	return fmt.Sprintf(", mode %04o", st.Mode().Perm()), errors.Join(err, f.Close(), os.Remove(f.Name()))
}

// existing is the nearest folder above a path that is there.
func existing(path string) string {
	for {
		if _, err := os.Stat(path); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return path
		}
		parent := filepath.Dir(path)
		if parent == path {
			return path
		}
		path = parent
	}
}

func ownerOf(path string) (uid int, known bool) {
	st, err := os.Stat(path)
	if err != nil {
		return 0, false
	}
	sys, known := st.Sys().(*syscall.Stat_t)
	if !known {
		return 0, false
	}
	return int(sys.Uid), true
}

// Room that images and their making take, and below which they fail.
const (
	roomyEngine, fullEngine = 5 * sandbox.GiB, 512 * sandbox.MiB
	roomyState, fullState   = sandbox.GiB, 64 * sandbox.MiB
)

// engineDisk: where images and containers are.
func engineDisk(_ context.Context, r *round) finding {
	if !r.Engine.Local() {
		return warn("look on the engine's host with: docker system df", "not known: the engine is not on this host")
	}
	return r.disk(r.facts.RootDir, roomyEngine, fullEngine, mendImages)
}

// stateDisk: where images are assembled and the audit is kept.
func stateDisk(_ context.Context, r *round) finding {
	if r.StateErr != nil {
		return warn("set CAISSON_STATE_DIR to a folder of yours", "not known: there is no state folder")
	}
	return r.disk(existing(r.StateDir), roomyState, fullState, "free some, or set CAISSON_STATE_DIR to a folder with room")
}

func (r *round) disk(dir string, roomy, full sandbox.Bytes, mend string) finding {
	left, err := r.Host.Room(dir)
	if err != nil {
		return warn("look yourself: df -h "+dir, "not known: %s: %v", dir, err)
	}
	what := fmt.Sprintf("%s free in %s", left.Free.Human(), dir)
	switch {
	case left.Free < full:
		return bad(mend, "%s", what)
	case left.Total > 0 && left.Files < 1000:
		return bad(mend, "%s, but room for %d more files only", what, left.Files)
	case left.Free < roomy:
		return warn(mend, "%s", what)
	case left.Total > 0 && left.Files < left.Total/50:
		return warn(mend, "%s, but room for %d more files only", what, left.Files)
	}
	return ok("%s", what)
}

func room(dir string) (Room, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return Room{}, err
	}
	return Room{Free: sandbox.Bytes(st.Bavail) * sandbox.Bytes(st.Bsize), Files: st.Ffree, Total: st.Files}, nil
}

package caisson

import (
	"cmp"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"github.com/caisson-dev/caisson/sandbox"
)

// actor says who asks, for the audit.
func actor() string {
	name := strconv.Itoa(os.Getuid())
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return name + "@" + host
}

// stateDir is where what outlives a process is kept.
func (c *Caisson) stateDir() (string, error) {
	dir := cmp.Or(c.cfg.StateDir, c.getenv("CAISSON_STATE_DIR"))
	if dir == "" {
		if base := c.getenv("XDG_STATE_HOME"); base != "" {
			dir = filepath.Join(base, "caisson")
		} else if home := c.getenv("HOME"); home != "" {
			dir = filepath.Join(home, ".local", "state", "caisson")
		}
	}
	if !filepath.IsAbs(dir) {
		return "", sandbox.Errorf(sandbox.Invalid, "the state folder %q is not an absolute path", dir).
			WithHint("set CAISSON_STATE_DIR to a folder of yours")
	}
	return dir, nil
}

// runtimeDir is where sockets are: short, since their paths are bounded.
func (c *Caisson) runtimeDir(state string) string {
	switch {
	case c.getenv("CAISSON_RUNTIME_DIR") != "":
		return c.getenv("CAISSON_RUNTIME_DIR")
	case os.Geteuid() == 0:
		return "/run/caisson"
	case c.getenv("XDG_RUNTIME_DIR") != "":
		return filepath.Join(c.getenv("XDG_RUNTIME_DIR"), "caisson")
	}
	return filepath.Join(state, "run")
}

// helper finds a program that belongs to caisson: by its variable, beside this
// program or the caisson in PATH, or in libexec.
func (c *Caisson) helper(name, variable string) (string, error) {
	if p := c.getenv(variable); p != "" {
		st, err := os.Stat(p)
		if err == nil && (!st.Mode().IsRegular() || st.Mode()&0o111 == 0) {
			err = fmt.Errorf("%s is not a program", p)
		}
		if err != nil {
			return "", sandbox.Errorf(sandbox.Invalid, "%s: %w", variable, err).WithHint("set %s to the path of %s", variable, name)
		}
		return filepath.Abs(p)
	}
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program's folder: %w", err)
	}
	places := []string{"/usr/libexec/caisson"}
	for _, program := range []string{c.command(), self} {
		if real, err := filepath.EvalSymlinks(program); err == nil {
			dir := filepath.Dir(real)
			places = append([]string{dir, filepath.Join(dir, "..", "libexec", "caisson")}, places...)
		}
	}
	for _, dir := range places {
		p := filepath.Join(dir, name)
		if st, err := os.Stat(p); err == nil && st.Mode().IsRegular() {
			return filepath.Clean(p), nil
		}
	}
	return "", sandbox.Errorf(sandbox.Unavailable, "%s is neither beside this program or caisson nor in libexec", name).
		WithHint("build it with make build, or set %s to its path", variable)
}

// command is the caisson in PATH, or "". A PATH that leads into the working
// directory finds none: what lies there may have come with the code to be run.
func (c *Caisson) command() string {
	for _, dir := range filepath.SplitList(c.cfg.Getenv("PATH")) {
		p := filepath.Join(dir, "caisson")
		if st, err := os.Stat(p); filepath.IsAbs(dir) && err == nil && st.Mode().IsRegular() {
			return p
		}
	}
	return ""
}

// Folders are those that caisson keeps its state and its sockets in. Errors:
// Invalid.
func (c *Caisson) Folders() (state, sockets string, err error) {
	state, err = c.stateDir()
	return state, c.runtimeDir(state), err
}

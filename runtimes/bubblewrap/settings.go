//go:build linux

package bubblewrap

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/caisson-dev/caisson/runtimes/local"
)

// mostCopied bounds a file that a sandbox gets as a copy.
const mostCopied = 128 << 10

// setting is a small file below /etc that a sandbox gets as a copy in memory. A mount
// costs bwrap more: it reads the table of all mounts again for each.
type setting struct {
	file   *os.File
	mode   os.FileMode
	target string
}

// split takes out of binds what can be copied. What not everybody may read stays a bind,
// and so does what cannot be opened. The caller closes the copies.
func split(binds []local.Bind) (rest []local.Bind, copies []setting) {
	for _, b := range binds {
		if c, ok := small(b); ok {
			copies = append(copies, c)
		} else {
			rest = append(rest, b)
		}
	}
	return rest, copies
}

// small opens what can be copied.
func small(b local.Bind) (setting, bool) {
	if !strings.HasPrefix(b.Target, "/etc/") {
		return setting{}, false
	}
	if st, err := os.Lstat(b.Source); err != nil || !st.Mode().IsRegular() { // before it is opened: a pipe would wait for its writer
		return setting{}, false
	}
	f, err := os.Open(b.Source)
	if err != nil {
		return setting{}, false
	}
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() || st.Mode()&0o004 == 0 || st.Size() > mostCopied {
		_ = f.Close() // nothing was written
		return setting{}, false
	}
	return setting{f, st.Mode().Perm(), b.Target}, true
}

// copyArgs are bwrap's, which has the files from the descriptor first on.
func copyArgs(copies []setting, first int) (args []string) {
	for i, c := range copies {
		args = append(args, "--perms", fmt.Sprintf("%04o", c.mode), "--file", strconv.Itoa(first+i), c.target)
	}
	return args
}

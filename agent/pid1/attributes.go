//go:build linux

package pid1

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/wire"
)

// userSpace is the namespace of extended attributes that whoever may write a file may
// write.
const userSpace = "user."

// fdPath leads to an open folder whatever its name is by now, so that no link that
// takes its place is followed.
func fdPath(dir *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", dir.Fd()) }

// inFolder hands do a path to a folder below root.
func inFolder(root *os.Root, name string, do func(dir string) error) error {
	d, err := root.OpenFile(name, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer d.Close()
	return do(fdPath(d))
}

// attributes are an entry's, without their namespace. What cannot be read is left
// out, as is what is no text, and all of it where the file system has none.
func attributes(at string) map[string]string {
	names, err := attributeNames(at)
	if err != nil {
		return nil
	}
	var all map[string]string
	left := wire.MaxAttributes
	for _, name := range names {
		value := make([]byte, wire.MaxAttributes)
		n, err := unix.Lgetxattr(at, userSpace+name, value)
		if err != nil || len(name)+n > left || !utf8.ValidString(name) || !utf8.Valid(value[:n]) {
			continue
		}
		if all == nil {
			all = map[string]string{}
		}
		all[name], left = string(value[:n]), left-len(name)-n
	}
	return all
}

// attributeNames are those of an entry's attributes, without their namespace.
func attributeNames(at string) ([]string, error) {
	var list [64 << 10]byte // as much as there can be
	n, err := unix.Llistxattr(at, list[:])
	if err != nil || n == 0 {
		return nil, err
	}
	var names []string
	for name := range strings.SplitSeq(strings.TrimSuffix(string(list[:n]), "\x00"), "\x00") {
		if name, ok := strings.CutPrefix(name, userSpace); ok {
			names = append(names, name)
		}
	}
	return names, nil
}

// setAttributes replaces an entry's attributes.
func setAttributes(root *os.Root, name string, all map[string]string) error {
	return inFolder(root, path.Dir(name), func(dir string) error {
		at := path.Join(dir, path.Base(name))
		had, err := attributeNames(at)
		if err != nil && !errors.Is(err, unix.ENOTSUP) {
			return &fs.PathError{Op: "list attributes", Path: name, Err: err}
		}
		for _, old := range had {
			if _, stays := all[old]; stays {
				continue
			}
			if err := unix.Lremovexattr(at, userSpace+old); err != nil {
				return &fs.PathError{Op: "remove attribute", Path: name, Err: err}
			}
		}
		for k, v := range all {
			if err := unix.Lsetxattr(at, userSpace+k, []byte(v), 0); err != nil {
				return &fs.PathError{Op: "set attribute", Path: name, Err: err}
			}
		}
		return nil
	})
}

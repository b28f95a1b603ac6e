package bridge_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// node is one entry of a tree, as a full look at it tells.
type node struct {
	kind  string
	mode  uint32
	mtime int64
	what  string // hash or target
	links string // all paths of the same inode, for a file with several
	inode uint64
}

// readTree hashes a whole tree.
func readTree(tb testing.TB, dir string) map[string]node {
	tb.Helper()
	tree, names := map[string]node{}, map[uint64][]string{}
	err := filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(p, &st); err != nil {
			return err
		}
		n := node{mode: st.Mode & 0o7777, mtime: st.Mtim.Nano(), inode: st.Ino}
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			sum := sha256.Sum256(b)
			n.kind, n.what = "file", hex.EncodeToString(sum[:])
			names[st.Ino] = append(names[st.Ino], rel)
		case unix.S_IFDIR:
			n.kind = "dir"
		case unix.S_IFLNK:
			n.kind = "link"
			if n.what, err = os.Readlink(p); err != nil {
				return err
			}
		default:
			n.kind = "other"
			n.what = "fifo" // programs make nothing else
		}
		tree[rel] = n
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	for p, n := range tree {
		if list := names[n.inode]; n.kind == "file" && len(list) > 1 {
			sort.Strings(list)
			n.links = strings.Join(list, "\x00")
			tree[p] = n
		}
	}
	return tree
}

// differences says what became of each path between two trees: the truth that
// a record is held to.
func differences(before, after map[string]node) map[string]string {
	out := map[string]string{}
	for p, b := range before {
		switch a, there := after[p]; {
		case !there:
			out[p] = "deleted"
		case a.kind != b.kind || a.what != b.what:
			out[p] = "modified " + a.what
		case a.mode != b.mode:
			out[p] = "mode"
		}
	}
	for p, a := range after {
		if _, there := before[p]; !there {
			out[p] = "created " + a.what
		}
	}
	return out
}

// sameTree says in what two trees differ, times and links included; inodes are
// free.
func sameTree(want, got map[string]node) string {
	var diffs []string
	for p, w := range want {
		g, there := got[p]
		w.inode, g.inode = 0, 0
		if !there || w != g {
			diffs = append(diffs, fmt.Sprintf("%q: want %+v, got %+v (there: %v)", p, w, g, there))
		}
	}
	for p := range got {
		if _, there := want[p]; !there {
			diffs = append(diffs, fmt.Sprintf("%q: should not be there", p))
		}
	}
	sort.Strings(diffs)
	return strings.Join(diffs, "\n")
}

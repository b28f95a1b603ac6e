//go:build linux

package track

import (
	"hash/maphash"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/wire"
)

// lookAt looks at single paths, and at the other names of files that have
// several: those were touched by the same.
func (t *Tracker) lookAt(o *Observation, touched map[string]uint64, paths []string) {
	slices.Sort(paths)
	looked := make(map[string]bool, len(paths))
	at := &cursor{t: t, fd: -1}
	defer at.close()
	for len(paths) > 0 {
		var more []string
		for _, p := range paths {
			if looked[p] {
				continue
			}
			looked[p] = true
			siblings := t.siblings(p)
			e, ok := at.look(p)
			if !ok {
				continue
			}
			at.listing(&e)
			o.Entries = append(o.Entries, e)
			t.noteLinks(&e)
			for _, s := range append(siblings, t.siblings(p)...) {
				if !looked[s] {
					touched[s] |= touched[p]
					more = append(more, s)
				}
			}
		}
		paths = more
	}
}

// cursor looks at paths in order. It keeps the last folder open.
type cursor struct {
	t    *Tracker
	path string
	dir  folder
	fd   int // of dir; -1 without
	st   unix.Statx_t
}

func (c *cursor) close() {
	if c.fd >= 0 {
		c.dir.close()
	}
	c.fd = -1
}

// look describes what is at a path, and reports whether that can be told.
func (c *cursor) look(p string) (wire.Entry, bool) {
	t := c.t
	parent, name := parentPath(p), p[strings.LastIndexByte(p, '/')+1:]
	if c.fd < 0 || parent != c.path {
		c.close()
		dir, _, err := t.parentOf(p)
		if err != nil {
			return wire.Entry{Path: p}, gone(err)
		}
		c.dir, c.fd, c.path = dir, dir.fd, parent
	}
	cname := append([]byte(name), 0)
	key := maphash.String(t.seed, name)
	node := t.nodeOf(parent)
	if p == "." {
		node = nil
	}
	if err := statAt(c.fd, &cname[0], &c.st); err != nil {
		if node != nil && gone(err) {
			node.drop(key)
			if s := node.subs[name]; s != nil {
				t.forgetDir(s)
			}
		}
		return wire.Entry{Path: p}, gone(err)
	}
	if node != nil {
		node.remember(key, t.sum(&c.st))
		if s := node.subs[name]; s != nil && kindOf(c.st.Mode) != wire.KindDir {
			t.forgetDir(s)
		}
	}
	return t.describe(c.fd, name, p, &c.st), true
}

// listing adds all names to a folder that may stand in the place of another.
func (c *cursor) listing(e *wire.Entry) {
	if e.Kind != wire.KindDir {
		return
	}
	d := c.t.nodeOf(e.Path)
	if d == nil || !d.whole {
		return
	}
	f, err := c.t.openDir(c.fd, e.Path[strings.LastIndexByte(e.Path, '/')+1:])
	if err != nil {
		return
	}
	e.Whole, e.Names, d.whole = true, namesOf(f.fd), false
	f.close()
}

// maxGroups bounds the files with several names that are remembered. Beyond
// it the tree is walked each time.
const maxGroups = 4096

// noteLinks books a file under its inode if it has several names.
func (t *Tracker) noteLinks(e *wire.Entry) {
	if ino, was := t.member[e.Path]; was && (!linkable(e) || ino != e.Inode || e.Links < 2) {
		t.groups[ino] = slices.DeleteFunc(t.groups[ino], func(p string) bool { return p == e.Path })
		if len(t.groups[ino]) == 0 {
			delete(t.groups, ino)
		}
		delete(t.member, e.Path)
	}
	if !linkable(e) || e.Links < 2 {
		return
	}
	if _, was := t.member[e.Path]; !was {
		if len(t.member) >= maxGroups {
			t.lame("too many files have several names")
			return
		}
		t.member[e.Path] = e.Inode
		t.groups[e.Inode] = append(t.groups[e.Inode], e.Path)
	}
	if len(t.groups[e.Inode]) < int(e.Links) {
		t.loose[e.Inode] = e.Links
	}
}

// linkable reports whether an entry can have several names.
func linkable(e *wire.Entry) bool { return e.Kind != wire.KindGone && e.Kind != wire.KindDir }

// looseNames reports whether some file has names that are not known.
func (t *Tracker) looseNames() bool {
	for ino, links := range t.loose {
		if len(t.groups[ino]) < int(links) {
			return true
		}
		delete(t.loose, ino)
	}
	return false
}

// forgetLinks forgets which names belong together.
func (t *Tracker) forgetLinks() {
	t.groups, t.member, t.loose = map[uint64][]string{}, map[string]uint64{}, map[uint64]uint32{}
}

// siblings are the other known names of a file.
func (t *Tracker) siblings(p string) []string {
	ino, ok := t.member[p]
	if !ok {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(t.groups[ino]), func(q string) bool { return q == p })
}

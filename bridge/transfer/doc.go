// Package transfer copies folders between this host and a workspace.
//
// A pull reads a tar stream that a sandbox has written, and a sandbox may be
// hostile: every name is checked, nothing is written but through an [os.Root] of
// the destination, links that lead out of it are left out, and files are made
// anew, never opened for writing where something stands. A push reads files of
// the host the same way, and opens nothing but regular files.
//
// Both can be taken up again: what is there already with the same size, mode and
// time is not moved once more, and a large file that a pull was cut off in goes
// on where it ended.
package transfer

import (
	"context"
	"io"
	"iter"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// Space is what is needed of a workspace.
type Space interface {
	Stat(ctx context.Context, name string) (sandbox.FileInfo, error)
	Tree(ctx context.Context, name string, depth int) iter.Seq2[sandbox.FileInfo, error]
	Read(ctx context.Context, name string, offset, length int64, w io.Writer) (int64, error)
	PutTar(ctx context.Context, dir string, r io.Reader) (sandbox.Moved, error)
	Get(ctx context.Context, dir string, paths []string, w io.Writer) (sandbox.Moved, error)
}

// Step is one entry that a transfer moves, or with DryRun would.
type Step struct {
	Path string // in the workspace
	Type string // "file", "dir", "link"
	Size int64
	Skip string // why it is left out; "" for what is moved
}

// Options are those of both directions. The zero value moves all of it.
type Options struct {
	DryRun bool
	Ignore bool // leaves out what .gitignore files say
	All    bool // moves what is there already too
	Force  bool // puts others in the place of files that are read-only
	// Each is told of every entry before it is moved. nil tells nobody.
	Each func(Step)
	// Progress is told how many bytes of how many were moved; a total of 0 is
	// not known.
	Progress func(done, total int64)
}

func (o *Options) each(s Step) {
	if o.Each != nil {
		o.Each(s)
	}
}

// leftReadOnly says why a file that nobody may write is not replaced.
const leftReadOnly = "it is read-only there; --force puts another in its place"

// sameTime compares times as file systems and archives keep them.
func sameTime(a, b time.Time) bool { return a.UnixNano() == b.UnixNano() }

// counter tells of progress as bytes pass.
type counter struct {
	done, total int64
	told        int64
	tell        func(done, total int64)
}

// progressStep is how many bytes pass between two tellings.
const progressStep = 1 << 20

func (c *counter) add(n int) {
	c.done += int64(n)
	if c.tell != nil && c.done-c.told >= progressStep {
		c.told = c.done
		c.tell(c.done, c.total)
	}
}

type countingReader struct {
	r io.Reader
	c *counter
}

func (r countingReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	r.c.add(n)
	return n, err
}

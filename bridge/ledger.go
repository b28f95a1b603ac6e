package bridge

import (
	"context"
	"io"

	"github.com/caisson-dev/caisson/sandbox"
)

// Ledger remembers a workspace as it was last seen, and its records. It is safe
// for concurrent use, by several processes too. Who opened it closes it.
type Ledger interface {
	// States returns what is known of paths; what is not known is left out.
	States(ctx context.Context, paths []string) (map[string]sandbox.FileState, error)
	// Below returns all that is known below a folder, and not the folder; for
	// "." all but that.
	Below(ctx context.Context, dir string) (map[string]sandbox.FileState, error)
	// SameFile returns the known paths of an inode.
	SameFile(ctx context.Context, inode uint64) (map[string]sandbox.FileState, error)
	// Find returns where contents are kept, by their hash.
	Find(ctx context.Context, sums []string) (map[string]Place, error)
	// Commit makes all of an entry or nothing. It sets the ID of each record.
	Commit(ctx context.Context, e *Entry) error
	// Records returns records in their order.
	Records(ctx context.Context, f RecordFilter) ([]sandbox.ChangeRecord, error)
	// Copy writes all of it to a new file, which can be opened as a ledger.
	// Errors: Unsupported for one in memory.
	Copy(ctx context.Context, path string) error
	// Kept returns the packs, the oldest first.
	Kept(ctx context.Context) ([]Pack, error)
	Close() error
}

// Entry is what one observation adds to a [Ledger].
type Entry struct {
	Set     map[string]sandbox.FileState // what is there now; KindNone forgets a path
	Records []*sandbox.ChangeRecord
	Pack    *Pack // new or larger than before, with new places; nil where nothing new is kept
	Places  map[string]Place
	Drop    []string // packs that are no longer kept
}

// Place says where a content is kept.
type Place struct {
	Pack   string
	Offset int64
	Size   int64
}

// Pack is a file with contents.
type Pack struct {
	Name string
	Size int64
}

// RecordFilter selects records. The zero value selects all.
type RecordFilter struct {
	Exec  sandbox.ID // those of an exec, and those that it may have a share in
	From  int64      // those with this ID and later ones
	Until int64      // those before this ID; 0 is all of them
	Limit int        // the newest; 0 is all of them
}

// discard is a workspace reader's way to read a hash alone.
func discard(r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	return err
}

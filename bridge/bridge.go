package bridge

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// Config says where books are kept. Dir and Open are required.
type Config struct {
	// Dir holds a folder for each session, named by its id.
	Dir string
	// Open opens the ledger at a path, and makes it where there is none.
	Open func(ctx context.Context, path string) (Ledger, error)
	// Keep bounds the old contents of a session, and KeepFile the size of one.
	// 0 is the default.
	Keep, KeepFile sandbox.Bytes
	// Feed is told of every record. nil tells nobody.
	Feed *Feed
}

// Bridge has the books of all sessions. It is safe for concurrent use. Its owner
// closes it.
type Bridge struct {
	cfg Config

	mu     sync.Mutex
	books  map[sandbox.ID]*Book
	closed bool
}

// New checks a Config and opens nothing. Errors: Invalid.
func New(cfg Config) (*Bridge, error) {
	if cfg.Open == nil || !filepath.IsAbs(cfg.Dir) {
		return nil, sandbox.Errorf(sandbox.Invalid, "bridge: a folder and a way to open ledgers are required")
	}
	return &Bridge{cfg: cfg, books: map[sandbox.ID]*Book{}}, nil
}

// Book opens a session's book; it stays open until [Bridge.Close] or
// [Bridge.Forget]. A brief one is in memory, and keeps no contents.
func (b *Bridge) Book(ctx context.Context, session sandbox.ID, brief bool) (*Book, error) {
	if !session.Valid() {
		return nil, sandbox.Errorf(sandbox.Internal, "bridge: session %q", session)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, sandbox.Errorf(sandbox.Unavailable, "caisson is shutting down")
	}
	if book := b.books[session]; book != nil {
		return book, nil
	}
	book := &Book{Ledger: &Memory{}}
	if !brief {
		dir := b.dir(session)
		ledger, err := b.cfg.Open(ctx, filepath.Join(dir, "ledger.db"))
		if err != nil {
			return nil, err
		}
		book = &Book{Ledger: ledger, Packs: &Packs{Dir: filepath.Join(dir, "packs"), Most: b.cfg.Keep, MostFile: b.cfg.KeepFile}}
	}
	b.books[session] = book
	return book, nil
}

// Open opens or makes a session's book. Errors: those of [Bridge.Book].
func (b *Bridge) Open(ctx context.Context, session sandbox.ID) error {
	_, err := b.Book(ctx, session, false)
	return err
}

func (b *Bridge) dir(session sandbox.ID) string { return filepath.Join(b.cfg.Dir, string(session)) }

// Record observes a workspace and writes down what differs. It returns the
// records that it made, and all that the exec of opts has a share in, joined
// into one change for each path.
func (b *Bridge) Record(ctx context.Context, session sandbox.ID, tree sandbox.Tree, opts sandbox.RecordOptions) (made []sandbox.ChangeRecord, changes []sandbox.FileChange, err error) {
	book, err := b.Book(ctx, session, opts.Brief)
	if err != nil {
		return nil, nil, err
	}
	if made, err = book.Record(ctx, tree, opts); err != nil {
		return nil, nil, err
	}
	b.cfg.Feed.tell(opts.Session, opts.Exec, made)
	if opts.Exec == "" {
		return made, nil, nil
	}
	// What was just made need not be read.
	earlier := RecordFilter{Exec: opts.Exec}
	if len(made) > 0 {
		earlier.Until = made[0].ID
	}
	records, err := book.Ledger.Records(ctx, earlier)
	for _, r := range made {
		if concerns(r, opts.Exec) {
			records = append(records, r)
		}
	}
	return made, Shown(Merge(OwnShare(records, opts.Exec))), err
}

// Fork lets a new session know all that is known of another: what was recorded
// there can be shown and undone here. Contents are shared until either drops
// them.
func (b *Bridge) Fork(ctx context.Context, from, to sandbox.ID) (err error) {
	book, err := b.Book(ctx, from, false)
	if err != nil {
		return err
	}
	if !to.Valid() {
		return sandbox.Errorf(sandbox.Internal, "bridge: session %q", to)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(b.dir(to)))
		}
	}()
	book.mu.Lock()
	defer book.mu.Unlock()
	if err := os.MkdirAll(b.dir(to), 0o700); err != nil {
		return sandbox.Errorf(sandbox.Denied, "make the folder of a fork's changes: %w", err).WithHint("make room on the disk of %s", b.cfg.Dir)
	}
	if err := book.Ledger.Copy(ctx, filepath.Join(b.dir(to), "ledger.db")); err != nil {
		return err
	}
	return book.Packs.shareTo(filepath.Join(b.dir(to), "packs"))
}

// Forget removes all that is known of a session. It is idempotent.
func (b *Bridge) Forget(session sandbox.ID) error {
	if !session.Valid() {
		return sandbox.Errorf(sandbox.Internal, "bridge: session %q", session)
	}
	b.mu.Lock()
	book := b.books[session]
	delete(b.books, session)
	b.mu.Unlock()
	var err error
	if book != nil {
		err = book.Ledger.Close()
	}
	return errors.Join(err, os.RemoveAll(b.dir(session)))
}

// strayAge is how long a folder is left alone whose session nobody knows: a fork
// has its changes before it is written down.
const strayAge = time.Hour

// Stray is what is kept of a session that may be gone.
type Stray struct {
	Session sandbox.ID
	Touched time.Time
}

// Strays lists whose changes are kept here, but of those that were touched in the
// last hour. Which of them are gone, their owner knows: those are to be given to
// [Bridge.Forget].
func (b *Bridge) Strays() ([]Stray, error) {
	entries, err := os.ReadDir(b.cfg.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, sandbox.Errorf(sandbox.Unavailable, "list what is kept of sessions: %w", err).WithHint("check the permissions of %s", b.cfg.Dir)
	}
	var strays []Stray
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !sandbox.ID(e.Name()).Valid() || time.Since(info.ModTime()) < strayAge {
			continue // it went meanwhile, is not ours, or is too young
		}
		strays = append(strays, Stray{sandbox.ID(e.Name()), info.ModTime()})
	}
	return strays, nil
}

// Close closes every book. It is idempotent.
func (b *Bridge) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	var errs []error
	for id, book := range b.books {
		errs = append(errs, book.Ledger.Close())
		delete(b.books, id)
	}
	return errors.Join(errs...)
}

// Undo takes back what an exec of a session changed. See [Book.Undo].
func (b *Bridge) Undo(ctx context.Context, session sandbox.ID, name string, tree sandbox.Tree, opts UndoOptions) (Undone, error) {
	book, err := b.Book(ctx, session, false)
	if err != nil {
		return Undone{}, err
	}
	u, err := book.Undo(ctx, tree, opts)
	b.cfg.Feed.tell(name, u.Record.Exec, u.Made)
	return u, err
}

// Listened reports whether anybody wants to know of changes as they happen.
func (b *Bridge) Listened() bool { return b.cfg.Feed.listened() }

// Feed is the feed of [Config], and nil without one.
func (b *Bridge) Feed() *Feed { return b.cfg.Feed }

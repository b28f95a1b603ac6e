// Package sqlite keeps caisson's state in one SQLite file: write-ahead log,
// every commit synced, one writer.
//
// Calls of [Store.Apply] that come while a commit is under way share the next
// one, so that durability costs little under load. Several processes may use
// one folder; SQLite's own locks order them.
//
// The audit's chain is as strong as the folder is closed: whoever can rewrite
// the database and the file audit.head beside it consistently can forge a
// history. A copy of [sandbox.AuditReport].Head that is kept elsewhere tells.
package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"sync"
	"syscall"

	_ "modernc.org/sqlite" // the driver that sql.Open names

	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/store"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Config says where the state is. Dir is required, and made with mode 0700.
type Config struct {
	Dir string
	// Told is called with events once they are written down, in the order of each
	// caller's own. nil tells nobody.
	Told func([]sandbox.Event)
}

// Store is an open state folder. It is safe for concurrent use.
type Store struct {
	dir    string
	anew   string // what helps where it is corrupt
	id     string
	write  *sql.DB // one connection
	read   *sql.DB
	parsed sync.Map // from texts to *sql.Stmt: see prepared; they close with read
	// changes are the statements of changes, parsed. The writer alone has them; they close
	// with write.
	changes map[string]*sql.Stmt
	anchor  *anchor
	told    func([]sandbox.Event) // may be nil

	requests chan *request
	stopped  chan struct{} // closed once the writer has ended

	mu     sync.RWMutex // held for reading while a request is sent
	closed bool
}

var _ store.Store = (*Store)(nil)

// Open opens or makes a state folder, and brings it up to date. Errors: Denied
// and Unavailable for a folder that cannot be used, Internal for one that is
// corrupt, Unsupported for one of a newer caisson.
func Open(ctx context.Context, cfg Config) (_ *Store, err error) {
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		kind := sandbox.Unavailable
		if errors.Is(err, fs.ErrPermission) {
			kind = sandbox.Denied
		}
		return nil, sandbox.Errorf(kind, "make the state folder: %w", err).WithHint("set CAISSON_STATE_DIR to a folder of yours")
	}
	if cfg.Dir, err = filepath.Abs(cfg.Dir); err != nil {
		return nil, sandbox.Errorf(sandbox.Internal, "find the state folder: %w", err)
	}
	path := filepath.Join(cfg.Dir, "state.db")
	s := &Store{dir: cfg.Dir, told: cfg.Told, changes: map[string]*sql.Stmt{}, requests: make(chan *request, maxBatch), stopped: make(chan struct{})}
	s.anew = "move state.db and audit.head in " + cfg.Dir + " aside and start anew; caisson gc then removes what its sessions left"
	if err := touch(path); err != nil {
		return nil, s.unwritable(err, "open the state")
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.closeFiles())
		}
	}()
	// A path may hold what means something in a URL. The busy time bounds how
	// long another process may hold the writer.
	dsn := (&url.URL{Scheme: "file", Path: path}).String() +
		"?_txlock=immediate&_pragma=busy_timeout(15000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=foreign_keys(1)"
	if s.write, err = sql.Open("sqlite", dsn); err != nil {
		return nil, s.class(err, "open the state")
	}
	s.write.SetMaxOpenConns(1)
	if s.anchor, err = openAnchor(filepath.Join(cfg.Dir, "audit.head")); err != nil {
		return nil, s.unwritable(err, "open the audit's anchor")
	}
	if err := s.migrate(ctx); err != nil {
		return nil, err
	}
	if s.read, err = sql.Open("sqlite", dsn+"&_pragma=query_only(1)"); err != nil {
		return nil, s.class(err, "open the state")
	}
	s.read.SetMaxOpenConns(4)
	s.read.SetMaxIdleConns(4)
	go s.writer()
	return s, nil
}

// touch makes the database's file with a mode that keeps secrets in. It must
// not open one that is there: closing it again would drop every lock that this
// process has on it, and another process would then take the log of changes
// away from under an open [Store].
func touch(path string) error {
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	err := makeEmpty(path)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// unwritable gives the error of a file of the state its kind.
func (s *Store) unwritable(err error, doing string) error {
	if err == nil {
		return nil
	}
	kind := sandbox.Unavailable
	switch {
	case errors.Is(err, fs.ErrPermission):
		kind = sandbox.Denied
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		kind = sandbox.Exhausted
	}
	return sandbox.Errorf(kind, "%s: %w", doing, err).WithHint("make room or set the permissions in %s, or set CAISSON_STATE_DIR to a folder of yours that can be written", s.dir)
}

// makeEmpty makes an empty file that nobody has ever opened under its name.
func makeEmpty(path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err := f.Close(); err != nil {
		return err
	}
	return os.Link(f.Name(), path)
}

// migrate brings the schema up to date, each step in its transaction.
func (s *Store) migrate(ctx context.Context) error {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return err
	}
	sort.Strings(names)
	var version int
	if err := s.write.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return s.class(err, "read the state's version")
	}
	if version > len(names) {
		return sandbox.Errorf(sandbox.Unsupported, "the state in %s is of version %d, and this caisson knows %d", s.dir, version, len(names)).
			WithHint("use the newer caisson, or another CAISSON_STATE_DIR")
	}
	for i := version; i < len(names); i++ {
		if err := s.migrateTo(ctx, i+1, names[i]); err != nil {
			return err
		}
	}
	err = s.write.QueryRowContext(ctx, "SELECT value FROM meta WHERE key = 'state_id'").Scan(&s.id)
	if err != nil {
		return s.class(err, "read the state's id")
	}
	return nil
}

func (s *Store) migrateTo(ctx context.Context, version int, name string) error {
	text, err := migrations.ReadFile(name)
	if err != nil {
		return err
	}
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return s.class(err, "upgrade the state")
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	// Another process may have done it while this one waited for the lock.
	var now int
	if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&now); err != nil {
		return s.class(err, "upgrade the state")
	}
	if now >= version {
		return nil
	}
	if _, err := tx.ExecContext(ctx, string(text)); err != nil {
		return s.class(err, "upgrade the state")
	}
	if version == 1 {
		var id [16]byte
		_, _ = rand.Read(id[:]) // crypto/rand.Read never fails: it ends the process instead
		if _, err := tx.ExecContext(ctx, "INSERT INTO meta VALUES ('state_id', ?)", hex.EncodeToString(id[:])); err != nil {
			return s.class(err, "upgrade the state")
		}
		if err := s.anchor.begin(); err != nil {
			return s.unwritable(err, "anchor the audit")
		}
	}
	if _, err := tx.ExecContext(ctx, "PRAGMA user_version = "+strconv.Itoa(version)); err != nil {
		return s.class(err, "upgrade the state")
	}
	return s.class(tx.Commit(), "upgrade the state")
}

// errClosed says that a store was closed, to whoever still asks.
func errClosed() error { return sandbox.Errorf(sandbox.Unavailable, "the state is closed") }

// usable is an error once the store was closed.
func (s *Store) usable() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return errClosed()
	}
	return nil
}

// ID names the state folder, for as long as it exists.
func (s *Store) ID() string { return s.id }

// Close waits for what is being written. It is idempotent.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.requests)
	s.mu.Unlock()
	<-s.stopped
	return s.closeFiles()
}

func (s *Store) closeFiles() error {
	var errs []error
	for _, db := range []*sql.DB{s.read, s.write} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	if s.anchor != nil {
		errs = append(errs, s.anchor.close())
	}
	return errors.Join(errs...)
}

// sqliteCode is what the driver's errors have.
type sqliteCode interface{ Code() int }

// SQLite's primary result codes that have a kind of their own:
// https://www.sqlite.org/rescode.html
const (
	codeBusy     = 5
	codeLocked   = 6
	codeReadOnly = 8
	codeIOErr    = 10
	codeCorrupt  = 11
	codeFull     = 13
	codeCantOpen = 14
	codeNotADB   = 26
)

// class gives an error of the driver its kind.
func (s *Store) class(err error, doing string) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*sandbox.Error](err); ok {
		return err // it has a kind
	}
	var c sqliteCode
	if !errors.As(err, &c) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	switch c.Code() & 0xff {
	case codeBusy, codeLocked:
		return sandbox.Errorf(sandbox.Unavailable, "%s: another caisson holds the state for too long: %w", doing, err).WithHint("try again")
	case codeReadOnly, codeCantOpen, codeIOErr:
		return sandbox.Errorf(sandbox.Unavailable, "%s: %w", doing, err).WithHint("make room on the disk of %s and see that it can be written, or set CAISSON_STATE_DIR", s.dir)
	case codeFull:
		return sandbox.Errorf(sandbox.Exhausted, "%s: the disk is full: %w", doing, err).WithHint("make room on the disk of %s", s.dir)
	case codeCorrupt, codeNotADB:
		return sandbox.Errorf(sandbox.Internal, "%s: the state is corrupt: %w", doing, err).
			WithHint("%s", s.anew)
	}
	return sandbox.Errorf(sandbox.Internal, "%s: %w", doing, err)
}

package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/bridge"
	"github.com/caisson-dev/caisson/sandbox"
)

// ledgerSchema is a ledger's.
const ledgerSchema = `
CREATE TABLE IF NOT EXISTS states (path BLOB PRIMARY KEY, inode INTEGER NOT NULL, state BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS records (id INTEGER PRIMARY KEY AUTOINCREMENT, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS sharers (exec TEXT NOT NULL, record INTEGER NOT NULL, PRIMARY KEY (exec, record)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS places (sum TEXT PRIMARY KEY, pack TEXT NOT NULL, at INTEGER NOT NULL, size INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS places_of_pack ON places (pack);
CREATE TABLE IF NOT EXISTS packs (seq INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, size INTEGER NOT NULL);
`

// Bounds of the records of a session: older ones are forgotten, now and then and
// whenever a large one comes.
const (
	maxRecords     = 10_000
	maxRecordBytes = 128 << 20
	largeRecord    = 256 << 10
	countEvery     = 64
)

// Ledger is a [bridge.Ledger] in a file of its own, which goes with its session.
// It is not synced at each commit: after a loss of power it may lack the last
// records, and the next one finds what differs.
type Ledger struct {
	db   *sql.DB
	path string
}

var _ bridge.Ledger = (*Ledger)(nil)

// OpenLedger opens or makes a ledger. Errors are those of [Open].
func OpenLedger(ctx context.Context, path string) (*Ledger, error) {
	l := &Ledger{path: path}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, sandbox.Errorf(sandbox.Denied, "make the ledger's folder: %w", err).WithHint("set CAISSON_STATE_DIR to a folder of yours")
	}
	if err := touch(path); err != nil {
		return nil, l.asStore().unwritable(err, "open the ledger")
	}
	dsn := (&url.URL{Scheme: "file", Path: path}).String() +
		"?_txlock=immediate&_pragma=busy_timeout(15000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)"
	var err error
	if l.db, err = sql.Open("sqlite", dsn); err != nil {
		return nil, l.class(err, "open the ledger")
	}
	l.db.SetMaxOpenConns(1)
	if _, err := l.db.ExecContext(ctx, ledgerSchema); err != nil {
		return nil, errors.Join(l.class(err, "open the ledger"), l.db.Close())
	}
	return l, nil
}

func (l *Ledger) class(err error, doing string) error {
	return l.asStore().class(err, doing)
}

// asStore is what gives errors their kinds, and hints that speak of a ledger.
func (l *Ledger) asStore() *Store {
	return &Store{dir: filepath.Dir(l.path), anew: "move " + l.path + " aside: its session's changes are then recorded from there on"}
}

// States returns what is known of paths.
func (l *Ledger) States(ctx context.Context, paths []string) (map[string]sandbox.FileState, error) {
	out := make(map[string]sandbox.FileState, len(paths))
	const chunk = 500
	for at := 0; at < len(paths); at += chunk {
		part := paths[at:min(at+chunk, len(paths))]
		args := make([]any, len(part))
		for i, p := range part {
			args[i] = []byte(p)
		}
		q := "SELECT path, state FROM states WHERE path IN (?" + strings.Repeat(",?", len(part)-1) + ")"
		if err := l.states(ctx, out, q, args...); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// states adds the rows of a query.
func (l *Ledger) states(ctx context.Context, into map[string]sandbox.FileState, q string, args ...any) error {
	rows, err := l.db.QueryContext(ctx, q, args...)
	if err != nil {
		return l.class(err, "read the ledger")
	}
	defer rows.Close()
	for rows.Next() {
		var path, raw sql.RawBytes
		if err := rows.Scan(&path, &raw); err != nil {
			return l.class(err, "read the ledger")
		}
		var s sandbox.FileState
		if err := json.Unmarshal(raw, &s); err != nil {
			return sandbox.Errorf(sandbox.Internal, "read the ledger: %w", err)
		}
		into[string(path)] = s
	}
	return l.class(rows.Err(), "read the ledger")
}

// Below returns all that is known below a folder.
func (l *Ledger) Below(ctx context.Context, dir string) (map[string]sandbox.FileState, error) {
	out := map[string]sandbox.FileState{}
	if dir == "." {
		return out, l.states(ctx, out, "SELECT path, state FROM states WHERE path != ?", []byte("."))
	}
	// '0' is the byte behind '/'.
	return out, l.states(ctx, out, "SELECT path, state FROM states WHERE path > ? AND path < ?", []byte(dir+"/"), []byte(dir+"0"))
}

// SameFile returns the known paths of an inode.
func (l *Ledger) SameFile(ctx context.Context, inode uint64) (map[string]sandbox.FileState, error) {
	out := map[string]sandbox.FileState{}
	return out, l.states(ctx, out, "SELECT path, state FROM states WHERE inode = ?", int64(inode))
}

// Find returns where contents are kept.
func (l *Ledger) Find(ctx context.Context, sums []string) (map[string]bridge.Place, error) {
	out := map[string]bridge.Place{}
	for part := range slices.Chunk(sums, 500) {
		args := make([]any, len(part))
		for i, s := range part {
			args[i] = s
		}
		if err := l.find(ctx, out, "SELECT sum, pack, at, size FROM places WHERE sum IN (?"+strings.Repeat(",?", len(part)-1)+")", args); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (l *Ledger) find(ctx context.Context, into map[string]bridge.Place, q string, args []any) error {
	rows, err := l.db.QueryContext(ctx, q, args...)
	if err != nil {
		return l.class(err, "read the ledger")
	}
	defer rows.Close()
	for rows.Next() {
		var sum string
		var p bridge.Place
		if err := rows.Scan(&sum, &p.Pack, &p.Offset, &p.Size); err != nil {
			return l.class(err, "read the ledger")
		}
		into[sum] = p
	}
	return l.class(rows.Err(), "read the ledger")
}

// Commit makes all of an entry or nothing.
func (l *Ledger) Commit(ctx context.Context, e *bridge.Entry) error {
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		return l.class(err, "write the ledger")
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	w := &ledgerWriter{ctx: ctx, tx: tx}
	w.states(e.Set)
	w.contents(e)
	for _, r := range e.Records {
		w.record(r)
	}
	if w.err == nil {
		w.err = tx.Commit()
	}
	return l.class(w.err, "write the ledger")
}

// ledgerWriter writes within one transaction, until the first error.
type ledgerWriter struct {
	ctx context.Context //nolint:containedctx // of one call
	tx  *sql.Tx
	err error
}

func (w *ledgerWriter) exec(q string, args ...any) sql.Result {
	if w.err != nil {
		return nil
	}
	var r sql.Result
	r, w.err = w.tx.ExecContext(w.ctx, q, args...)
	return r
}

// rows puts many rows with few statements: each has to be compiled.
func (w *ledgerWriter) rows(before string, columns int, after string, args []any) {
	const chunk = 64
	one := "(?" + strings.Repeat(",?", columns-1) + ")"
	for len(args) > 0 {
		n := min(chunk, len(args)/columns)
		w.exec(before+one+strings.Repeat(","+one, n-1)+after, args[:n*columns]...)
		args = args[n*columns:]
	}
}

func (w *ledgerWriter) states(set map[string]sandbox.FileState) {
	args := make([]any, 0, 3*len(set))
	for p, s := range set {
		if s.Kind == sandbox.KindNone {
			w.exec("DELETE FROM states WHERE path = ?", []byte(p))
			continue
		}
		raw, err := json.Marshal(s)
		if err != nil && w.err == nil {
			w.err = err
		}
		args = append(args, []byte(p), int64(s.Inode), raw)
	}
	w.rows("INSERT INTO states VALUES ", 3, " ON CONFLICT (path) DO UPDATE SET inode = excluded.inode, state = excluded.state", args)
}

func (w *ledgerWriter) contents(e *bridge.Entry) {
	for _, name := range e.Drop {
		w.exec("DELETE FROM places WHERE pack = ?", name)
		w.exec("DELETE FROM packs WHERE name = ?", name)
	}
	if e.Pack == nil {
		return
	}
	w.exec("INSERT INTO packs (name, size) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET size = MAX(size, excluded.size)", e.Pack.Name, e.Pack.Size)
	args := make([]any, 0, 4*len(e.Places))
	for sum, p := range e.Places {
		args = append(args, sum, p.Pack, p.Offset, p.Size)
	}
	w.rows("INSERT OR REPLACE INTO places VALUES ", 4, "", args)
}

func (w *ledgerWriter) record(r *sandbox.ChangeRecord) {
	body, err := bridge.EncodeRecord(r)
	if err != nil && w.err == nil {
		w.err = err
	}
	res := w.exec("INSERT INTO records (body) VALUES (?)", body)
	if w.err != nil {
		return
	}
	if r.ID, w.err = res.LastInsertId(); w.err != nil {
		return
	}
	for _, id := range bridge.Sharers(r) {
		w.exec("INSERT INTO sharers VALUES (?, ?)", string(id), r.ID)
	}
	if len(body) < largeRecord && r.ID%countEvery != 0 {
		return
	}
	w.exec("DELETE FROM records WHERE id <= ?", r.ID-maxRecords)
	w.exec(`DELETE FROM records WHERE id < ? AND id <= (SELECT MAX(id) FROM
		(SELECT id, SUM(LENGTH(body)) OVER (ORDER BY id DESC) AS bytes FROM records) WHERE bytes > ?)`, r.ID, maxRecordBytes)
	w.exec("DELETE FROM sharers WHERE record < (SELECT MIN(id) FROM records)")
}

// Records returns records in their order.
func (l *Ledger) Records(ctx context.Context, f bridge.RecordFilter) ([]sandbox.ChangeRecord, error) {
	q, args := "SELECT id, body FROM records WHERE id >= ?", []any{f.From}
	if f.Until > 0 {
		q += " AND id < ?"
		args = append(args, f.Until)
	}
	if f.Exec != "" {
		q += " AND id IN (SELECT record FROM sharers WHERE exec = ?)"
		args = append(args, string(f.Exec))
	}
	q += " ORDER BY id DESC"
	if f.Limit > 0 {
		q += " LIMIT ?"
		args = append(args, f.Limit)
	}
	rows, err := l.db.QueryContext(ctx, q, args...)
	if err != nil {
		return nil, l.class(err, "read the ledger")
	}
	defer rows.Close()
	var out []sandbox.ChangeRecord
	for rows.Next() {
		var id int64
		var body []byte
		if err := rows.Scan(&id, &body); err != nil {
			return nil, l.class(err, "read the ledger")
		}
		r, err := bridge.DecodeRecord(id, body)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	slices.Reverse(out)
	return out, l.class(rows.Err(), "read the ledger")
}

// Kept returns the packs, the oldest first.
func (l *Ledger) Kept(ctx context.Context) ([]bridge.Pack, error) {
	rows, err := l.db.QueryContext(ctx, "SELECT name, size FROM packs ORDER BY seq")
	if err != nil {
		return nil, l.class(err, "read the ledger")
	}
	defer rows.Close()
	var out []bridge.Pack
	for rows.Next() {
		var p bridge.Pack
		if err := rows.Scan(&p.Name, &p.Size); err != nil {
			return nil, l.class(err, "read the ledger")
		}
		out = append(out, p)
	}
	return out, l.class(rows.Err(), "read the ledger")
}

// Copy writes all of it to a new file.
func (l *Ledger) Copy(ctx context.Context, path string) error {
	_, err := l.db.ExecContext(ctx, "VACUUM INTO ?", path)
	return l.class(err, "copy the ledger")
}

// Close closes the file.
func (l *Ledger) Close() error { return l.db.Close() }

package sandbox

import (
	"context"
	"encoding/json"
	"io"
	"time"
	"unicode/utf8"
)

// ChangeOp says what became of one path of a workspace.
type ChangeOp string

// The operations. A path whose times alone differ has not changed, and neither
// has a file that was written anew with what it held.
const (
	OpCreated  ChangeOp = "created"
	OpModified ChangeOp = "modified" // its content, a link's target, or what kind of thing it is
	OpDeleted  ChangeOp = "deleted"
	OpRenamed  ChangeOp = "renamed" // perhaps modified on the way: see the hashes
	OpMode     ChangeOp = "mode"    // its permissions alone
	// OpTouched is a difference that is no change: times, or the number of a
	// file's links. It is kept, since an undo restores it, and not shown.
	OpTouched ChangeOp = "touched"
)

// ChangeBy says whose doing a change is.
type ChangeBy string

// Whose.
const (
	ByOwn     ChangeBy = "own"     // the exec's alone
	ByShared  ChangeBy = "shared"  // its own or that of another that ran at that time: see Execs
	BySession ChangeBy = "session" // of no exec: background processes, file operations, the host
)

// FileKind is a kind of entry.
type FileKind string

// The kinds. A FIFO, a socket or a device is [KindOther] and never opened.
const (
	KindNone  FileKind = "" // nothing is there
	KindFile  FileKind = "file"
	KindDir   FileKind = "dir"
	KindLink  FileKind = "link"
	KindOther FileKind = "other"
)

// FileState is what was at one path at one moment. The zero value is nothing.
type FileState struct {
	Kind  FileKind `json:"kind,omitempty"`
	Mode  uint32   `json:"mode,omitempty"` // permissions, setuid, setgid, sticky
	Links uint32   `json:"links,omitempty"`
	Size  int64    `json:"size,omitempty"`
	// Times are in nanoseconds since 1970. CTime is negated where the file system's
	// clock could not tell it from the next change, BTime 0 where there is none.
	MTime int64  `json:"mtime_ns,omitempty"`
	CTime int64  `json:"ctime_ns,omitempty"`
	BTime int64  `json:"btime_ns,omitempty"`
	Inode uint64 `json:"inode,omitempty"`
	// SHA256 is a file's content in hex, and "" where that was not read: see
	// [FileState.Unread].
	SHA256 string `json:"sha256,omitempty"`
	Text   bool   `json:"text,omitempty"`   // UTF-8 without NUL
	Target []byte `json:"target,omitempty"` // of a link; of another kind its name, such as "fifo"
}

// Unread reports whether this is a file whose content is not known: it could not
// be read, or not within the budget of its record.
func (s FileState) Unread() bool { return s.Kind == KindFile && s.SHA256 == "" }

// FileChange is what one exec, or the session itself, did to one path.
type FileChange struct {
	Path string // below the workspace; bytes, perhaps not UTF-8
	From string // of [OpRenamed]: the path before
	Op   ChangeOp
	By   ChangeBy
	// Execs are those that may have done it, where it is [ByShared].
	Execs         []ID
	Before, After FileState
}

// Kind is what the path holds, or held.
func (c FileChange) Kind() FileKind {
	if c.After.Kind != KindNone {
		return c.After.Kind
	}
	return c.Before.Kind
}

// changeJSON is a FileChange for users.
type changeJSON struct {
	Path         string   `json:"path"`
	PathBytes    []byte   `json:"path_base64,omitempty"`
	From         string   `json:"from,omitempty"`
	FromBytes    []byte   `json:"from_base64,omitempty"`
	Op           ChangeOp `json:"op"`
	Kind         FileKind `json:"kind"`
	Size         int64    `json:"size"`
	SizeBefore   int64    `json:"size_before"`
	Mode         uint32   `json:"mode,omitempty"`
	ModeBefore   uint32   `json:"mode_before,omitempty"`
	SHA256       string   `json:"sha256,omitempty"`
	SHA256Before string   `json:"sha256_before,omitempty"`
	Unread       bool     `json:"unread,omitempty"`
	Text         bool     `json:"text"`
	By           ChangeBy `json:"by"`
	Execs        []ID     `json:"execs,omitempty"`
}

// MarshalJSON writes the form that is shown. A name that is not UTF-8 has its
// bytes beside it in base64.
func (c FileChange) MarshalJSON() ([]byte, error) {
	j := changeJSON{
		Op: c.Op, Kind: c.Kind(), Size: c.After.Size, SizeBefore: c.Before.Size, Mode: c.After.Mode, ModeBefore: c.Before.Mode,
		SHA256: c.After.SHA256, SHA256Before: c.Before.SHA256, Unread: c.After.Unread(), Text: c.After.Text || c.After.Kind == KindNone && c.Before.Text, By: c.By, Execs: c.Execs,
	}
	j.Path, j.PathBytes = nameJSON(c.Path)
	j.From, j.FromBytes = nameJSON(c.From)
	return json.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON wrote: not all that a change knows.
func (c *FileChange) UnmarshalJSON(b []byte) error {
	var j changeJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*c = FileChange{Path: j.Path, From: j.From, Op: j.Op, By: j.By, Execs: j.Execs}
	if j.PathBytes != nil {
		c.Path = string(j.PathBytes)
	}
	if j.FromBytes != nil {
		c.From = string(j.FromBytes)
	}
	if j.Op != OpDeleted {
		c.After = FileState{Kind: j.Kind, Size: j.Size, Mode: j.Mode, SHA256: j.SHA256, Text: j.Text}
	}
	if j.Op != OpCreated {
		c.Before = FileState{Kind: j.Kind, Size: j.SizeBefore, Mode: j.ModeBefore, SHA256: j.SHA256Before, Text: j.Text}
	}
	return nil
}

func nameJSON(name string) (string, []byte) {
	if utf8.ValidString(name) {
		return name, nil
	}
	return name, []byte(name) // the encoder replaces what is not UTF-8
}

// ChangeMode says how changes are found.
type ChangeMode string

// The modes. The zero value is [ModeFast].
const (
	ModeFast  ChangeMode = "fast"  // by watches; walks where they cannot be trusted
	ModeExact ChangeMode = "exact" // by a walk of the whole workspace
	ModeOff   ChangeMode = "off"
)

// ParseChangeMode reads a mode. Its error is [Invalid].
func ParseChangeMode(s string) (ChangeMode, error) {
	switch m := ChangeMode(s); m {
	case "":
		return ModeFast, nil
	case ModeFast, ModeExact, ModeOff:
		return m, nil
	}
	return "", Errorf(Invalid, "unknown way to find changes %q", s).WithHint("ways are fast, exact and off")
}

// ChangeRecord is what one exec changed, or the session between two.
type ChangeRecord struct {
	ID      int64        `json:"id"` // its place in the session, from 1
	Exec    ID           `json:"exec_id,omitempty"`
	Time    time.Time    `json:"time"`
	Undoes  []int64      `json:"undoes,omitempty"`  // records that this one took back
	Walked  string       `json:"walked,omitempty"`  // why the workspace was walked, where it was
	Partial string       `json:"partial,omitempty"` // what was not looked at
	Changes []FileChange `json:"changes"`
}

// Touched is an entry that may have changed, as it is now.
type Touched struct {
	Path  string
	State FileState // without SHA256 and Text
	Execs []ID      // who may have touched it; "" is the session
	// Whole says that Names are all that the folder holds.
	Whole bool
	Names []string
}

// Want asks for the content of an entry, or for its hash alone.
type Want struct {
	Entry int
	Hash  bool
}

// Observation is what was touched in a workspace since it was last observed.
type Observation struct {
	Entries []Touched
	Walked  string
	Partial string
	// Read hands each content that is wanted to take, in order. r is empty
	// where the hash alone was wanted. sum gives, after r was read to its end,
	// the SHA-256 in hex that the sandbox claims, and "" for what could not be
	// read, or not within the budget.
	Read func(ctx context.Context, wants []Want, take func(i int, r io.Reader, sum func() string) error) error
}

// Budget bounds what a record of changes takes. A zero field is no bound. Beyond
// it a walk ends, which is said as Partial, and contents stay unread, the largest
// first.
type Budget struct {
	Time  time.Duration
	Bytes Bytes // of contents
}

// ObserveOptions say how an observation is made.
type ObserveOptions struct {
	// Exact walks the workspace, whatever the watches say.
	Exact  bool
	Budget Budget
}

// Restore is an entry as it is to be made.
type Restore struct {
	Path   string
	State  FileState
	LinkTo string                        // a file that it is to be another name of, where that is not ""
	Open   func() (io.ReadCloser, error) // content of a file
}

// Tree is a workspace to who records, and takes back, what happens in it.
// Whoever is in it may be hostile: what it says is checked by who implements
// this.
type Tree interface {
	// Observe hands take what was touched since the last call whose take
	// returned nil.
	Observe(ctx context.Context, opts ObserveOptions, take func(*Observation) error) error
	// Restore makes entries as they are described, in order.
	Restore(ctx context.Context, entries []Restore) error
}

// RecordOptions say whom a record of changes is for.
type RecordOptions struct {
	// Exec has just ended; "" is the session itself.
	Exec ID
	// Session names the session, for who is told of changes.
	Session string
	// Beside are execs of the session in other sandboxes, which may have
	// touched the same files.
	Beside []ID
	ObserveOptions
	// Baseline takes what is there for granted: it is no change. Settle does
	// so where nothing is known yet.
	Baseline, Settle bool
	// Brief is for a workspace that goes with its sandbox: nothing is kept.
	Brief bool
	// Mine books all of it to Exec, whoever else could have done it.
	Mine   bool
	Undoes []int64
}

// FileDiff is how one change reads.
type FileDiff struct {
	FileChange
	// Unified is the difference of two texts, from the first "@@" on, and ""
	// where there is none: see Note.
	Unified        string
	Added, Removed int // lines
	// Note says why there is no text: "binary", "not kept", "not read", "too
	// large"; "" is that the content is the same, or no file's.
	Note string
}

// ChangeNews is one change as it is told to subscribers.
type ChangeNews struct {
	Session string
	Exec    ID // "" is the session itself
	Record  int64
	Time    time.Time
	// Provisional says that the exec still runs, or may have done it: its last
	// record tells.
	Provisional bool
	FileChange
	// Lost counts changes before this one that the subscriber was too slow
	// for. The records have them.
	Lost int
	// More says that the next one waits already.
	More bool
}

// newsHead is what news adds to a change.
type newsHead struct {
	Session string    `json:"session"`
	Exec    ID        `json:"exec,omitempty"`
	Record  int64     `json:"record"`
	Time    time.Time `json:"time"`

	Provisional bool `json:"provisional,omitempty"`
	Lost        int  `json:"lost,omitempty"`
	More        bool `json:"more,omitempty"`
}

// MarshalJSON writes one flat object.
func (n ChangeNews) MarshalJSON() ([]byte, error) {
	head, err := json.Marshal(newsHead{n.Session, n.Exec, n.Record, n.Time, n.Provisional, n.Lost, n.More})
	if err != nil {
		return nil, err
	}
	change, err := json.Marshal(n.FileChange)
	if err != nil {
		return nil, err
	}
	return append(append(head[:len(head)-1], ','), change[1:]...), nil
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (n *ChangeNews) UnmarshalJSON(b []byte) error {
	var h newsHead
	if err := json.Unmarshal(b, &h); err != nil {
		return err
	}
	n.Session, n.Exec, n.Record, n.Time, n.Provisional, n.Lost, n.More = h.Session, h.Exec, h.Record, h.Time, h.Provisional, h.Lost, h.More
	return json.Unmarshal(b, &n.FileChange)
}

// diffTail is what a diff adds to a change.
type diffTail struct {
	Unified string `json:"diff,omitempty"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	Note    string `json:"note,omitempty"`
}

// MarshalJSON writes a change with its text.
func (d FileDiff) MarshalJSON() ([]byte, error) {
	tail, err := json.Marshal(diffTail{d.Unified, d.Added, d.Removed, d.Note})
	if err != nil {
		return nil, err
	}
	change, err := json.Marshal(d.FileChange)
	if err != nil {
		return nil, err
	}
	return append(append(change[:len(change)-1], ','), tail[1:]...), nil
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (d *FileDiff) UnmarshalJSON(b []byte) error {
	var t diffTail
	if err := json.Unmarshal(b, &t); err != nil {
		return err
	}
	d.Unified, d.Added, d.Removed, d.Note = t.Unified, t.Added, t.Removed, t.Note
	return json.Unmarshal(b, &d.FileChange)
}

package wire

import (
	"encoding/binary"
	"fmt"
)

// The kinds of entry.
const (
	KindGone  byte = iota // nothing is there any more
	KindFile              // a regular file
	KindDir               // a folder
	KindLink              // a symbolic link
	KindOther             // a FIFO, a socket or a device: it is never opened
)

// Entry is one place of the workspace as it was when it was looked at. Its
// names are bytes and need not be UTF-8. It travels in binary, by
// [AppendEntry]: there may be a hundred thousand of them.
type Entry struct {
	Path  string // below the workspace, with slashes; "." is the workspace
	Kind  byte
	Mode  uint32 // permission bits, and setuid, setgid and sticky
	Links uint32
	Size  int64
	// MTime, CTime and BTime are in nanoseconds. CTime is negated where the clock
	// of the file system is too coarse to tell this moment from the next, BTime
	// is 0 where the file system does not know.
	MTime, CTime, BTime int64
	Inode               uint64
	Target              string // of a link; "fifo", "socket" or "device" for what is neither file, folder nor link
	// Actors says who may have touched it: bits into [Reply].Actors.
	Actors uint64
	// Whole says that Names are all that the folder holds: what is not among
	// them is gone.
	Whole bool
	Names []string
	// Keep is of a [Restore]: a file's content stays as it is.
	Keep bool
}

// Limits of an entry, which a decoder holds an agent to.
const (
	maxPath  = 64 << 10
	maxNames = 4 << 20
)

// AppendEntry appends an entry to dst.
func AppendEntry(dst []byte, e *Entry) []byte {
	flags := uint64(e.Kind)
	if e.Whole {
		flags |= 1 << 8
	}
	if e.Keep {
		flags |= 1 << 9
	}
	dst = appendText(dst, e.Path)
	dst = binary.AppendUvarint(dst, flags)
	dst = binary.AppendUvarint(dst, e.Actors)
	if e.Kind != KindGone {
		dst = binary.AppendUvarint(dst, uint64(e.Mode))
		dst = binary.AppendUvarint(dst, uint64(e.Links))
		dst = binary.AppendVarint(dst, e.Size)
		dst = binary.AppendVarint(dst, e.MTime)
		dst = binary.AppendVarint(dst, e.CTime)
		dst = binary.AppendVarint(dst, e.BTime)
		dst = binary.AppendUvarint(dst, e.Inode)
		dst = appendText(dst, e.Target)
	}
	if e.Whole {
		dst = binary.AppendUvarint(dst, uint64(len(e.Names)))
		for _, n := range e.Names {
			dst = appendText(dst, n)
		}
	}
	return dst
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// EntryReader is what [ReadEntry] reads from: a bufio.Reader, say.
type EntryReader interface {
	Read(p []byte) (int, error)
	ReadByte() (byte, error)
}

// entryDecoder remembers the first error.
type entryDecoder struct {
	r   EntryReader
	err error
}

func (d *entryDecoder) uint() uint64 {
	if d.err != nil {
		return 0
	}
	var v uint64
	v, d.err = binary.ReadUvarint(d.r)
	return v
}

func (d *entryDecoder) int() int64 {
	if d.err != nil {
		return 0
	}
	var v int64
	v, d.err = binary.ReadVarint(d.r)
	return v
}

func (d *entryDecoder) text() string {
	n := d.uint()
	if d.err == nil && n > maxPath {
		d.err = fmt.Errorf("%w: a name of %d bytes", ErrFrame, n)
	}
	if d.err != nil {
		return ""
	}
	b := make([]byte, n)
	for got := 0; got < len(b) && d.err == nil; {
		var m int
		m, d.err = d.r.Read(b[got:])
		got += m
		if got == len(b) {
			d.err = nil
		}
	}
	return string(b)
}

// ReadEntry reads one entry. It returns the reader's error where that ends
// before an entry does, and one that wraps [ErrFrame] for what no agent sends.
// Its names are as they came: who uses them checks them.
func ReadEntry(r EntryReader) (Entry, error) {
	d := &entryDecoder{r: r}
	e := Entry{Path: d.text()}
	flags := d.uint()
	e.Actors = d.uint()
	e.Kind, e.Whole, e.Keep = byte(flags), flags&(1<<8) != 0, flags&(1<<9) != 0
	if d.err == nil && (e.Kind > KindOther || flags >= 1<<10) {
		d.err = fmt.Errorf("%w: an entry of kind %d", ErrFrame, flags)
	}
	if e.Kind != KindGone {
		e.Mode, e.Links = uint32(d.uint()&0o7777), uint32(min(d.uint(), 1<<31))
		e.Size, e.MTime, e.CTime, e.BTime = d.int(), d.int(), d.int(), d.int()
		e.Inode, e.Target = d.uint(), d.text()
	}
	if d.err == nil && e.Size < 0 {
		d.err = fmt.Errorf("%w: %d bytes in a file", ErrFrame, e.Size)
	}
	if e.Whole {
		n := d.uint()
		if d.err == nil && n > maxNames {
			d.err = fmt.Errorf("%w: a folder of %d entries", ErrFrame, n)
		}
		for i := uint64(0); i < n && d.err == nil; i++ {
			e.Names = append(e.Names, d.text())
		}
	}
	return e, d.err
}

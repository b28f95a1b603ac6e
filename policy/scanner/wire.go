package scanner

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"

	"github.com/caisson-dev/caisson/policy/facts"
	"github.com/caisson-dev/caisson/sandbox"
)

// Bounds of frames. A longer one ends the connection.
const (
	MaxAsk    = 4 << 20
	MaxHello  = 64 << 10
	MaxTables = 4 << 20
	MaxAnswer = 16 << 20
	// MaxSource is the longest source that is scanned at all.
	MaxSource = 1 << 20
)

// Lockdown is how far a scanner could lock itself down. The levels are
// ordered; each has what those below it have.
type Lockdown int

// The levels of lockdown.
const (
	// Open is none: only tests ask for it.
	Open Lockdown = iota + 1
	// Limited has limits on memory, CPU and files, no new privileges, and no
	// capabilities.
	Limited
	// Filtered has a system call filter: no sockets, no opening of files, no
	// programs.
	Filtered
	// Isolated has namespaces of its own besides, with no network in them.
	Isolated
)

var lockdownNames = [...]string{Open: "open", Limited: "limited", Filtered: "filtered", Isolated: "isolated"}

// String is the level's name, and "" for the zero value.
func (l Lockdown) String() string {
	if l < 0 || int(l) >= len(lockdownNames) {
		return ""
	}
	return lockdownNames[l]
}

// Hello is the first message to a scanner. The tables follow, encoded, in a
// frame of their own.
type Hello struct {
	Limits facts.Limits `json:"limits"`
	// Namespaces says that the host gave it namespaces of its own.
	Namespaces bool `json:"namespaces"`
	// Require is the least lockdown; a scanner that does not reach it ends.
	Require Lockdown `json:"require"`
}

// Ready answers a [Hello].
type Ready struct {
	Lockdown Lockdown `json:"lockdown"`
	// Steps names what was done, and why what was not done was not.
	Steps []string `json:"steps"`
	Error string   `json:"error,omitempty"`
}

// Ask is one text to be scanned.
type Ask struct {
	ID   uint64     `json:"id"`
	Lang facts.Lang `json:"lang"`
	Code []byte     `json:"code"`
	// Millis is how long the scan may take, of a processor.
	Millis int64 `json:"millis"`
	// Calls asks for the list of calls.
	Calls bool `json:"calls,omitempty"`
	// Start is how it is started.
	Start facts.Start `json:"start,omitzero"`
}

// Answer is what was found in one text.
type Answer struct {
	ID       uint64          `json:"id"`
	Document *facts.Document `json:"document"`
}

// WriteFrame writes one message.
func WriteFrame(w io.Writer, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode frame: %w", err)
	}
	return writeBytes(w, body)
}

func writeBytes(w io.Writer, body []byte) error {
	buf := make([]byte, 4, 4+len(body))
	binary.BigEndian.PutUint32(buf, uint32(len(body)))
	if _, err := w.Write(append(buf, body...)); err != nil {
		return fmt.Errorf("write frame: %w", err)
	}
	return nil
}

// ReadHello reads the first message and the tables behind it.
func ReadHello(r io.Reader) (Hello, *facts.Tables, error) {
	var h Hello
	if err := ReadFrame(r, MaxHello, &h); err != nil {
		return h, nil, err
	}
	body, err := readBytes(r, MaxTables)
	if err != nil {
		return h, nil, err
	}
	t := new(facts.Tables)
	if err := t.UnmarshalBinary(body); err != nil {
		return h, nil, err
	}
	return h, t, nil
}

// ReadFrame reads one message of at most most bytes.
func ReadFrame(r io.Reader, most int, into any) error {
	body, err := readBytes(r, most)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("decode frame: %w", err)
	}
	return nil
}

func readBytes(r io.Reader, most int) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, fmt.Errorf("read frame: %w", err)
	}
	n := binary.BigEndian.Uint32(size[:])
	if int64(n) > int64(most) {
		return nil, sandbox.Errorf(sandbox.Exhausted, "frame of %d bytes, at most %d are allowed", n, most)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, fmt.Errorf("read frame: %w", err)
	}
	return body, nil
}

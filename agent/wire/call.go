package wire

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

// Tools asks for the connections to the socket of an exec that has [Exec].Tools and
// may not have begun. The agent answers with Data frames, as [AppendNumber] writes
// them, one for each connection that came. It stops as [Egress] does.
type Tools struct {
	ID string `json:"id"` // of the exec
}

// What an exec with [Exec].Tools finds in the folder that [StagePath] names: the
// socket, which speaks as [CallFrame] says, and folders of the agent's and the
// client's own files. EnvTools is the variable that has the socket's path.
const (
	ToolsSocket = "tools.sock"
	ToolsBin    = "bin" // the agent's: the program ToolProgram
	ToolsLib    = "lib" // staged by the client: modules of Python and Node
	ToolsSpec   = ToolsLib + "/tools.json"
	EnvTools    = "CAISSON_TOOLS"
	ToolProgram = "tool" // the agent's binary, called so
)

// CallFrame is one piece of what a program and the host say on a connection to an
// exec's tools' socket. On the wire its header is the payload's length and the call's
// number, four bytes each and big-endian, and its type; the payload follows.
//
// A program begins a call by the first frame with a number of its choice that it does
// not use for another that is open. A call's request and its answer are JSON texts, a
// [CallRequest] and a [CallAnswer], in frames of CallPart and a last one of CallLast;
// frames of several calls mix freely. CallCancel, by the program and without a payload,
// gives a call up: no answer comes, unless it is on its way.
type CallFrame struct {
	Type    uint8
	Call    uint32
	Payload []byte // of what was read: valid until the next read
}

// The types of a [CallFrame].
const (
	CallPart   = 1
	CallLast   = 2
	CallCancel = 3
)

// MaxCallPart bounds a frame's payload.
const MaxCallPart = 64 << 10

// MaxCallOpen bounds the calls of one connection that are open at once.
const MaxCallOpen = 1024

const callHeader = 9

// CallRequest is what a program asks. One that is to return a value does so by
// {"return": VALUE} or {"raise": {"kind", "message", "traceback"}} in its place.
type CallRequest struct {
	Tool      string `json:"tool"`
	Arguments any    `json:"arguments,omitempty"` // an object
}

// CallAnswer is what it is answered: Error, or a result that may be null.
type CallAnswer struct {
	Result any        `json:"result"`
	Error  *CallError `json:"error,omitempty"`
}

// CallError says why a call has no result.
type CallError struct {
	Kind    string `json:"kind"` // name of a sandbox.Kind
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// CallReader reads frames. It is for one goroutine.
type CallReader struct {
	r   *bufio.Reader
	hdr [callHeader]byte
	buf []byte
}

// NewCallReader returns a reader of r.
func NewCallReader(r io.Reader) *CallReader { return &CallReader{r: bufio.NewReaderSize(r, 32<<10)} }

// Next reads a frame. Errors: io.EOF between two frames, one that wraps [ErrFrame] for
// a type or a length that does not exist.
func (r *CallReader) Next() (CallFrame, error) {
	if _, err := io.ReadFull(r.r, r.hdr[:]); err != nil {
		return CallFrame{}, err
	}
	size := binary.BigEndian.Uint32(r.hdr[:])
	f := CallFrame{Type: r.hdr[8], Call: binary.BigEndian.Uint32(r.hdr[4:])}
	if size > MaxCallPart || f.Type < CallPart || f.Type > CallCancel || f.Type == CallCancel && size > 0 {
		return CallFrame{}, fmt.Errorf("%w: %d bytes of type %d in a call", ErrFrame, size, f.Type)
	}
	if r.buf == nil {
		r.buf = make([]byte, 0, 4<<10)
	}
	if int(size) > cap(r.buf) {
		r.buf = make([]byte, 0, MaxCallPart)
	}
	f.Payload = r.buf[:size]
	if _, err := io.ReadFull(r.r, f.Payload); err != nil {
		return CallFrame{}, io.ErrUnexpectedEOF
	}
	return f, nil
}

// AppendCall appends a frame to b. The payload is no longer than [MaxCallPart].
func AppendCall(b []byte, f CallFrame) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(f.Payload)))
	b = binary.BigEndian.AppendUint32(b, f.Call)
	return append(append(b, f.Type), f.Payload...)
}

// CallFrames cuts a text into frames, and hands each of them on.
func CallFrames(call uint32, text []byte, send func(CallFrame) error) error {
	for len(text) > MaxCallPart {
		if err := send(CallFrame{Type: CallPart, Call: call, Payload: text[:MaxCallPart]}); err != nil {
			return err
		}
		text = text[MaxCallPart:]
	}
	return send(CallFrame{Type: CallLast, Call: call, Payload: text})
}

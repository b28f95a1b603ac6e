package wire

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Version is the protocol's. An agent refuses a client of another one.
const Version = 1

// Type says what a frame holds. The zero value is no type.
type Type uint8

// The types of frame.
const (
	TypeHello    Type = iota + 1 // [Hello], JSON
	TypeWelcome                  // [Welcome], JSON
	TypeFailure                  // [Failure], JSON: the last frame of its stream
	TypeRequest                  // [Request], JSON: the first frame of a stream
	TypeReply                    // [Reply], JSON: the last frame of its stream
	TypeStarted                  // [Started], JSON
	TypeStdout                   // offset and bytes
	TypeStderr                   // offset and bytes
	TypeEnd                      // [End], JSON: the last frame of its stream
	TypeStdin                    // bytes
	TypeStdinEOF                 // empty
	TypeSignal                   // [Signal], JSON
	TypeCancel                   // empty
	TypeAck                      // [Ack], 16 bytes
	TypeData                     // bytes of a file transfer
	TypeDataEnd                  // empty
	TypeObserved                 // [Observed], JSON
	TypeStart                    // [Start], JSON
	TypeVerdict                  // [Verdict], JSON
	TypeJudge                    // empty: the exec needs its judge
	typeLimit
)

// Limits of a frame's payload.
const (
	// MaxMessage bounds a JSON message. It leaves room for [MaxStage] bytes in
	// base64 and for an environment.
	MaxMessage = 8 << 20
	// MaxAnswer bounds what an agent says in JSON, and all short messages. The
	// host's side decodes it, and decoding takes many times its size in memory.
	MaxAnswer = 1 << 20
	// MaxChunk bounds the raw bytes of one frame.
	MaxChunk = 128 << 10
	// MaxStage bounds all staged files of one exec.
	MaxStage = 4 << 20

	headerSize = 5
	offsetSize = 8
)

// MaxFrame is the longest payload that a frame of type t may have, in bytes,
// and -1 for a type that does not exist.
func MaxFrame(t Type) int {
	switch t {
	case TypeStdout, TypeStderr:
		return MaxChunk + offsetSize
	case TypeStdin, TypeData:
		return MaxChunk
	case TypeStdinEOF, TypeCancel, TypeDataEnd, TypeJudge:
		return 0
	case TypeAck:
		return ackSize
	case TypeWelcome, TypeFailure, TypeReply, TypeStarted, TypeEnd, TypeSignal, TypeObserved, TypeStart, TypeVerdict:
		return MaxAnswer
	default: // a request, or no type at all
	}
	if t > 0 && t < typeLimit {
		return MaxMessage
	}
	return -1
}

// ErrFrame is wrapped by every error that the bytes themselves caused, as
// against the connection that carried them.
var ErrFrame = errors.New("bad frame")

// Frame is one frame as it was read. Payload is valid until the next read from
// the same [Reader].
type Frame struct {
	Type    Type
	Payload []byte
}

// Reader reads frames. It is not safe for concurrent use.
type Reader struct {
	r   io.Reader
	hdr [headerSize]byte
	buf []byte
}

// NewReader returns a Reader of r. It reads no byte beyond the frame that it
// returns, so that r can be handed on between frames.
func NewReader(r io.Reader) *Reader { return &Reader{r: r} }

// Next reads one frame. It returns io.EOF where r ended between two frames,
// io.ErrUnexpectedEOF where it ended inside one, and an error that wraps
// [ErrFrame] for a type or a length that does not exist.
func (r *Reader) Next() (Frame, error) {
	if _, err := io.ReadFull(r.r, r.hdr[:]); err != nil {
		return Frame{}, err
	}
	t, n := Type(r.hdr[0]), binary.BigEndian.Uint32(r.hdr[1:])
	limit := MaxFrame(t)
	if limit < 0 {
		return Frame{}, fmt.Errorf("%w: type %d", ErrFrame, t)
	}
	if int64(n) > int64(limit) {
		return Frame{}, fmt.Errorf("%w: %d bytes in a frame of type %d, at most %d", ErrFrame, n, t, limit)
	}
	buf, err := r.fill(int(n))
	if err != nil {
		return Frame{}, err
	}
	return Frame{Type: t, Payload: buf}, nil
}

// fill reads n bytes. It grows its buffer as bytes arrive and not by what the
// header promised, so that a lie about the length costs the liar.
func (r *Reader) fill(n int) ([]byte, error) {
	const step = 256 << 10
	buf := r.buf[:0]
	for len(buf) < n {
		part := min(n-len(buf), step)
		if cap(buf)-len(buf) < part {
			grown := make([]byte, len(buf), max(2*cap(buf), len(buf)+part))
			copy(grown, buf)
			buf = grown
		}
		m, err := io.ReadFull(r.r, buf[len(buf):len(buf)+part])
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		buf = buf[:len(buf)+m]
	}
	if cap(buf) <= 2*step {
		r.buf = buf
	}
	return buf, nil
}

// Append appends a frame to dst and returns the result. A payload longer than
// [MaxFrame] is a fault of the caller and panics.
func Append(dst []byte, t Type, payload []byte) []byte {
	if len(payload) > MaxFrame(t) {
		panic(fmt.Sprintf("wire: %d bytes for a frame of type %d", len(payload), t))
	}
	dst = append(dst, byte(t))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(payload))) // bounded by MaxFrame above
	return append(dst, payload...)
}

// AppendOutput appends a Stdout or Stderr frame whose bytes begin at offset.
func AppendOutput(dst []byte, t Type, offset int64, data []byte) []byte {
	if len(data) > MaxChunk {
		panic(fmt.Sprintf("wire: %d bytes of output in one frame", len(data)))
	}
	dst = append(dst, byte(t))
	dst = binary.BigEndian.AppendUint32(dst, uint32(offsetSize+len(data)))
	dst = binary.BigEndian.AppendUint64(dst, uint64(offset))
	return append(dst, data...)
}

// Output splits the payload of a Stdout or Stderr frame. data shares its
// memory. An offset that is negative, or so large that the end of data would
// overflow, is an error that wraps [ErrFrame].
func (f Frame) Output() (offset int64, data []byte, err error) {
	if len(f.Payload) < offsetSize {
		return 0, nil, fmt.Errorf("%w: output without an offset", ErrFrame)
	}
	u := binary.BigEndian.Uint64(f.Payload)
	data = f.Payload[offsetSize:]
	const limit = 1 << 62
	if u > limit {
		return 0, nil, fmt.Errorf("%w: offset %d", ErrFrame, u)
	}
	return int64(u), data, nil
}

// Message decodes the JSON payload of f into v. Its errors wrap [ErrFrame].
func (f Frame) Message(v any) error {
	if err := json.Unmarshal(f.Payload, v); err != nil {
		return fmt.Errorf("%w: type %d: %w", ErrFrame, f.Type, err)
	}
	return nil
}

// WriteMessage writes v as one frame in one Write.
func WriteMessage(w io.Writer, t Type, v any) error {
	b, err := AppendMessage(nil, t, v)
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

// AppendMessage appends v as one frame to dst. A message that is too long is an
// error that wraps [ErrFrame].
func AppendMessage(dst []byte, t Type, v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return dst, fmt.Errorf("encode frame of type %d: %w", t, err)
	}
	if len(b) > MaxFrame(t) {
		return dst, fmt.Errorf("%w: message of %d bytes, at most %d", ErrFrame, len(b), MaxFrame(t))
	}
	if dst == nil {
		dst = make([]byte, 0, headerSize+len(b))
	}
	return Append(dst, t, b), nil
}

// WriteFrame writes one frame of raw bytes in one Write.
func WriteFrame(w io.Writer, t Type, payload []byte) error {
	_, err := w.Write(Append(make([]byte, 0, headerSize+len(payload)), t, payload))
	return err
}

// DataWriter cuts a stream of bytes into Data frames on W, each in one Write. The
// zero value is of no use.
type DataWriter struct{ W io.Writer }

// Write writes all of p, in as many frames as that takes.
func (d DataWriter) Write(p []byte) (int, error) {
	n := 0
	for len(p) > 0 {
		part := p[:min(len(p), MaxChunk)]
		if err := WriteFrame(d.W, TypeData, part); err != nil {
			return n, err
		}
		n += len(part)
		p = p[len(part):]
	}
	return n, nil
}

// AppendNumber appends a Data frame that holds a number.
func AppendNumber(dst []byte, n uint32) []byte {
	return Append(dst, TypeData, binary.BigEndian.AppendUint32(nil, n))
}

// Number decodes the frame of [AppendNumber]. Its errors wrap [ErrFrame].
func (f Frame) Number() (uint32, error) {
	if f.Type != TypeData || len(f.Payload) != 4 {
		return 0, fmt.Errorf("%w: type %d of %d bytes for a number", ErrFrame, f.Type, len(f.Payload))
	}
	return binary.BigEndian.Uint32(f.Payload), nil
}

const ackSize = 16

// Ack says how many bytes of each output the client has delivered.
type Ack struct {
	Stdout, Stderr int64
}

// AppendAck appends an Ack frame.
func AppendAck(dst []byte, a Ack) []byte {
	var b [ackSize]byte
	binary.BigEndian.PutUint64(b[:8], uint64(a.Stdout))
	binary.BigEndian.PutUint64(b[8:], uint64(a.Stderr))
	return Append(dst, TypeAck, b[:])
}

// Ack decodes an Ack frame. Its errors wrap [ErrFrame].
func (f Frame) Ack() (Ack, error) {
	if len(f.Payload) != ackSize {
		return Ack{}, fmt.Errorf("%w: ack of %d bytes", ErrFrame, len(f.Payload))
	}
	a := Ack{Stdout: int64(binary.BigEndian.Uint64(f.Payload[:8])), Stderr: int64(binary.BigEndian.Uint64(f.Payload[8:]))}
	if a.Stdout < 0 || a.Stderr < 0 {
		return Ack{}, fmt.Errorf("%w: negative ack", ErrFrame)
	}
	return a, nil
}

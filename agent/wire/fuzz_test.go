package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/agent/wire"
)

// FuzzReader reads frames from any bytes. Whatever was read is written again
// and must give the bytes that were consumed; nothing may be longer than its
// type allows.
func FuzzReader(f *testing.F) {
	f.Add(wire.Append(nil, wire.TypeStdin, []byte("abc")))
	f.Add(wire.AppendOutput(nil, wire.TypeStdout, 7, []byte("\x00\xff")))
	f.Add(wire.AppendAck(wire.Append(nil, wire.TypeCancel, nil), wire.Ack{Stdout: 1, Stderr: 2}))
	f.Add([]byte{byte(wire.TypeRequest), 0xff, 0xff, 0xff, 0xff, 0})
	f.Add([]byte{0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		r, written := wire.NewReader(bytes.NewReader(b)), []byte(nil)
		for {
			frame, err := r.Next()
			if err != nil {
				if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, wire.ErrFrame) {
					t.Fatalf("an error of no kind: %v", err)
				}
				if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && len(written) != len(b) {
					t.Fatalf("a clean end after %d of %d bytes", len(written), len(b))
				}
				break
			}
			if len(frame.Payload) > wire.MaxFrame(frame.Type) {
				t.Fatalf("%d bytes in a frame of type %d", len(frame.Payload), frame.Type)
			}
			written = wire.Append(written, frame.Type, frame.Payload)
			checkOutput(t, frame)
			checkAck(t, frame)
		}
		if !bytes.HasPrefix(b, written) {
			t.Fatalf("read %x, which writes as %x", b, written)
		}
	})
}

// checkOutput decodes a frame as output and encodes it again.
func checkOutput(t *testing.T, f wire.Frame) {
	t.Helper()
	if f.Type != wire.TypeStdout && f.Type != wire.TypeStderr {
		return
	}
	offset, data, err := f.Output()
	if err != nil {
		if !errors.Is(err, wire.ErrFrame) {
			t.Fatalf("output: %v", err)
		}
		return
	}
	if offset < 0 || offset+int64(len(data)) < offset {
		t.Fatalf("offset %d with %d bytes", offset, len(data))
	}
	if len(data) <= wire.MaxChunk {
		again := wire.AppendOutput(nil, f.Type, offset, data)
		if want := wire.Append(nil, f.Type, f.Payload); !bytes.Equal(again, want) {
			t.Fatalf("output %x writes as %x", want, again)
		}
	}
}

func checkAck(t *testing.T, f wire.Frame) {
	t.Helper()
	if f.Type != wire.TypeAck {
		return
	}
	a, err := f.Ack()
	if err != nil {
		if !errors.Is(err, wire.ErrFrame) {
			t.Fatalf("ack: %v", err)
		}
		return
	}
	if again := wire.AppendAck(nil, a); !bytes.Equal(again, wire.Append(nil, f.Type, f.Payload)) {
		t.Fatalf("ack %+v writes as %x", a, again)
	}
}

// FuzzMessages decodes any JSON as each message. What decodes must encode, and
// decode to the same again.
func FuzzMessages(f *testing.F) {
	for _, v := range messages() {
		b, err := json.Marshal(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"exec":{"stage":[{"data":"AA=="}],"argv":[null]},"op":"exec"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		for i := range messages() {
			first, second := messages()[i], messages()[i]
			if err := (wire.Frame{Type: wire.TypeRequest, Payload: b}).Message(first); err != nil {
				if !errors.Is(err, wire.ErrFrame) {
					t.Fatalf("%T: %v", first, err)
				}
				continue
			}
			var w bytes.Buffer
			if err := wire.WriteMessage(&w, wire.TypeRequest, first); err != nil {
				t.Fatalf("%T: %v", first, err)
			}
			frame, err := wire.NewReader(&w).Next()
			if err != nil {
				t.Fatal(err)
			}
			if err := frame.Message(second); err != nil {
				t.Fatalf("%T: %v", first, err)
			}
			a, _ := json.Marshal(first)
			z, _ := json.Marshal(second)
			if !bytes.Equal(a, z) {
				t.Fatalf("%T: %s\nbecame %s", first, a, z)
			}
		}
	})
}

func messages() []any {
	return []any{
		&wire.Hello{}, &wire.Welcome{}, &wire.Failure{}, &wire.Request{}, &wire.Reply{}, &wire.Started{}, &wire.End{}, &wire.Signal{},
	}
}

func TestFrames(t *testing.T) {
	t.Parallel()
	hello := wire.Hello{Version: 1, Secret: []byte{0, 255}, Claim: &wire.Claim{UID: 5, Env: []string{"A=b"}}, Lease: wire.Lease{ID: "x", Keep: true}}
	var w bytes.Buffer
	if err := wire.WriteMessage(&w, wire.TypeHello, hello); err != nil {
		t.Fatal(err)
	}
	if err := wire.WriteFrame(&w, wire.TypeCancel, nil); err != nil {
		t.Fatal(err)
	}
	r := wire.NewReader(&w)
	f, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	var got wire.Hello
	if err := f.Message(&got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(hello, got); diff != "" {
		t.Error(diff)
	}
	if f, err = r.Next(); err != nil || f.Type != wire.TypeCancel || len(f.Payload) != 0 {
		t.Errorf("%+v, %v", f, err)
	}
	if _, err = r.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

// A lie about the length costs the liar: nothing is set aside for bytes that do
// not come.
func TestGiantFrameCostsNothing(t *testing.T) {
	t.Parallel()
	giant := []byte{byte(wire.TypeRequest), 0, 0x7f, 0xff, 0xff}
	allocs := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := wire.NewReader(bytes.NewReader(giant)).Next(); !errors.Is(err, io.ErrUnexpectedEOF) {
				b.Fatal(err)
			}
		}
	})
	if n := allocs.AllocedBytesPerOp(); n > 1<<20 {
		t.Errorf("%d bytes for a frame that never came", n)
	}
	for _, b := range [][]byte{{byte(wire.TypeRequest), 0xff, 0, 0, 0}, {200, 0, 0, 0, 0}, {byte(wire.TypeAck), 0, 0, 0, 17}, {byte(wire.TypeEnd), 0, 0x20, 0, 0}} {
		if _, err := wire.NewReader(bytes.NewReader(b)).Next(); !errors.Is(err, wire.ErrFrame) {
			t.Errorf("%x: %v", b, err)
		}
	}
}

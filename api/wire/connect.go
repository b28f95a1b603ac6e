package wire

import (
	"encoding/binary"
	"encoding/json"

	"github.com/caisson-dev/caisson/sandbox"
)

// A run over a WebSocket, at [ConnectPath]. The client's first message is a
// [Begin], the server's last one a [Message] of the type [MsgResult]. Between them
// go messages as text, and pieces of streams as bytes: the number of the stream
// in four bytes, the most significant first, and then the piece. What a server
// reads of its client (standard input, contents of files) it asks for: the client
// sends as many pieces as the credit says, of at most [MaxPiece] bytes, and so
// holds up nothing else. Output comes as the client reads it.

// ConnectPath is where a WebSocket is opened.
const ConnectPath = "/v1/connect"

// The streams that every run has. Others have numbers from FirstStream on, which
// the server gives.
const (
	StreamStdin uint32 = iota
	StreamStdout
	StreamStderr
	FirstStream
)

// MaxPiece bounds a piece of a stream that a client sends, and Credit is how many
// a server asks for at once.
const (
	MaxPiece = 32 << 10
	Credit   = 8
)

// Begin says what is wanted: a run of its own, one in a session, or files that
// are put into a session.
type Begin struct {
	Session string         `json:"session,omitempty"`
	Run     *sandbox.Run   `json:"run,omitempty"`
	Start   bool           `json:"start,omitempty"` // in the background
	Put     []sandbox.File `json:"put,omitempty"`   // in the place of Run
	// Submit, in the place of Run, is carried out while nobody waits for it.
	Submit *sandbox.ExecutionOptions `json:"submit,omitempty"`
	// Function, in the place of Run, is kept, and Invoke called.
	Function *sandbox.FunctionOptions `json:"function,omitempty"`
	Invoke   *sandbox.Invocation      `json:"invoke,omitempty"`
	// ShellRun, in the place of Run, runs in the session's Shell.
	Shell    string            `json:"shell,omitempty"`
	ShellRun *sandbox.ShellRun `json:"shell_run,omitempty"`
	// Terminal, in the place of Run, is the exec of the session whose terminal is
	// joined. Stdin is typed into it.
	Terminal sandbox.ID `json:"terminal,omitempty"`
	// Hold, in the place of Run, makes a session that is temporary, of which [MsgMade]
	// tells: once the connection is lost, at whatever moment, it goes.
	Hold *sandbox.SessionOptions `json:"hold,omitempty"`
	// What the client gives and takes.
	Stdin     bool `json:"stdin,omitempty"`
	Stdout    bool `json:"stdout,omitempty"`
	Stderr    bool `json:"stderr,omitempty"`
	Asks      bool `json:"asks,omitempty"`      // it has a person to ask
	Artifacts bool `json:"artifacts,omitempty"` // it takes their contents
	// Descriptors says that the client can open files of the server's process, on one
	// machine and as one user: see [Message.Descriptor]. A small answer is in the Result then.
	Descriptors bool `json:"descriptors,omitempty"`
	Starts      bool `json:"starts,omitempty"` // it is told what is started, as that happens
	// Tools are those that the client answers itself, for a Run that it waits for.
	Tools []sandbox.Tool `json:"tools,omitempty"`
}

// Types of messages. Those of the server, but for the end of a stream, which both
// send:
const (
	MsgWant     = "want"     // Credit more pieces of a stream; with a Ref it is the content of that name
	MsgDrop     = "drop"     // no more of a stream
	MsgAsk      = "ask"      // the Approval, of a person; the answer names the same stream
	MsgAsked    = "asked"    // never mind: somebody else has answered, or nobody will
	MsgCall     = "call"     // a call of a Tool, with its Arguments; the answer names the same stream
	MsgArtifact = "artifact" // the Artifact follows as a stream, once the client has said MsgTake
	MsgEnd      = "end"      // of a stream; with a Problem it is cut off
	MsgStarted  = "started"  // a program is started, or has ended: the Start
	MsgProgress = "progress" // news of an image that is made
	MsgMade     = "made"     // the Session that is held
	MsgResult   = "result"   // what came of it: the Result, the Problem, or both
)

// Those of the client.
const (
	MsgAnswer = "answer" // the Answer, of a call the Result, or the Problem why there is none
	MsgTake   = "take"   // an artifact is taken, or with None is not; and its end was taken too
	MsgCancel = "cancel" // end the run; its result comes nonetheless
	MsgResize = "resize" // the Size of the terminal that is joined
)

// Message is one message. Which fields it has is its type's to say.
type Message struct {
	Type     string                  `json:"type"`
	Stream   uint32                  `json:"stream,omitempty"`
	Credit   int                     `json:"credit,omitempty"`
	Ref      string                  `json:"ref,omitempty"`
	None     bool                    `json:"none,omitempty"`
	Approval *sandbox.Approval       `json:"approval,omitempty"`
	Answer   *sandbox.ApprovalAnswer `json:"answer,omitempty"`
	Artifact *sandbox.Artifact       `json:"artifact,omitempty"`
	// Descriptor is the number, in the server's process, of a file with the Artifact's
	// content that nobody can change any more. A client takes it by opening that, by
	// /proc/PID/fd, before it says so, and nothing follows; else it is offered again.
	Descriptor int               `json:"descriptor,omitempty"`
	Progress   *sandbox.Progress `json:"progress,omitempty"`
	Result     json.RawMessage   `json:"result,omitempty"`
	Problem    *Problem          `json:"problem,omitempty"`
	Size       *Size             `json:"size,omitempty"`
	Start      *sandbox.Start    `json:"start,omitempty"`
	Session    *sandbox.Session  `json:"session,omitempty"`

	Tool      string          `json:"tool,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

// Piece is a piece of a stream as it travels.
func Piece(stream uint32, b []byte) []byte {
	return append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(b)), stream), b...)
}

// ParsePiece reads a piece. Errors: Invalid.
func ParsePiece(b []byte) (stream uint32, piece []byte, err error) {
	if len(b) < 4 {
		return 0, nil, sandbox.Errorf(sandbox.Invalid, "a piece of %d bytes names no stream", len(b))
	}
	return binary.BigEndian.Uint32(b), b[4:], nil
}

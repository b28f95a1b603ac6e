// Package wire is what caisson's host side and its agent say to each other:
// the messages and their framing. It opens no connection and starts nothing.
//
// # Protocol
//
// A connection is any stream of bytes. The client sends one [Hello] frame, the
// agent answers with [Welcome] or with [Failure]. From then on both sides
// speak a multiplexer, and each stream that the client opens is one call:
//
//	client                         agent
//	Request ──────────────────────►
//	        ◄────────────────────── Failure                     (any call)
//	        ◄────────────────────── Reply                       (short calls)
//	Data* DataEnd ────────────────► Reply                       (put)
//	Ack Signal Cancel ────────────► Started (Stdout|Stderr)* End (exec, attach)
//	Stdin* StdinEOF ──────────────► Reply                       (stdin)
//	        ◄────────────────────── Data*                       (egress)
//	Data* DataEnd ◄───────────────► Data* DataEnd               (take)
//
// A frame is one byte of [Type], four bytes of length in network order, and
// that many bytes of payload: JSON for a message, raw bytes for Stdin and
// Data, and an eight-byte offset followed by raw bytes for Stdout and Stderr.
//
// The offset counts the bytes of that output from the exec's start. The agent
// keeps what has not been acknowledged, so that a client that lost its
// connection can attach to the exec by id and go on from the offset it has. A
// stream that ends without End, Reply or Failure broke: that is never success.
//
// Neither side trusts the other with sizes: a frame longer than [MaxFrame] for
// its type is an error before any of it is read.
package wire

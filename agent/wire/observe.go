package wire

// Observe asks what of the workspace was touched since it was last asked.
//
//	agent   Data*                entries, by [AppendEntry], as one stream of bytes
//	        Observed
//	client  Data* DataEnd        numbers of entries whose content is wanted: see [AppendWant]
//	agent   Data* DataEnd        each of them: see [Content]
//	client  … once more, or an empty DataEnd: all of it was taken
//	agent   Reply
//
// What is not taken is told again to the next who asks.
type Observe struct {
	// Exact walks the tree, whatever the watches say.
	Exact bool `json:"exact,omitempty"`
	// TimeMS and Bytes bound the looking and the reading. What is beyond them is
	// told as [Observed].Partial or [ContentUnread]. 0 is no bound.
	TimeMS int64 `json:"time_ms,omitempty"`
	Bytes  int64 `json:"bytes,omitempty"`
}

// Observed ends the entries of an [Observe].
type Observed struct {
	Count  int      `json:"count"`
	Actors []string `json:"actors"` // execs by the bit of [Entry].Actors; "" is the session itself, and bit 63 nobody known
	// Walked says why the tree was walked, where it was.
	Walked string `json:"walked,omitempty"`
	// Partial says what was not looked at.
	Partial string `json:"partial,omitempty"`
}

// A content is sent as chunks, each behind its length as an unsigned varint. A
// length of 0 ends it, and one byte follows: [ContentOK], behind which come the
// 32 bytes of its SHA-256, or [ContentUnread].
const (
	ContentUnread byte = iota // it could not be read, or not within the bounds
	ContentOK
)

// MaxWants bounds the numbers in one round.
const MaxWants = 1 << 20

// A want is the number of an entry, doubled, and 1 more where its hash alone is
// wanted; as an unsigned varint.

// Restore asks for entries to be made as they are described:
//
//	client  Data* DataEnd   for each an [Entry], by [AppendEntry], and for a
//	                        file that is not to be a link its content, by the
//	                        form of [Observe]'s without the end's hash
//	agent   Reply           Files counts those that were made
//
// A file with a Target is made another name of that path, and one with Keep
// keeps what it holds: neither has a content. An entry of [KindGone] is removed, a
// folder with all that is in it. Nothing is followed on the way.
type Restore struct{}

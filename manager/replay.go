package manager

import (
	"bytes"
	"strings"

	"github.com/caisson-dev/caisson/internal/lazyregexp"
)

// asks finds what has a terminal answer, as if it had been typed: who it is, where its
// cursor stands, what size, colours and modes it has, what lies in its clipboard.
var asks = lazyregexp.New(`(?s)` + strings.Join([]string{
	`\x05`,                   // ENQ
	`\x1bZ`,                  // DECID
	`\x1b\[[0-?]*[cnx]`,      // DA, DSR, DECREQTPARM
	`\x1b\[[0-?]*\$p`,        // DECRQM
	`\x1b\[[0-?]*\*y`,        // DECRQCRA
	`\x1b\[>[0-9;]*q`,        // XTVERSION
	`\x1b\[\?[0-9;]*[uS]`,    // the keyboard's modes, graphics
	`\x1b\[(1[1-9]|2[01])t`,  // of the window
	`\x1b\[[0-9;]*(\$|&|')w`, // DECRQPSR, DECRQUPSS
	`\x1b\[[0-9;]*['&]\|`,    // DECRQLP
	`\x1b\]([^\x07\x1b;]*;)+\?(;[^\x07\x1b]*)?(\x07|\x1b\\)`, // OSC of colours and the clipboard
	`\x1bP[0-9;]*[$+]q[^\x1b]*\x1b\\`,                        // DECRQSS, XTGETTCAP
	`\x1b_[^\x1b]*\x1b\\`,                                    // APC: graphics
}, "|"))

// unfinished finds a sequence that has not ended.
var unfinished = lazyregexp.New(`(?s)\x1b(\[[ -?]*|[\]P_^X][^\x07\x1b]*\x1b?)?$`)

// replayOf is what of a terminal's output is shown again to who comes later, and how
// many bytes at its end belong to a sequence that goes on in what comes. With cut the
// beginning was not kept, and what may be half a sequence is left out.
func replayOf(b []byte, cut bool) (shown []byte, rest int) {
	if cut {
		if i := bytes.IndexAny(b, "\n\x1b"); i >= 0 {
			b = b[i:]
		}
	}
	if at := unfinished().FindIndex(b); at != nil {
		rest = len(b) - at[0]
		b = b[:at[0]]
	}
	return asks().ReplaceAll(b, nil), rest
}

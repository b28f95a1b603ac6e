package wire

import (
	"io"
	"time"

	"github.com/hashicorp/yamux"
)

// MuxConfig is how both sides set up the multiplexer. It returns a fresh value
// each time, since the library keeps a pointer to it.
func MuxConfig() *yamux.Config {
	c := yamux.DefaultConfig()
	// A connection is a local socket or a relay's pipe: it does not go silent,
	// it breaks. A keep-alive would end sandboxes that are short of CPU.
	c.EnableKeepAlive = false
	c.ConnectionWriteTimeout = 30 * time.Second
	c.MaxStreamWindowSize = 1 << 20
	c.AcceptBacklog = 256
	c.StreamOpenTimeout = 0
	c.LogOutput = io.Discard
	return c
}

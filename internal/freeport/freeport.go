// Package freeport finds addresses for the servers of tests.
package freeport

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
)

// Address returns an address of loopback that is free, and whose port the kernel
// gives to nobody who names none: a server can begin to listen there later, or again.
func Address() string {
	for {
		addr := fmt.Sprintf("127.0.0.1:%d", 15000+rand.IntN(15000)) //nolint:gosec // no secret; below net.ipv4.ip_local_port_range
		if ln, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", addr); err == nil {
			_ = ln.Close()
			return addr
		}
	}
}

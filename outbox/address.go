package outbox

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"

	"github.com/caisson-dev/caisson/sandbox"
)

// errPrivate refuses an address.
var errPrivate = errors.New("the address is not a public one")

// onlyPublic looks at the address that is about to be connected to, after names
// were resolved.
func onlyPublic(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if !sandbox.PublicAddress(at.Addr()) {
		return fmt.Errorf("%w: %s", errPrivate, at.Addr())
	}
	return nil
}

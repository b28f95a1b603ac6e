//go:build linux

package pid1

import (
	"context"
	"fmt"
	"io"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/wire"
)

// connectPatience bounds how long a relay waits for its agent to listen.
const connectPatience = 30 * time.Second

// Connect is the relay: it carries one connection to the agent of the sandbox
// that it runs in over in and out, for a host that shares no folder with the
// sandbox. Its first byte out is [wire.Relayed], and all else is the agent's. It
// returns when the agent has ended the connection; an in that ends is passed on.
func Connect(ctx context.Context, in io.Reader, out io.Writer) error {
	// Nobody in the sandbox may read what passes here.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("set undumpable: %w", err)
	}
	conn, err := dialAgent(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := out.Write([]byte{wire.Relayed}); err != nil {
		return fmt.Errorf("begin to relay: %w", err)
	}
	go func() {
		_, _ = io.Copy(conn, in) // its end, whatever it is, ends this direction
		_ = conn.CloseWrite()
	}()
	if _, err := io.Copy(out, conn); err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	return nil
}

// dialAgent connects to the agent, as soon as it listens.
func dialAgent(ctx context.Context) (*net.UnixConn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", wire.PrivateDir+"/"+wire.SocketName)
		if err == nil {
			return conn.(*net.UnixConn), nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("the agent does not listen: %w", err)
		case <-tick.C:
		}
	}
}

// relayed reports whether a connection comes from a process of this sandbox's
// own, which can only be a relay.
func relayed(conn net.Conn) bool {
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	var peer *unix.Ucred
	if ctlErr := raw.Control(func(fd uintptr) { peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); ctlErr != nil || err != nil {
		return false
	}
	return peer.Pid > 0 // 0: of another PID namespace
}

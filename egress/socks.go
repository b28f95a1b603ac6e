package egress

import (
	"context"
	"encoding/binary"
	"io"
	"net/netip"
)

// What of SOCKS5 (RFC 1928) is spoken: no authentication, and CONNECT.
const (
	socksVersion     = 5
	socksNoAuth      = 0
	socksNoMethod    = 0xff
	socksConnect     = 1
	socksIPv4        = 1
	socksName        = 3
	socksIPv6        = 4
	socksDone        = 0
	socksFailed      = 4 // host unreachable
	socksDenied      = 2 // not allowed by ruleset
	socksUnsupported = 7
)

func (w *Way) serveSOCKS(ctx context.Context, in *inside) {
	host, port, ok := readSOCKS(in)
	if !ok {
		return
	}
	l, t, err := w.reach(ctx, host, port)
	if err != nil {
		code := byte(socksFailed)
		if isRefused(err) {
			code = socksDenied
		}
		answerSOCKS(in, code)
		return
	}
	if answerSOCKS(in, socksDone) {
		w.tunnel(ctx, in, l, t)
		return
	}
	l.end(nil)
}

// answerSOCKS reports whether the program was there to be told.
func answerSOCKS(out io.Writer, code byte) bool {
	_, err := out.Write([]byte{socksVersion, code, 0, socksIPv4, 0, 0, 0, 0, 0, 0})
	return err == nil
}

// readSOCKS reads where to; what is wrong is answered.
func readSOCKS(in *inside) (host string, port int, ok bool) {
	var b [262]byte
	if _, err := io.ReadFull(in, b[:2]); err != nil {
		return "", 0, false
	}
	methods := b[2 : 2+int(b[1])]
	if _, err := io.ReadFull(in, methods); err != nil {
		return "", 0, false
	}
	method := byte(socksNoMethod)
	for _, m := range methods {
		if m == socksNoAuth {
			method = socksNoAuth
		}
	}
	if _, err := in.Write([]byte{socksVersion, method}); err != nil || method == socksNoMethod {
		return "", 0, false
	}
	if _, err := io.ReadFull(in, b[:4]); err != nil || b[0] != socksVersion {
		return "", 0, false
	}
	if b[1] != socksConnect {
		answerSOCKS(in, socksUnsupported)
		return "", 0, false
	}
	size := 0
	switch kind := b[3]; kind {
	case socksIPv4, socksIPv6:
		size = map[byte]int{socksIPv4: 4, socksIPv6: 16}[kind]
	case socksName:
		if _, err := io.ReadFull(in, b[:1]); err != nil {
			return "", 0, false
		}
		size = int(b[0])
	default:
		return "", 0, false
	}
	kind := b[3]
	if _, err := io.ReadFull(in, b[4:4+size+2]); err != nil {
		return "", 0, false
	}
	raw := b[4 : 4+size]
	host = string(raw)
	if addr, isAddr := netip.AddrFromSlice(raw); isAddr && kind != socksName {
		host = addr.Unmap().String()
	}
	return host, int(binary.BigEndian.Uint16(b[4+size:])), true
}

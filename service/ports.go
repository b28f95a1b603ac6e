package service

import (
	"context"
	"net"
)

// DialPort connects to what a session's programs listen on.
func (s *Service) DialPort(ctx context.Context, in string, port int) (net.Conn, error) {
	_, in, err := session(ctx, uses, in)
	if err != nil {
		return nil, err
	}
	return s.cfg.Manager.DialPort(ctx, in, port)
}

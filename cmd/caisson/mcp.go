package main

import (
	"context"

	"github.com/caisson-dev/caisson"
	"github.com/caisson-dev/caisson/mcp"
	"github.com/caisson-dev/caisson/sandbox"
)

// speakMCP is a tool for agents on this process's streams.
func (a *app) speakMCP(ctx context.Context, approve sandbox.ApproveMode) error {
	svc, err := a.service(ctx)
	if err != nil {
		return err
	}
	s, err := mcp.New(mcp.Config{Service: svc, Version: caisson.Version(), Approve: approve, Log: a.log})
	if err != nil {
		return err
	}
	return s.Run(ctx, a.in, a.out)
}

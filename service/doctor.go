package service

import (
	"context"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

// Doctor is what the service needs to be examined: it hands itself over.
type Doctor interface {
	Examine(ctx context.Context, svc api.Examined) ([]api.Check, error)
}

// Doctor examines the engine, the host and this service. Errors: Unsupported
// where the service was made without a doctor, and the context's.
func (s *Service) Doctor(ctx context.Context) ([]api.Check, error) {
	if _, err := may(ctx, governs); err != nil {
		return nil, err
	}
	if s.cfg.Doctor == nil {
		return nil, sandbox.Errorf(sandbox.Unsupported, "this service has no doctor")
	}
	return s.cfg.Doctor.Examine(ctx, s)
}

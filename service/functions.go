package service

import (
	"context"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

// Functions is what the service needs in order to keep and call functions.
type Functions interface {
	api.Functions
	Close() error
}

// functionsFor are the functions, for a call that does something with them. Errors:
// Denied, Unsupported where there are none.
func (s *Service) functionsFor(ctx context.Context, a act) (Functions, error) {
	if _, err := may(ctx, a); err != nil {
		return nil, err
	}
	if s.functions == nil {
		return nil, sandbox.Errorf(sandbox.Unsupported, "this caisson keeps no functions")
	}
	return s.functions, nil
}

// PutFunction keeps a function, or its next version.
func (s *Service) PutFunction(ctx context.Context, o sandbox.FunctionOptions, local sandbox.Local) (sandbox.Function, error) {
	fs, err := s.functionsFor(ctx, uses)
	if err != nil {
		return sandbox.Function{}, err
	}
	return fs.PutFunction(ctx, o, local)
}

// Function returns one function.
func (s *Service) Function(ctx context.Context, name string) (sandbox.Function, error) {
	fs, err := s.functionsFor(ctx, reads)
	if err != nil {
		return sandbox.Function{}, err
	}
	return fs.Function(ctx, name)
}

// Functions returns those that a filter selects, by name.
func (s *Service) Functions(ctx context.Context, f sandbox.FunctionFilter) ([]sandbox.Function, error) {
	fs, err := s.functionsFor(ctx, reads)
	if err != nil {
		return nil, err
	}
	if f.Owner, err = own(sandbox.CallerFrom(ctx), f.Owner); err != nil {
		return nil, err
	}
	return fs.Functions(ctx, f)
}

// RemoveFunction forgets a function, with its sandboxes.
func (s *Service) RemoveFunction(ctx context.Context, name string) error {
	fs, err := s.functionsFor(ctx, uses)
	if err != nil {
		return err
	}
	return fs.RemoveFunction(ctx, name)
}

// InvokeFunction calls a function and waits.
func (s *Service) InvokeFunction(ctx context.Context, call sandbox.Invocation, local sandbox.Local) (sandbox.Invoked, error) {
	fs, err := s.functionsFor(ctx, uses)
	if err != nil {
		return sandbox.Invoked{}, err
	}
	return fs.InvokeFunction(ctx, call, local)
}

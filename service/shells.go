package service

import (
	"context"

	"github.com/caisson-dev/caisson/sandbox"
)

// OpenShell opens a shell in a session.
func (s *Service) OpenShell(ctx context.Context, in, name string, o sandbox.ShellOptions) (sandbox.Shell, error) {
	who, in, err := session(ctx, uses, in)
	if err != nil {
		return sandbox.Shell{}, err
	}
	var local sandbox.Local
	if err := s.onlyOthers(who, o.Approve, &local); err != nil {
		return sandbox.Shell{}, err
	}
	release, err := s.admit(ctx, who, wish{session: in, language: o.Language})
	if err != nil {
		return sandbox.Shell{}, err
	}
	defer release()
	s.tidy(ctx, false)
	sh, err := s.cfg.Manager.OpenShell(ctx, in, name, o, local)
	sh.Session = who.Shown(sh.Session)
	return sh, err
}

// RunShell runs a text in one.
func (s *Service) RunShell(ctx context.Context, in, name string, run sandbox.ShellRun, streams sandbox.Streams) (sandbox.Result, error) {
	who, in, err := session(ctx, uses, in)
	if err != nil {
		return sandbox.Result{}, err
	}
	modes := []sandbox.ApproveMode{run.Approve}
	if run.Open != nil {
		modes = append(modes, run.Open.Approve)
	}
	for _, mode := range modes {
		if err := s.onlyOthers(who, mode, &streams.Local); err != nil {
			return sandbox.Result{}, err
		}
	}
	release, err := s.admit(ctx, who, wish{session: in, waits: true})
	if err != nil {
		return sandbox.Result{}, err
	}
	defer release()
	s.tidy(ctx, false)
	res, err := s.cfg.Manager.RunShell(ctx, in, name, run, streams)
	res.Session = who.Shown(res.Session)
	return res, err
}

// CloseShell ends one.
func (s *Service) CloseShell(ctx context.Context, in, name string) error {
	_, in, err := session(ctx, uses, in)
	if err != nil {
		return err
	}
	return s.cfg.Manager.CloseShell(ctx, in, name)
}

// ListShells returns those that are open.
func (s *Service) ListShells(ctx context.Context, in string) ([]sandbox.Shell, error) {
	who, in, err := session(ctx, reads, in)
	if err != nil {
		return nil, err
	}
	list, err := s.cfg.Manager.ListShells(ctx, in)
	for i := range list {
		list[i].Session = who.Shown(list[i].Session)
	}
	return list, err
}

package e2b

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// endKept is how long a command that has ended can be attached to.
const endKept = 30 * time.Second

// process finds a command by its number or its tag: the newest that runs, or with
// over also one that has ended a moment ago. Errors: NotFound.
func (s *Server) process(ctx context.Context, by *selector, over bool) (sandbox.ExecRecord, error) {
	if by == nil || by.PID == nil && by.Tag == nil {
		return sandbox.ExecRecord{}, sandbox.Errorf(sandbox.Invalid, "no process is selected")
	}
	filter := sandbox.ExecFilter{Session: viewFrom(ctx).Name}
	ours := by.PID != nil && *by.PID >= firstNumber
	switch {
	case by.Tag != nil:
		filter.Labels = sandbox.Labels{labelTag: *by.Tag}
	case ours:
		filter.Labels = sandbox.Labels{labelNumber: strconv.FormatUint(uint64(*by.PID), 10)}
	}
	execs, err := s.svc.ListExecs(ctx, filter)
	if err != nil {
		return sandbox.ExecRecord{}, err
	}
	execs = slices.DeleteFunc(execs, func(e sandbox.ExecRecord) bool {
		ended := !e.Ended.IsZero()
		return !e.Background || e.PID == 0 || by.PID != nil && !ours && uint32(e.PID) != *by.PID || ended && (!over || s.cfg.Now().Sub(e.Ended) > endKept)
	})
	runs, err := s.runs(ctx, filter.Session, execs)
	if err != nil {
		return sandbox.ExecRecord{}, err
	}
	for _, e := range execs {
		if runs[e.ID] {
			return e, nil
		}
	}
	if len(execs) == 0 || !over {
		return sandbox.ExecRecord{}, sandbox.Errorf(sandbox.NotFound, "no such process")
	}
	return execs[0], nil
}

// runs says which of some commands run: what is recorded as running may have ended
// while nobody followed it.
func (s *Server) runs(ctx context.Context, box string, execs []sandbox.ExecRecord) (map[sandbox.ID]bool, error) {
	if !slices.ContainsFunc(execs, func(e sandbox.ExecRecord) bool { return e.Ended.IsZero() }) {
		return nil, nil
	}
	all, err := s.svc.Processes(ctx, box)
	runs := map[sandbox.ID]bool{}
	for _, p := range all {
		runs[p.ID] = p.Running
	}
	return runs, err
}

// attend sees a command to its end after its client has gone, so that it is written
// down when it comes.
func (s *Server) attend(ctx context.Context, box string, id sandbox.ID) {
	if _, is := s.attended.LoadOrStore(id, true); is {
		return
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(s.ending, cancel)
	go func() { // it ends with the command, or with this server
		defer s.attended.Delete(id)
		defer cancel()
		defer stop()
		if _, err := s.svc.AttachExec(ctx, box, id, sandbox.AttachOptions{Follow: true}, nil, nil); err != nil && ctx.Err() == nil {
			s.cfg.Log.Debug("e2b: see a command to its end", "exec", id, "error", err)
		}
	}()
}

// processes lists the commands that run.
func (s *Server) processes(ctx context.Context, _ *empty) (*processList, error) {
	execs, err := s.svc.ListExecs(ctx, sandbox.ExecFilter{Session: viewFrom(ctx).Name, Running: true})
	if err != nil {
		return nil, err
	}
	runs, err := s.runs(ctx, viewFrom(ctx).Name, execs)
	if err != nil {
		return nil, err
	}
	list := &processList{Processes: []processInfo{}}
	for _, e := range execs {
		if !runs[e.ID] || !e.Background || e.PID == 0 || len(e.Argv) == 0 {
			continue
		}
		p := processInfo{PID: uint32(e.PID), Config: processConfig{Cmd: e.Argv[0], Args: e.Argv[1:]}}
		if tag, ok := e.Labels[labelTag]; ok {
			p.Tag = &tag
		}
		list.Processes = append(list.Processes, p)
	}
	return list, nil
}

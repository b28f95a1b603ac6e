package executions

import (
	"context"
	"errors"
	"mime"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

// inSession runs an execution in its session, in the background: it goes on where
// this server ends.
func (s *server) inSession(ctx context.Context, e sandbox.Execution, run sandbox.Run) outcome {
	run.ExecLimits = run.WithDefaults()
	rec, err := s.runner.StartExec(ctx, e.Session, run, sandbox.Local{})
	if errors.Is(context.Cause(ctx), errStopped) && err != nil {
		return outcome{lost: "the server was stopped while it began"}
	}
	if err != nil {
		return refusedOr(e, err)
	}
	return s.follow(ctx, e, run, rec, false)
}

// refusedOr is the outcome of what did not begin: with a result where it was
// refused, as that of a run.
func refusedOr(e sandbox.Execution, err error) outcome {
	out := outcome{err: err}
	if denied, ok := errors.AsType[*sandbox.DeniedError](err); ok {
		out.result = sandbox.Result{ExecID: sandbox.NewID(), Session: e.Session, Decision: denied.Decision, Exit: sandbox.Exit{Reason: sandbox.ReasonDenied}.Coded()}
	}
	return out
}

// follower reads the output of one exec until it ends.
type follower struct {
	s              *server
	e              sandbox.Execution
	rec            sandbox.ExecRecord
	stdout, stderr *capture
	flooded        sync.Once
	flood          chan struct{} // closed once it has put out too much
}

// follow waits for the end of an exec in a session. again says that an earlier
// server has read some of its output.
func (s *server) follow(ctx context.Context, e sandbox.Execution, run sandbox.Run, rec sandbox.ExecRecord, again bool) outcome {
	limits := run.WithDefaults()
	f := &follower{s: s, e: e, rec: rec, flood: make(chan struct{})}
	shelf := s.b.shelf(e.ID)
	open := func(name string) (*capture, error) {
		at := filepath.Join(shelf.dir, name)
		c := &capture{
			keep: int(limits.KeepOutput), most: int64(limits.MaxOutput), over: func() { f.flooded.Do(func() { close(f.flood) }) },
			file: func() (*os.File, error) { return shelf.file(at, os.O_APPEND) },
		}
		if !again {
			return c, nil
		}
		return c, c.resume(at)
	}
	var err error
	if f.stdout, err = open("stdout"); err != nil {
		return outcome{lost: "its output cannot be read: " + err.Error()}
	}
	if f.stderr, err = open("stderr"); err != nil {
		return outcome{lost: "its output cannot be read: " + err.Error()}
	}
	defer func() { _ = errors.Join(f.stdout.close(), f.stderr.close()) }() // what they held is in memory
	end, known := f.wait(ctx)
	if !known {
		return outcome{left: true}
	}
	return f.result(ctx, run, end)
}

// wait reads until the exec has ended; known is false where the server stops
// before that.
func (f *follower) wait(ctx context.Context) (end sandbox.Attached, known bool) {
	reading, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(f.s.accept, stop)()
	done := make(chan struct{})
	defer close(done)
	f.s.work.Go(func() { f.endEarly(ctx, done) })
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		at, err := f.s.runner.AttachExec(reading, f.e.Session, f.rec.ID, sandbox.AttachOptions{Stdout: f.stdout.offset, Stderr: f.stderr.offset, Follow: true}, f.stdout, f.stderr)
		if err == nil {
			f.stdout.gap(at.Stdout)
			f.stderr.gap(at.Stderr)
		}
		if err == nil && at.Ended {
			return at, true
		}
		if reading.Err() != nil {
			return at, false
		}
		if exit, over := f.recorded(reading); over {
			at.Exit = exit
			return at, true
		}
		f.s.b.cfg.Log.Debug("an execution is out of sight, and looked for again", "execution", f.e.ID, "error", err)
		f.s.pause(f.s.accept, pause)
	}
}

// endEarly ends the exec where it is canceled or has put out too much.
func (f *follower) endEarly(ctx context.Context, done <-chan struct{}) {
	select {
	case <-done:
		return
	case <-f.flood:
	case <-ctx.Done():
		if !errors.Is(context.Cause(ctx), errCanceled) {
			return
		}
	}
	for { // it may be out of reach for a moment
		kill, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		err := f.s.runner.KillExec(kill, f.e.Session, f.rec.ID)
		stop()
		if err == nil || errors.Is(err, sandbox.NotFound) {
			return
		}
		f.s.b.cfg.Log.Warn("an execution cannot be ended, and is tried again", "execution", f.e.ID, "error", err)
		select {
		case <-time.After(claimPause):
		case <-done:
			return
		case <-f.s.accept.Done():
			return
		}
	}
}

// recorded says how the exec ended where its agent cannot say it any more.
func (f *follower) recorded(ctx context.Context) (sandbox.Exit, bool) {
	list, err := f.s.runner.ListExecs(ctx, sandbox.ExecFilter{Session: f.e.Session, Labels: labelOf(f.e.ID)})
	switch {
	case err != nil:
		return sandbox.Exit{}, false
	case len(list) == 0:
		return sandbox.Exit{Reason: sandbox.ReasonInfra, Cause: "its session is gone"}.Coded(), true
	}
	return list[0].Exit, !list[0].Ended.IsZero()
}

// result puts together what a run in the foreground would have told.
func (f *follower) result(ctx context.Context, run sandbox.Run, end sandbox.Attached) outcome {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Minute)
	defer cancel()
	r := sandbox.Result{
		ExecID: f.rec.ID, Session: f.e.Session, Language: run.Language, Exit: end.Exit, Duration: end.Usage.Wall, Usage: end.Usage, Sandbox: f.rec.Sandbox,
	}
	if f.rec.Decision != nil {
		r.Decision = *f.rec.Decision
	}
	select {
	case <-f.flood:
		if r.Reason == sandbox.ReasonCanceled {
			r.Exit = sandbox.Exit{Reason: sandbox.ReasonOutput, Signal: r.Signal, Events: r.Events}.Coded()
		}
	default:
	}
	r.Stdout, r.Truncated.Stdout = f.stdout.bytes()
	r.Stderr, r.Truncated.Stderr = f.stderr.bytes()
	f.place(ctx, &r)
	if run.Track != sandbox.ModeOff && r.Reason != sandbox.ReasonInfra {
		records, err := f.s.runner.Changes(ctx, f.e.Session, api.ChangesOptions{Exec: f.rec.ID})
		for _, rec := range records {
			r.Changes = append(r.Changes, rec.Changes...)
		}
		if err != nil && !errors.Is(err, sandbox.Unsupported) {
			r.ChangesError = err.Error()
		}
	}
	if r.Reason != sandbox.ReasonInfra {
		if err := f.collect(ctx, run, &r); err != nil {
			r.ArtifactsError = err.Error()
		}
	}
	return outcome{result: r}
}

// place adds what the session knows of the sandbox that it ran in.
func (f *follower) place(ctx context.Context, r *sandbox.Result) {
	v, err := f.s.runner.Session(ctx, f.e.Session)
	if err != nil {
		return // it has just gone: the rest stands
	}
	for _, box := range v.Sandboxes {
		if box.ID == r.Sandbox {
			r.Language, r.Image, r.Runtime, r.NotEnforced = box.Language, box.Image, box.Runtime, box.NotEnforced
		}
	}
}

// mostArtifacts bounds the files of one collection.
const mostArtifacts = 1000

// collect copies the artifacts of an exec out of its session.
func (f *follower) collect(ctx context.Context, run sandbox.Run, r *sandbox.Result) error {
	files, err := f.s.runner.Files(ctx, f.e.Session)
	if err != nil {
		return err
	}
	found, err := findArtifacts(ctx, files, run.Artifacts, r.Changes)
	shelf := f.s.b.shelf(f.e.ID)
	for i := range found {
		a := &found[i]
		a.Type = mime.TypeByExtension(path.Ext(a.Path))
		if bad := fetch(ctx, files, shelf, a); bad != nil {
			a.Left, err = bad.Error(), errors.Join(err, bad)
		}
	}
	shelf.link(found)
	r.Artifacts = found
	return err
}

func fetch(ctx context.Context, files api.Files, shelf *shelf, a *sandbox.Artifact) error {
	w, err := shelf.take(*a)
	if err != nil {
		return err
	}
	a.Size, err = files.Read(ctx, a.Path, 0, 0, w)
	return errors.Join(err, w.Close())
}

// findArtifacts lists those that match: with no pattern the changes tell.
func findArtifacts(ctx context.Context, files api.Files, patterns []string, changes []sandbox.FileChange) ([]sandbox.Artifact, error) {
	var found []sandbox.Artifact
	seen := map[string]bool{}
	add := func(name string, size int64) error {
		if len(found) == mostArtifacts {
			return sandbox.Errorf(sandbox.Exhausted, "more than %d artifacts", mostArtifacts)
		}
		if !seen[name] {
			seen[name] = true
			found = append(found, sandbox.Artifact{Path: name, Size: size})
		}
		return nil
	}
	if patterns == nil {
		wanted, err := sandbox.ParseArtifactPattern(sandbox.DefaultArtifacts)
		for _, c := range changes {
			if err == nil && c.After.Kind == sandbox.KindFile && wanted.Matches(c.Path) {
				err = add(c.Path, c.After.Size)
			}
		}
		return found, err
	}
	for _, p := range patterns {
		wanted, err := sandbox.ParseArtifactPattern(p)
		if err != nil {
			return found, err
		}
		dir, depth := wanted.Below()
		for i, err := range files.Tree(ctx, dir, depth) {
			if errors.Is(err, sandbox.NotFound) || errors.Is(err, sandbox.Conflict) {
				break // no such folder: nothing matches
			}
			if err != nil {
				return found, err
			}
			if name := path.Clean(i.Path); i.Type == "file" && wanted.Matches(name) {
				if err := add(name, i.Size); err != nil {
					return found, err
				}
			}
		}
	}
	return found, nil
}

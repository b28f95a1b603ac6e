package e2b

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

// A snapshot is a session that nothing runs in: a fork of a sandbox, whose files were
// copied while it was frozen. What is made of it is a fork of it. Labels tell it from a
// sandbox.
const (
	labelSnapshot = labelPrefix + "snapshot" // "true"
	labelOrigin   = labelPrefix + "origin"   // the sandbox
	labelName     = labelPrefix + "name"     // that its creator gave it, or absent
)

// snapshotOf is a snapshot as clients are told of it.
type snapshotOf struct {
	ID    string   `json:"snapshotID"`
	Names []string `json:"names"`
}

// snapshotID is what clients name a snapshot by.
func snapshotID(v sandbox.SessionView) string { return cmp.Or(v.Labels[labelName], v.Name) }

// over reports whether a snapshot's time is: that is counted from when it was made.
func (s *Server) over(v sandbox.SessionView) bool {
	return v.TTL != 0 && s.cfg.Now().After(v.Created.Add(time.Duration(v.TTL)))
}

// snapshots are those of whoever asks, the newest first.
func (s *Server) snapshots(ctx context.Context, more sandbox.Labels) ([]sandbox.SessionView, error) {
	who, labels := sandbox.CallerFrom(ctx), sandbox.Labels{labelSnapshot: "true"}
	maps.Copy(labels, more)
	views, err := s.svc.Sessions(ctx, sandbox.SessionFilter{Owner: &who.Owner, Labels: labels, Running: true})
	views = slices.DeleteFunc(views, s.over)
	slices.SortFunc(views, func(a, b sandbox.SessionView) int {
		return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(b.Name, a.Name))
	})
	return views, err
}

// snapshot finds a snapshot of whoever asks. Errors: NotFound.
func (s *Server) snapshot(ctx context.Context, id string) (sandbox.SessionView, error) {
	views, err := s.snapshots(ctx, nil)
	if err != nil {
		return sandbox.SessionView{}, err
	}
	at := slices.IndexFunc(views, func(v sandbox.SessionView) bool { return snapshotID(v) == id })
	if at < 0 {
		return sandbox.SessionView{}, sandbox.Errorf(sandbox.NotFound, "snapshot %s was not found", id)
	}
	return views[at], nil
}

// createSnapshot keeps the files of a sandbox. One of the same name is replaced.
func (s *Server) createSnapshot(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Name string `json:"name"`
	}
	if err := body(w, r, &in); err != nil {
		return err
	}
	if in.Name == baseTemplate {
		return sandbox.Errorf(sandbox.Invalid, "%s is a template", in.Name).WithHint("choose another name")
	}
	v, err := s.find(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	life := s.cfg.Snapshots
	o := api.ForkOptions{
		Name: "snap-" + string(sandbox.NewID()), Live: true, TTL: &life, Network: &sandbox.Network{},
		Labels: sandbox.Labels{labelSnapshot: "true", labelOrigin: v.Name, labelTemplate: v.Labels[labelTemplate]},
	}
	var old []sandbox.SessionView
	if in.Name != "" {
		o.Labels[labelName] = in.Name
		if old, err = s.snapshots(r.Context(), sandbox.Labels{labelName: in.Name}); err != nil {
			return err
		}
	}
	made, err := s.svc.ForkSession(r.Context(), v.Name, o)
	if err != nil {
		return err
	}
	if err := s.forget(r.Context(), old); err != nil {
		return err
	}
	answer(w, http.StatusCreated, shownSnapshot(sandbox.SessionView{Session: made.Session}))
	return nil
}

func shownSnapshot(v sandbox.SessionView) snapshotOf {
	out := snapshotOf{ID: snapshotID(v), Names: []string{}}
	if name := v.Labels[labelName]; name != "" {
		out.Names = append(out.Names, name)
	}
	return out
}

// listSnapshots answers the snapshots of whoever asks, the newest first.
func (s *Server) listSnapshots(w http.ResponseWriter, r *http.Request) error {
	want, err := wants(r)
	if err != nil {
		return err
	}
	labels := sandbox.Labels{}
	if box := r.URL.Query().Get("sandboxID"); box != "" {
		labels[labelOrigin] = box
	}
	views, err := s.snapshots(r.Context(), labels)
	if err != nil {
		return err
	}
	name := r.URL.Query().Get("name")
	page := []snapshotOf{}
	for _, v := range views {
		if name != "" && name != v.Name && name != snapshotID(v) {
			continue
		}
		at := cursor{v.Created, v.Name}
		if want.from.id != "" && cmp.Or(at.started.Compare(want.from.started), cmp.Compare(at.id, want.from.id)) >= 0 {
			continue
		}
		if len(page) == want.limit {
			w.Header().Set("X-Next-Token", want.last.String())
			break
		}
		page, want.last = append(page, shownSnapshot(v)), at
	}
	answer(w, http.StatusOK, page)
	return nil
}

// deleteTemplate forgets a snapshot. What was made of it goes on.
func (s *Server) deleteTemplate(w http.ResponseWriter, r *http.Request) error {
	v, err := s.snapshot(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	if err := s.forget(r.Context(), []sandbox.SessionView{v}); err != nil {
		return err
	}
	answer(w, http.StatusNoContent, nil)
	return nil
}

// forget removes snapshots. One that is gone is.
func (s *Server) forget(ctx context.Context, snapshots []sandbox.SessionView) error {
	var errs []error
	for _, v := range snapshots {
		if err := s.svc.RemoveSession(context.WithoutCancel(ctx), v.Name, true); !errors.Is(err, sandbox.NotFound) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// ofSnapshot makes a sandbox's session of a snapshot, whose time begins anew.
func (s *Server) ofSnapshot(ctx context.Context, snap sandbox.SessionView, o api.SessionOptions) (sandbox.Session, error) {
	if life := s.cfg.Snapshots; life != 0 {
		life += sandbox.Duration(s.cfg.Now().Sub(snap.Created))
		if err := s.svc.RenewSession(ctx, snap.Name, api.RenewOptions{TTL: &life}); err != nil {
			return sandbox.Session{}, err
		}
	}
	made, err := s.svc.ForkSession(ctx, snap.Name, api.ForkOptions{Name: o.Name, Labels: o.Labels, Env: o.Env, TTL: &o.TTL, Network: &o.Network})
	return made.Session, err
}

// mostForks bounds how many sandboxes are made of one at once.
const mostForks = 20

// forkResult is a sandbox, or why it could not be started.
type forkResult struct {
	Sandbox *reached       `json:"sandbox,omitempty"`
	Error   map[string]any `json:"error,omitempty"`
}

// fork makes sandboxes with the files of one that goes on meanwhile.
func (s *Server) fork(w http.ResponseWriter, r *http.Request) error {
	in := struct {
		Timeout int64 `json:"timeout"`
		Count   int   `json:"count"`
	}{defaultTimeout, 1}
	if err := body(w, r, &in); err != nil {
		return err
	}
	if in.Timeout < 0 || in.Count < 1 || in.Count > mostForks {
		return sandbox.Errorf(sandbox.Invalid, "%s forks for %d seconds", strconv.Itoa(in.Count), in.Timeout).WithHint("ask for 1 to %d", mostForks)
	}
	v, err := s.find(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	life := ttl(in.Timeout, v.Labels)
	of, live := v.Name, true // all are of the first, so that they are the same
	results := make([]forkResult, in.Count)
	var made []*sandbox.Session // nil for one that failed
	for i := range results {
		f, err := s.svc.ForkSession(r.Context(), of, api.ForkOptions{Name: "i" + string(sandbox.NewID()), Live: live, TTL: &life})
		if err != nil && i == 0 {
			return err
		}
		if err != nil {
			results[i].Error, made = failure(err), append(made, nil)
			continue
		}
		made = append(made, &f.Session)
		of, live = made[0].Name, false
	}
	for i, f := range made {
		if f == nil {
			continue
		}
		out, err := s.begun(r, *f)
		if err != nil {
			results[i].Error = failure(err)
			continue
		}
		results[i].Sandbox = &out
	}
	answer(w, http.StatusCreated, results)
	return nil
}

// sweepSnapshots removes those whose time is over.
func (s *Server) sweepSnapshots(ctx context.Context) error {
	views, err := s.svc.Sessions(ctx, sandbox.SessionFilter{Labels: sandbox.Labels{labelSnapshot: "true"}, Running: true})
	if err != nil {
		return err
	}
	return s.forget(ctx, slices.DeleteFunc(views, func(v sandbox.SessionView) bool { return !s.over(v) }))
}

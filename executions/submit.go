package executions

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// Submit remembers an execution of the caller's and returns at once. Its session is
// named as it is kept. What of its files lies beside
// the request is read first. Errors: Invalid, Denied for the callback's address,
// Exhausted where the queue is full.
func (b *Book) Submit(ctx context.Context, o sandbox.ExecutionOptions, local sandbox.Local) (sandbox.Execution, error) {
	if err := b.check(o); err != nil {
		return sandbox.Execution{}, err
	}
	if err := gather(&o, local); err != nil {
		return sandbox.Execution{}, err
	}
	who := sandbox.CallerFrom(ctx)
	e := sandbox.Execution{
		ID: sandbox.NewID(), State: sandbox.ExecutionQueued, Owner: who.Owner, Actor: who.Name, Access: who.Access, Labels: maps.Clone(o.Run.Labels), Session: o.Run.Session,
		Submitted: b.now(), Keep: sandbox.Duration(cmp.Or(time.Duration(o.Keep), b.cfg.Keep)), Run: shown(o.Run),
	}
	if c := o.Callback; c != nil {
		e.Callback = &sandbox.Callback{
			Address: sandbox.ShownAddress(c.URL), Signed: c.Secret != "" || len(b.cfg.Secret) > 0, Heartbeat: c.Heartbeat,
			Delivery: sandbox.NewID(), State: sandbox.CallbackWaiting,
		}
	}
	o.Run.Labels = maps.Clone(o.Run.Labels)
	if o.Run.Labels == nil {
		o.Run.Labels = sandbox.Labels{}
	}
	o.Run.Labels[sandbox.ExecutionLabel] = string(e.ID)
	err := b.cfg.Store.Apply(ctx, sandbox.Transaction{
		SubmitExecution: &sandbox.Submission{Execution: e, Options: o, Most: b.cfg.Queue, MostOf: max(1, b.cfg.Queue/2), Bytes: maxQueued},
		Events:          []sandbox.Event{b.event(e)},
	})
	if err != nil {
		return sandbox.Execution{}, err
	}
	if s := b.server(); s != nil {
		s.wake()
	}
	e.Waits = b.waits(e.Owner)
	return e, nil
}

// check refuses what cannot be carried out, before it is kept.
func (b *Book) check(o sandbox.ExecutionOptions) error {
	given := 0
	for _, is := range []bool{o.Run.Code != "", o.Run.File != "", len(o.Run.Command) > 0} {
		if is {
			given++
		}
	}
	switch {
	case given != 1:
		return sandbox.Errorf(sandbox.Invalid, "%d of code, file and command; exactly one is needed", given).WithHint("give one of them in run")
	case o.Run.Input:
		return sandbox.Errorf(sandbox.Invalid, "an execution has no input that is written to later").WithHint("give its standard input with it, as stdin")
	case o.Stdin != "" && o.StdinBytes != nil:
		return sandbox.Errorf(sandbox.Invalid, "both stdin and stdin_base64").WithHint("give one of them")
	case o.Run.Session != "" && (o.Stdin != "" || o.StdinBytes != nil):
		return sandbox.Errorf(sandbox.Invalid, "an execution in a session has no standard input").WithHint("put the input into a file of the run, and read that")
	case o.Keep < 0 || time.Duration(o.Keep) > MaxKeep:
		return sandbox.Errorf(sandbox.Invalid, "a result cannot be kept for %s", o.Keep).WithHint("keep it for at most %s", MaxKeep)
	case o.Run.Timeout < 0:
		return sandbox.Errorf(sandbox.Invalid, "a timeout of %s", o.Run.Timeout).WithHint("give one above 0, or none for the default")
	}
	if _, ok := o.Run.Labels[sandbox.ExecutionLabel]; ok || len(o.Run.Labels) >= sandbox.MaxLabels {
		return sandbox.Errorf(sandbox.Invalid, "the label %s is caisson's own, beside at most %d others", sandbox.ExecutionLabel, sandbox.MaxLabels-1).WithHint("leave it out")
	}
	for _, p := range o.Run.Artifacts {
		if _, err := sandbox.ParseArtifactPattern(p); err != nil {
			return err
		}
	}
	if err := cmp.Or(o.Run.Labels.Check(), o.Run.Approve.Check()); err != nil {
		return err
	}
	return b.checkCallback(o.Callback)
}

// leastSecret is how long a secret is that has to be one.
const leastSecret = 16

func (b *Book) checkCallback(c *sandbox.CallbackOptions) error {
	switch {
	case c == nil:
		return nil
	case c.Secret != "" && len(c.Secret) < leastSecret:
		return sandbox.Errorf(sandbox.Invalid, "the callback's secret has fewer than %d bytes", leastSecret).WithHint("give a random one, such as 32 hex digits")
	case c.Heartbeat != 0 && time.Duration(c.Heartbeat) < MinHeartbeat:
		return sandbox.Errorf(sandbox.Invalid, "a heartbeat each %s", c.Heartbeat).WithHint("ask for one each second at most")
	}
	return b.cfg.Poster.Check(c.URL)
}

// gather reads what lies beside a request into it, within [MaxSubmission].
func gather(o *sandbox.ExecutionOptions, local sandbox.Local) error {
	left := int64(MaxSubmission) - int64(len(o.Run.Code)+len(o.Stdin)+len(o.StdinBytes))
	for _, files := range []*[]sandbox.File{&o.Run.Files, &o.Run.Stage} {
		*files = slices.Clone(*files)
		for i := range *files {
			f := &(*files)[i]
			if f.Ref != "" && left >= f.Size {
				if err := open(f, local); err != nil {
					return err
				}
			}
			left -= max(int64(len(f.Data)), f.Size)
			f.Size = 0
		}
	}
	if left < 0 {
		return sandbox.Errorf(sandbox.Invalid, "code, files and input are larger than %s", MaxSubmission.Human()).
			WithHint("put large files into a session first, and run it there")
	}
	return nil
}

// open reads a file's content, whose size has to be what was said.
func open(f *sandbox.File, local sandbox.Local) (err error) {
	r, err := local.Open(f.Ref)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	f.Data, err = io.ReadAll(io.LimitReader(r, f.Size+1))
	if err == nil && int64(len(f.Data)) != f.Size {
		err = sandbox.Errorf(sandbox.Invalid, "%s is not %d bytes long", f.Path, f.Size).WithHint("submit it again: it changed meanwhile")
	}
	f.Ref = ""
	return err
}

// shown is what may be shown of a run.
func shown(r sandbox.Run) *sandbox.Run {
	names := make([]string, 0, len(r.Env))
	for _, kv := range r.Env {
		name, _, _ := strings.Cut(kv, "=")
		names = append(names, name)
	}
	if r.Env = names; len(names) == 0 {
		r.Env = nil
	}
	r.Labels = maps.Clone(r.Labels)
	for _, files := range []*[]sandbox.File{&r.Files, &r.Stage} {
		*files = slices.Clone(*files)
		for i := range *files {
			f := &(*files)[i]
			f.Size, f.Data = int64(len(f.Data)), nil
		}
	}
	return &r
}

// eventData is what an event about an execution says.
type eventData struct {
	Execution sandbox.ID             `json:"execution"`
	State     sandbox.ExecutionState `json:"state"`
	Labels    sandbox.Labels         `json:"labels,omitempty"`
	Reason    sandbox.ExitReason     `json:"exit_reason,omitempty"`
	Code      int                    `json:"exit_code,omitempty"`
	Queue     *float64               `json:"queue_ms,omitempty"` // it waited so long, once it runs
}

// event tells the audit where an execution stands.
func (b *Book) event(e sandbox.Execution) sandbox.Event {
	d := eventData{Execution: e.ID, State: e.State, Labels: e.Labels, Reason: e.Exit.Reason, Code: e.Exit.Code}
	if e.State == sandbox.ExecutionRunning {
		d.Queue = new(max(0, float64(e.Started.Sub(e.Submitted).Microseconds())/1000)) // clocks step
	}
	data, err := json.Marshal(d)
	if err != nil {
		data = nil // it is made of texts and numbers, which always encode
	}
	return sandbox.Event{Time: b.now(), Kind: sandbox.EventExecution, Actor: cmp.Or(e.Actor, b.cfg.Actor), Owner: e.Owner, Session: e.Session, Exec: e.Exec, Data: data}
}

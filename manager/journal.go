package manager

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/internal/filelock"
	"github.com/caisson-dev/caisson/manager/box"
	"github.com/caisson-dev/caisson/sandbox"
)

// Store is what the manager needs in order to remember. What it returned from
// is durable.
type Store interface {
	// Apply makes all of a change or nothing of it.
	Apply(ctx context.Context, c sandbox.Transaction) error
	// Session returns a session by name. Errors: NotFound.
	Session(ctx context.Context, name string) (sandbox.SessionView, error)
	// Sessions returns those that a filter selects; of all, also the one-shots that
	// run, under the name "".
	Sessions(ctx context.Context, f sandbox.SessionFilter) ([]sandbox.SessionView, error)
	// Execs returns execs, the newest first.
	Execs(ctx context.Context, f sandbox.ExecFilter) ([]sandbox.ExecRecord, error)
	// ToolSpent returns what an owner has called of a tool since its budget began.
	ToolSpent(ctx context.Context, owner, tool string) (sandbox.ToolSpent, error)
}

// record writes a change with its events. Without a store there is nothing to
// remember and nothing to audit.
func (m *Manager) record(ctx context.Context, c sandbox.Transaction) error {
	if m.cfg.Store == nil {
		return nil
	}
	who := sandbox.CallerFrom(ctx)
	for i := range c.Events {
		e := &c.Events[i]
		e.Time, e.Actor, e.Owner = m.cfg.Now().UTC(), cmp.Or(who.Name, m.cfg.Actor), who.Owner
	}
	return m.cfg.Store.Apply(ctx, c)
}

// recordLate writes what has happened already, whatever became of ctx.
func (m *Manager) recordLate(ctx context.Context, c sandbox.Transaction) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), latePatience)
	defer cancel()
	return m.record(ctx, c)
}

// latePatience bounds the writing of what has happened already.
const latePatience = 30 * time.Second

// data encodes what an event has to say. The types are ours and always encode.
func data(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage(`{"error":"not encodable"}`)
	}
	return b
}

// startedData is what an exec.started event says.
type startedData struct {
	Labels   sandbox.Labels `json:"labels,omitempty"`
	Language string         `json:"language,omitempty"`
	Command  string         `json:"command_sha256"` // of argv, environment, directory and staged code
	Text     []string       `json:"command,omitempty"`
	Dir      string         `json:"dir,omitempty"`
	Role     sandbox.Role   `json:"role,omitempty"`
	UID      int            `json:"uid"`
	Image    string         `json:"image"`
	Limits   sandbox.Limits `json:"limits"`
	sandbox.ExecLimits
	Verdict string   `json:"verdict"`
	Level   string   `json:"level,omitempty"`
	Rules   []string `json:"rules,omitempty"`
	Policy  string   `json:"policy_revision,omitempty"`
	// PolicyMS is how long it took to judge it, StartMS how long it was from being
	// asked for to its start; it is judged within that.
	PolicyMS float64 `json:"policy_ms"`
	StartMS  float64 `json:"start_ms,omitempty"`
	// Approval names who let it pass where policy asked.
	Approval sandbox.ID `json:"approval,omitempty"`
	Approver string     `json:"approver,omitempty"`
	Refused  string     `json:"refused,omitempty"`
}

// judged fills in what was decided.
func (s *startedData) judged(d sandbox.Decision) {
	s.Verdict, s.Level, s.Policy, s.Refused = string(d.Verdict), d.Level.String(), d.PolicyRevision, d.Refused
	for _, f := range d.Findings {
		s.Rules = append(s.Rules, f.ID)
	}
	if a := d.Approval; a != nil {
		s.Approval, s.Approver = a.ID, a.By
	}
}

// endedData is what an exec.ended event says.
type endedData struct {
	Labels   sandbox.Labels     `json:"labels,omitempty"`
	Reason   sandbox.ExitReason `json:"exit_reason"`
	Code     int                `json:"exit_code"`
	Signal   string             `json:"signal,omitempty"`
	Cause    string             `json:"cause,omitempty"`
	Events   []string           `json:"events,omitempty"`
	Duration int64              `json:"duration_ms"`
	CPU      int64              `json:"cpu_ms"`
	Memory   sandbox.Bytes      `json:"peak_memory_bytes"`
	Stdout   int64              `json:"stdout_bytes"`
	Stderr   int64              `json:"stderr_bytes"`
}

// digest names exactly what is run.
func (q ExecQuestion) digest() string {
	h := sha256.New()
	b, _ := json.Marshal([]any{q.Argv, q.Env, q.Dir, q.Role, q.Stage, q.Staged, q.Stdin != nil || q.Terminal}) // plain values always encode
	h.Write(b)
	return hex.EncodeToString(h.Sum(nil))
}

func (m *Manager) startedEvent(r *resolved, b *box.Box, d sandbox.Decision, session string) sandbox.Event {
	s := startedData{
		Labels: r.run.Labels, Language: r.question.Language.Name, Command: r.question.digest(), Dir: r.question.Dir, Role: r.question.Role,
		UID: b.Plan.Spec.Identity.UID, Image: b.Plan.Spec.Image.ID, Limits: b.Plan.Spec.Limits,
		ExecLimits: r.limits, PolicyMS: milliseconds(r.judging), StartMS: milliseconds(time.Since(r.asked)),
	}
	s.judged(d)
	if m.cfg.AuditText {
		s.Text = r.question.Argv
		if r.question.Stage != nil {
			s.Text = append(append([]string(nil), s.Text...), string(r.question.Stage))
		}
	}
	return sandbox.Event{Kind: sandbox.EventExecStarted, Session: session, Sandbox: b.ID, Exec: r.id, Data: data(s)}
}

// milliseconds has a precision of microseconds.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func endedEvent(e sandbox.ExecRecord, exit sandbox.Exit, u sandbox.Usage, stdout, stderr int64) sandbox.Event {
	return sandbox.Event{Kind: sandbox.EventExecEnded, Session: e.Session, Sandbox: e.Sandbox, Exec: e.ID, Data: data(endedData{
		Labels: e.Labels,
		Reason: exit.Reason, Code: exit.Code, Signal: exit.Signal, Cause: exit.Cause, Events: exit.Events,
		Duration: u.Wall.Milliseconds(), CPU: u.CPU.Milliseconds(), Memory: u.PeakMemory, Stdout: stdout, Stderr: stderr,
	})}
}

// deniedEvent is for a run that was refused.
func deniedEvent(r *resolved, d sandbox.Decision, session string) sandbox.Event {
	s := startedData{
		Labels: r.run.Labels, Language: r.question.Language.Name, Command: r.question.digest(), Dir: r.question.Dir, Role: r.question.Role,
		Limits: r.question.Limits, ExecLimits: r.limits, PolicyMS: milliseconds(r.judging),
	}
	s.judged(d)
	return sandbox.Event{Kind: sandbox.EventExecDenied, Session: session, Exec: r.id, Data: data(s)}
}

// lock takes the lock of a name, over all processes of this state folder.
func (m *Manager) lock(ctx context.Context, name string) (func(), error) {
	return filelock.Lock(ctx, m.lockPath(name))
}

// lockSession takes the lock of a session and returns what is known of it then. A
// name is looked up before a lock is made of it. Errors: NotFound.
func (m *Manager) lockSession(ctx context.Context, name string) (v sandbox.SessionView, unlock func(), err error) {
	if v, err = m.running(ctx, name); err != nil {
		return v, nil, err
	}
	if unlock, err = m.lock(ctx, sessionLock(name)); err != nil {
		return v, nil, err
	}
	if v, err = m.running(ctx, name); err != nil {
		if errors.Is(err, sandbox.NotFound) { // its lock went with it, and this is another
			err = errors.Join(err, filelock.Remove(m.lockPath(sessionLock(name))))
		}
		unlock()
		return v, nil, err
	}
	return v, unlock, nil
}

func sessionLock(name string) string { return "session-" + name }

func (m *Manager) lockPath(name string) string { return filepath.Join(m.cfg.LockDir, name) }

// holderPrefix begins the holder of what a session holds: it belongs to the state
// folder that remembers it, and to no process.
const holderPrefix = "state:"

func (m *Manager) sessionHolder() string { return holderPrefix + m.cfg.StateID }

// ofThisState reports whether something belongs to this state folder, and
// whether to any.
func (m *Manager) ofThisState(holder string) (ours, any bool) {
	id, ok := strings.CutPrefix(holder, holderPrefix)
	return ok && id == m.cfg.StateID, ok
}

package monitor

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// state is where a rule stands with one sandbox:
//
//	clear ── condition ──► waiting ── held for For ──► firing ── clear for Hold ──► clear
//	  ▲                       │
//	  └───── not any more ────┘
type state struct {
	since time.Time      // the condition holds since then; zero where it does not
	calm  time.Time      // it is clear since then; zero where it is not
	alert *sandbox.Alert // that fires
}

// judge holds the newest sample of a sandbox against all rules.
func (m *Monitor) judge(ctx context.Context, b *box) {
	rules, err := m.rules()
	if err != nil {
		m.cfg.Log.Error("the rules about alerts cannot be read", "error", err) // the built-in ones, which tests hold
		return
	}
	e := env{Figures: b.reading.Now, Session: b.live.Session, Language: b.live.Language, Execs: len(b.live.Execs)}
	for _, r := range rules {
		s := b.states[r.Name]
		if s == nil {
			s = &state{}
			b.states[r.Name] = s
		}
		at := b.reading.Sample.Time
		switch holds, clear, err := r.look(e); {
		case err != nil:
			m.cfg.Log.Warn("a rule cannot be evaluated", "rule", r.Name, "sandbox", b.live.ID, "error", err)
		case s.alert == nil && s.holding(holds, at, time.Duration(r.For)):
			m.fire(ctx, b, r, s)
		case s.alert != nil && s.calming(clear, at, time.Duration(r.Hold)):
			m.resolve(ctx, s, "")
		}
	}
}

// look evaluates the conditions of a rule.
func (r *rule) look(e env) (holding, clear bool, err error) {
	if holding, err = holds(r.when, e); err != nil || r.clear == nil {
		return holding, !holding, err
	}
	clear, err = holds(r.clear, e)
	return holding, clear, err
}

// holding reports whether a condition has held for long enough.
func (s *state) holding(now bool, at time.Time, long time.Duration) bool {
	return lasted(&s.since, now, at, long)
}

func (s *state) calming(now bool, at time.Time, long time.Duration) bool {
	return lasted(&s.calm, now, at, long)
}

func lasted(since *time.Time, now bool, at time.Time, long time.Duration) bool {
	if !now {
		*since = time.Time{}
		return false
	}
	if since.IsZero() {
		*since = at
	}
	return at.Sub(*since) >= long
}

// fire raises an alert, unless another process has.
func (m *Monitor) fire(ctx context.Context, b *box, r *rule, s *state) {
	a := sandbox.Alert{
		ID: sandbox.NewID(), Rule: r.Name, When: r.When, Severity: r.Severity, Labels: r.Labels, Action: r.Action,
		Sandbox: b.live.ID, Session: b.live.Session, Owner: b.live.Owner, Language: b.live.Language,
		Fired: m.cfg.Now().UTC(), Figures: b.reading.Now, Sample: b.reading.Sample,
	}
	if len(b.live.Execs) > 0 {
		a.Exec = b.live.Execs[0].ID
	}
	err := m.tell(ctx, sandbox.Transaction{FireAlert: &a}, sandbox.EventAlertFired, a)
	if errors.Is(err, sandbox.Conflict) {
		if _, err := m.takeOver(ctx); err != nil {
			m.cfg.Log.Warn("an alert of another process cannot be read", "rule", a.Rule, "error", err)
		}
		return
	}
	if err != nil {
		m.cfg.Log.Error("an alert cannot be kept", "rule", a.Rule, "sandbox", a.Sandbox, "error", err)
		return // the next sample tries again
	}
	s.alert, s.calm = &a, time.Time{}
	level := slog.LevelInfo
	if a.Severity >= sandbox.Critical {
		level = slog.LevelWarn
	}
	m.cfg.Log.Log(ctx, level, "alert", "rule", a.Rule, "severity", a.Severity, "sandbox", a.Sandbox, "session", a.Session, "exec", a.Exec, "when", a.When)
	if a.Action != sandbox.ActNone && a.Sandbox != "" {
		m.tasks.Go(func() { m.act(context.WithoutCancel(ctx), a) })
	}
}

// takeOver takes up the alerts that other processes fired about sandboxes that
// this one samples, and about sessions that have none: whoever sees first that it
// is clear resolves it, and the other process may be gone. All that fire are
// returned.
func (m *Monitor) takeOver(ctx context.Context) ([]sandbox.Alert, error) {
	firing, err := m.cfg.Store.Alerts(ctx, sandbox.AlertFilter{Firing: true})
	for _, a := range firing {
		b := m.boxes[a.Sandbox]
		if a.Sandbox == "" {
			if b = m.quiet[a.Session]; b == nil {
				b = newBox(sandbox.LiveSandbox{Session: a.Session, Owner: a.Owner})
				m.quiet[a.Session] = b
			}
		}
		if b == nil {
			continue
		}
		if s := b.states[a.Rule]; s == nil {
			b.states[a.Rule] = &state{alert: &a}
		} else if s.alert == nil {
			s.alert, s.calm = &a, time.Time{}
		}
	}
	return firing, err
}

// resolve ends an alert; why says what ended it, where that is not its rule.
func (m *Monitor) resolve(ctx context.Context, s *state, why string) {
	a := *s.alert
	a.Resolved, a.Why = m.cfg.Now().UTC(), why
	err := m.tell(ctx, sandbox.Transaction{ResolveAlert: &a}, sandbox.EventAlertResolved, a)
	if err != nil && !errors.Is(err, sandbox.Conflict) { // which says that another process did
		m.cfg.Log.Error("the end of an alert cannot be kept", "rule", a.Rule, "sandbox", a.Sandbox, "error", err)
		return
	}
	*s = state{}
	if err == nil {
		m.cfg.Log.Info("alert resolved", "rule", a.Rule, "sandbox", a.Sandbox, "session", a.Session, "why", a.Why)
	}
}

// tell writes an alert down, with its event and its letters, and then hands it to
// subscribers.
func (m *Monitor) tell(ctx context.Context, c sandbox.Transaction, kind string, a sandbox.Alert) error {
	body, err := json.Marshal(a)
	if err != nil {
		return err
	}
	now := m.cfg.Now().UTC()
	c.Events = []sandbox.Event{{Time: now, Kind: kind, Actor: m.cfg.Actor, Owner: a.Owner, Session: a.Session, Sandbox: a.Sandbox, Exec: a.Exec, Data: body}}
	for _, to := range m.cfg.Receivers {
		c.PostLetters = append(c.PostLetters, sandbox.Letter{To: to, Body: body, Posted: now})
	}
	if err := m.cfg.Store.Apply(ctx, c); err != nil {
		return err
	}
	if len(c.PostLetters) > 0 && m.cfg.Posted != nil {
		m.cfg.Posted()
	}
	m.feed.Tell(a)
	return nil
}

// actPatience bounds an action.
const actPatience = time.Minute

// act does what an alert asks for, and writes down what came of it.
func (m *Monitor) act(ctx context.Context, a sandbox.Alert) {
	ctx, cancel := context.WithTimeout(ctx, actPatience)
	defer cancel()
	data := map[string]string{"alert": string(a.ID), "rule": a.Rule, "action": string(a.Action)}
	if err := m.cfg.Sandboxes.Act(ctx, a.Sandbox, a.Action, "alert "+a.Rule); err != nil {
		data["error"] = err.Error()
		m.cfg.Log.Error("what an alert asks for cannot be done", "rule", a.Rule, "sandbox", a.Sandbox, "action", a.Action, "error", err)
	}
	body, err := json.Marshal(data)
	if err == nil {
		err = m.cfg.Store.Apply(ctx, sandbox.Transaction{Events: []sandbox.Event{{
			Time: m.cfg.Now().UTC(), Kind: sandbox.EventAlertActed, Actor: m.cfg.Actor, Owner: a.Owner, Session: a.Session, Sandbox: a.Sandbox, Exec: a.Exec, Data: body,
		}}})
	}
	if err != nil {
		m.cfg.Log.Error("what an alert did cannot be kept", "rule", a.Rule, "error", err)
	}
}

// strayRest is between two looks for alerts whose sandboxes are gone, and
// strayAge how old the last sample of those is.
const (
	strayRest = 30 * time.Second
	strayAge  = 30 * time.Second
)

// resolveStrays ends alerts that nobody else will: their sandbox ended with a
// process that is gone, or nobody samples it any more.
func (m *Monitor) resolveStrays(ctx context.Context) {
	now := m.cfg.Now()
	if now.Sub(m.strays) < strayRest {
		return
	}
	m.strays = now
	firing, err := m.takeOver(ctx)
	if err != nil || len(firing) == 0 {
		return // the next look tries again
	}
	sampled, err := m.cfg.Store.Readings(ctx, sandbox.ReadingFilter{Live: true, Since: now.Add(-strayAge)})
	if err != nil {
		return
	}
	alive := map[sandbox.ID]bool{"": true} // of a session that is refused: taken over
	for _, r := range sampled {
		alive[r.Sandbox] = true
	}
	for _, a := range firing {
		if !alive[a.Sandbox] && now.Sub(a.Fired) > strayAge && m.boxes[a.Sandbox] == nil {
			m.resolve(ctx, &state{alert: &a}, "nobody samples its sandbox any more")
		}
	}
}

package monitor

import (
	"context"
	"slices"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// denialWindow is how long a refused run counts.
const denialWindow = time.Minute

// countDenials reads how many runs were refused, by whatever process. Of
// one-shots it is known for all together, and of each it is none.
func (m *Monitor) countDenials(ctx context.Context) {
	denied, err := m.cfg.Store.Denied(ctx, m.cfg.Now().Add(-denialWindow))
	if err != nil {
		if ctx.Err() == nil {
			m.cfg.Log.Warn("refused runs cannot be counted", "error", err)
		}
		return
	}
	m.denied = denied
}

// refused are the sessions without a sandbox here of which runs were refused,
// and "" for all one-shots: there is nothing to sample of them, and alerts all
// the same.
func (m *Monitor) refused(live []sandbox.LiveSandbox) []*box {
	for session := range m.denied {
		has := func(l sandbox.LiveSandbox) bool { return l.Session == session }
		if m.quiet[session] == nil && (session == "" || !slices.ContainsFunc(live, has)) {
			m.quiet[session] = newBox(sandbox.LiveSandbox{Session: session})
		}
	}
	var all []*box
	for session, b := range m.quiet {
		f := sandbox.Figures{Denials: float64(m.denied[session])}
		if f.Denials == 0 && !b.fires() {
			delete(m.quiet, session)
			continue
		}
		b.reading.Sample, b.reading.Now = sandbox.Sample{Time: m.cfg.Now()}, f
		all = append(all, b)
	}
	return all
}

func (b *box) fires() bool {
	for _, s := range b.states {
		if s.alert != nil {
			return true
		}
	}
	return false
}

package manager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/egress"
	"github.com/caisson-dev/caisson/manager/box"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/telemetry"
)

// wayOut is an exec's way to the hosts of its list, while this process holds it open.
// nil is that it has none.
type wayOut struct {
	m      *Manager
	way    *egress.Way
	outlet *client.Outlet
	event  sandbox.Event // that tells of its connections
	env    []string      // that leads programs to it; nil is that they know
	over   chan struct{} // closed once all of them have ended
	cancel context.CancelFunc
	once   sync.Once
}

// openWay opens the way out of an exec that is about to begin, where its sandbox is
// to have one: the agent listens, and this process answers until [wayOut.close].
func (m *Manager) openWay(ctx context.Context, b *box.Box, r *resolved) (*wayOut, error) {
	network, whose := r.question.Network, r.id
	if network.Mode != sandbox.NetworkAllow {
		return nil, nil //nolint:nilnil // most have none, and nothing that is asked of it minds
	}
	if r.shell != nil {
		whose = r.shell.record.ID
	}
	cfg := m.cfg.Egress
	cfg.Judge = m.judgeHosts(r.question)
	if session := r.run.Session; session != "" {
		cfg.Network = func(ctx context.Context) (sandbox.Network, error) { // another process may change it
			v, err := m.running(ctx, session)
			return v.Network, err
		}
	}
	cfg.Meters = []*egress.Meter{egress.NewMeter("the exec", network.Limits, 0, m.cfg.Now)}
	if owner := m.meterOf(b.Owner); owner != nil {
		cfg.Meters = append(cfg.Meters, owner)
	}
	cfg.Tell = func(c sandbox.Connection) {
		if c.Verdict == sandbox.Deny {
			b.Refused(m.cfg.Now())
		}
	}
	way, err := egress.New(cfg, network)
	if err != nil {
		return nil, err
	}
	outlet, err := b.Client.Egress(ctx, whose)
	if r.shell != nil && errors.Is(err, sandbox.Conflict) { // whoever opened the shell holds its way
		return nil, nil //nolint:nilnil // as above
	}
	if err != nil {
		return nil, err
	}
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w := &wayOut{
		m: m, way: way, outlet: outlet, over: make(chan struct{}), cancel: cancel,
		event: sandbox.Event{Kind: sandbox.EventExecConnected, Session: r.run.Session, Sandbox: b.ID, Exec: r.id},
	}
	if r.shell == nil { // which has what it was opened with
		w.env = proxyEnv(outlet.Port)
	}
	go w.serve(serving)
	return w, nil
}

// judgeHosts asks the gate about the hosts of an exec.
func (m *Manager) judgeHosts(q ExecQuestion) func(context.Context, egress.Asked) (egress.Answer, error) {
	if q.Background {
		q.Ask = nil // who started it is gone
	}
	return func(ctx context.Context, a egress.Asked) (egress.Answer, error) {
		ctx, done := telemetry.Start(ctx, "gate", slog.String("judged", "host"))
		d, _, err := m.judge(ctx, Question{Host: &HostQuestion{Exec: &q, Host: a.Host, Port: a.Port, Listed: a.Listed}})
		done(err)
		denied, refused := errors.AsType[*sandbox.DeniedError](err)
		switch {
		case refused && d.Refused != "":
			return egress.Answer{Refused: d.Refused}, nil
		case refused:
			return egress.Answer{Refused: denied.Error()}, nil
		case err != nil:
			return egress.Answer{}, err
		}
		return egress.Answer{Approval: d.Approval}, nil
	}
}

// meterOf is what the execs of one owner share; nil is that nothing bounds it. Bytes are
// counted by the day.
func (m *Manager) meterOf(owner string) *egress.Meter {
	q := m.cfg.Quotas.Of(owner)
	limits := sandbox.NetworkLimits{Connections: q.Connections, Bytes: q.Traffic, Rate: q.TrafficRate}
	if limits == (sandbox.NetworkLimits{}) {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.meters == nil {
		m.meters = map[string]*egress.Meter{}
	}
	if m.meters[owner] == nil {
		m.meters[owner] = egress.NewMeter("the owner", limits, 24*time.Hour, m.cfg.Now)
	}
	return m.meters[owner]
}

// serve answers the programs, no more of them at once than an honest agent has.
func (w *wayOut) serve(ctx context.Context) {
	defer close(w.over)
	var serving sync.WaitGroup
	defer serving.Wait()
	defer w.cancel()
	places := make(chan struct{}, client.MaxOutward)
	for {
		places <- struct{}{}
		conn, err := w.outlet.Accept(ctx)
		if err != nil {
			return // the exec has ended, or the connection to its agent
		}
		serving.Go(func() {
			defer func() { <-places }()
			w.way.Serve(ctx, conn)
		})
	}
}

// close ends the way and what goes by it, and writes down what went. Doing so twice
// is fine.
func (w *wayOut) close(ctx context.Context) (err error) {
	if w == nil {
		return nil
	}
	w.once.Do(func() {
		w.cancel()
		_ = w.outlet.Close() // the agent ends it with the exec anyway
		<-w.over
		told, more := w.way.Connections()
		if len(told) == 0 {
			return
		}
		w.event.Data = data(connectedData{Connections: told, LeftOut: more, Totals: w.way.Totals()})
		if err = w.m.recordLate(ctx, sandbox.Transaction{Events: []sandbox.Event{w.event}}); err != nil {
			err = fmt.Errorf("write down the connections of exec %s: %w", w.event.Exec.Short(), err)
		}
	})
	return err
}

// tell closes the way and puts what went by it into a Result.
func (w *wayOut) tell(ctx context.Context, res *sandbox.Result) error {
	if w == nil {
		return nil
	}
	err := w.close(ctx)
	res.Connections, res.ConnectionsLeftOut = w.way.Connections()
	return err
}

// keep holds the way of an exec in the background open until that has ended, or this
// process is about to.
func (w *wayOut) keep(ctx context.Context) {
	if w == nil {
		return
	}
	w.m.tasks.Go(func() {
		<-w.over
		if err := w.close(ctx); err != nil {
			w.m.cfg.Log.Error("an exec's connections are not in the audit", "error", err)
		}
	})
}

// nodeProxy is the name by which [egress.NodeProxy] is staged.
const nodeProxy = ".caisson-proxy.cjs"

// show tells what a command starts of the way, before what the caller sets.
func (w *wayOut) show(cmd *client.Command) {
	if w == nil || w.env == nil {
		return
	}
	cmd.Env = slices.Concat(w.env, []string{"NODE_OPTIONS=--require=" + StagePath(cmd.ID, nodeProxy)}, cmd.Env)
	cmd.Stage = append(slices.Clip(cmd.Stage), StageFile{Name: nodeProxy, Data: egress.NodeProxy})
}

// connectedData is what an exec.connected event says.
type connectedData struct {
	Connections []sandbox.Connection `json:"connections"`
	LeftOut     int                  `json:"connections_left_out,omitempty"`
	egress.Totals
}

// proxyEnv are the variables by which programs find a proxy. That for all protocols
// names HTTP too: clients that cannot speak SOCKS would end at the sight of it.
func proxyEnv(port int) []string {
	address := fmt.Sprintf("http://127.0.0.1:%d", port)
	const own = "localhost,127.0.0.1,::1"
	return []string{
		"http_proxy=" + address, "HTTP_PROXY=" + address, "https_proxy=" + address, "HTTPS_PROXY=" + address,
		"all_proxy=" + address, "ALL_PROXY=" + address, "no_proxy=" + own, "NO_PROXY=" + own,
		"NODE_USE_ENV_PROXY=1",
	}
}

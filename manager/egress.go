package manager

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/egress"
	"github.com/caisson-dev/caisson/manager/box"
	"github.com/caisson-dev/caisson/sandbox"
)

// wayOut is an exec's way to the hosts of its list, while this process holds it open.
// nil is that it has none.
type wayOut struct {
	m      *Manager
	way    *egress.Way
	outlet *client.Outlet
	event  sandbox.Event // that tells of its connections
	env    []string
	over   chan struct{} // closed once all of them have ended
	cancel context.CancelFunc
	once   sync.Once
}

// openWay opens the way out of an exec that is about to begin, where its sandbox is
// to have one: the agent listens, and this process answers until [wayOut.close].
func (m *Manager) openWay(ctx context.Context, b *box.Box, r *resolved) (*wayOut, error) {
	network := r.question.Network
	if network.Mode != sandbox.NetworkAllow || r.shell != nil { // a shell's texts go by the shell's own
		return nil, nil //nolint:nilnil // most have none, and nothing that is asked of it minds
	}
	way, err := egress.New(m.cfg.Egress, network)
	if err != nil {
		return nil, err
	}
	outlet, err := b.Client.Egress(ctx, r.id)
	if err != nil {
		return nil, err
	}
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w := &wayOut{
		m: m, way: way, outlet: outlet, env: proxyEnv(outlet.Port), over: make(chan struct{}), cancel: cancel,
		event: sandbox.Event{Kind: sandbox.EventExecConnected, Session: r.run.Session, Sandbox: b.ID, Exec: r.id},
	}
	go w.serve(serving)
	return w, nil
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
		w.event.Data = data(connectedData{Connections: told, LeftOut: more})
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

// environment is what tells programs of the way, before what the caller sets.
func (w *wayOut) environment(env []string) []string {
	if w == nil {
		return env
	}
	return slices.Concat(w.env, env)
}

// connectedData is what an exec.connected event says.
type connectedData struct {
	Connections []sandbox.Connection `json:"connections"`
	LeftOut     int                  `json:"connections_left_out,omitempty"`
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

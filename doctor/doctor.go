package doctor

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/internal/dockerclient"
	"github.com/caisson-dev/caisson/sandbox"
)

// Engine is what the doctor asks of an engine's client.
type Engine interface {
	Host() string
	Local() bool
	Facts(ctx context.Context) (dockerclient.Facts, error)
}

var _ Engine = (*dockerclient.Client)(nil)

// Config says what to examine. A part that could not be had stands as its
// error.
type Config struct {
	Engine    Engine
	EngineErr error // why there is no client
	// StateDir keeps what outlives a process, RuntimeDir the sockets. The
	// latter's path may have MaxRuntimeDir bytes.
	StateDir      string
	StateErr      error
	RuntimeDir    string
	MaxRuntimeDir int
	// Agent is the path of caisson-agent.
	Agent    string
	AgentErr error
	// Runtimes lists the runtimes. nil: nobody can be asked.
	Runtimes func(context.Context) ([]api.RuntimeInfo, error)
	// Unpacked lists the images that are unpacked, the newest first. nil: none are.
	Unpacked func() ([]sandbox.ImageRoot, error)
	// Watches is how many folders a sandbox watches at most.
	Watches int
	// Broken is why caisson could not be put together.
	Broken error
	// Patience bounds each question that may hang. 0 is 20 s.
	Patience time.Duration
	// Host is how the host is seen. Its zero value is this one.
	Host Host
}

// Doctor examines. It is safe for concurrent use.
type Doctor struct {
	cfg Config
}

// New fills in a Config. It looks at nothing yet.
func New(cfg Config) *Doctor {
	cfg.Patience = cmp.Or(cfg.Patience, 20*time.Second)
	cfg.Host = cfg.Host.withDefaults()
	return &Doctor{cfg: cfg}
}

// finding is a check's answer.
type finding struct {
	status api.CheckStatus
	detail string
	mend   string
}

func ok(format string, args ...any) finding {
	return finding{status: api.CheckOK, detail: fmt.Sprintf(format, args...)}
}

// warn and bad take what mends it before what is wrong.
func warn(mend, format string, args ...any) finding {
	return finding{api.CheckWarning, fmt.Sprintf(format, args...), mend}
}

func bad(mend, format string, args ...any) finding {
	return finding{api.CheckError, fmt.Sprintf(format, args...), mend}
}

// failed is a finding of an error, with its own hint where it has one.
func failed(err error, mend string) finding {
	return bad(cmp.Or(sandbox.HintOf(err), mend), "%v", err)
}

// round is one examination.
type round struct {
	Config
	facts    dockerclient.Facts
	factsErr error        // nil: facts are the engine's
	service  api.Examined // nil where Broken is set
}

// check is one line. Where it needs the engine, run is not called without one,
// nor without a service where it needs that.
type check struct {
	name          string
	engine, whole bool
	run           func(context.Context, *round) finding
}

// checks returns the table, in the order of the answer.
func checks() []check {
	return []check{
		{"runtimes", false, false, runtimes},
		{"engine", false, false, engine},
		{"socket", false, false, socket},
		{"cgroup", true, false, cgroup},
		{"limits", true, false, limits},
		{"storage", true, false, storage},
		{"seccomp", true, false, seccomp},
		{"apparmor", true, false, appArmor},
		{"user_mapping", true, false, userMapping},
		{"user_namespaces", false, false, userNamespaces},
		{"hardening", false, false, hardening},
		{"starts", true, false, starts},
		{"watches", false, false, watches},
		{"oci_runtimes", true, false, ociRuntimes},
		{"clock", true, false, clock},
		{"agent", false, false, agent},
		{"runtime_dir", false, false, runtimeDir},
		{"state_dir", false, false, stateDir},
		{"state_disk", false, false, stateDisk},
		{"engine_disk", true, false, engineDisk},
		{"service", false, false, service},
		{"state_size", false, true, stateSize},
		{"images", true, true, images},
		{"unpacked", false, false, unpacked},
		{"orphans", true, true, orphans},
	}
}

// Examine runs every check. svc is of caisson put together, or nil where Broken
// says why it could not be. The error is the context's.
func (d *Doctor) Examine(ctx context.Context, svc api.Examined) ([]api.Check, error) {
	r := &round{Config: d.cfg, service: svc}
	r.ask(ctx)
	var found []api.Check
	for _, c := range checks() {
		f := r.examine(ctx, c)
		found = append(found, api.Check{Name: c.name, Status: f.status, Detail: f.detail, Mend: f.mend})
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// ask gathers the engine's facts.
func (r *round) ask(ctx context.Context) {
	if r.factsErr = r.EngineErr; r.factsErr != nil {
		return
	}
	if r.Engine == nil {
		r.factsErr = sandbox.Errorf(sandbox.Unavailable, "there is no client of an engine")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, r.Patience)
	defer cancel()
	r.facts, r.factsErr = r.Engine.Facts(ctx)
}

func (r *round) examine(ctx context.Context, c check) finding {
	switch {
	case c.engine && r.factsErr != nil:
		return warn("mend the engine, then ask again: caisson doctor", "not known: the engine does not answer")
	case c.whole && r.service == nil:
		return warn("mend what keeps caisson from starting, then ask again: caisson doctor", "not known: caisson does not start")
	}
	ctx, cancel := context.WithTimeout(ctx, r.Patience)
	defer cancel()
	return c.run(ctx, r)
}

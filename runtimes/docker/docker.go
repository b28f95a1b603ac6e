package docker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/client"

	"github.com/caisson-dev/caisson/internal/dockerclient"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// Name is the runtime's.
const Name = "docker"

// Label prefixes everything that caisson makes in an engine.
const Label = "dev.caisson."

// Labels, behind [Label].
const (
	labelID       = Label + "id"
	labelHandle   = Label + "handle" // version of the handle
	labelHolder   = Label + "holder"
	labelOwner    = Label + "owner" // what an older caisson calls the holder; written for one that sweeps beside this
	labelSession  = Label + "session"
	labelLanguage = Label + "language"
	labelCreated  = Label + "created"
	labelKeep     = Label + "keep"
)

// MaxBase is how many bytes [Config].Base may have: a socket's path has at most
// 107.
const MaxBase = 107 - len("/12345678901234567890123456789012/ready.sock")

// Config says where things are. Engine, Agent and Base are required.
type Config struct {
	Engine *dockerclient.Client
	// Agent is the path of the caisson-agent binary on this host.
	Agent string
	// Base is the folder for the sandboxes' sockets. It is made with mode 0700.
	// It must be short: at most [MaxBase] bytes.
	Base string
	// Remote says that the engine shares no folders with this process: the agent
	// comes in a volume, and each stream to it is an exec of the engine's. It is
	// implied by an engine that is not spoken to over a Unix socket.
	Remote bool
	// Holder names this process on what it makes for a moment, such as a container
	// to copy by: what is left of that when it has died is swept.
	Holder string
}

// Runtime is the docker runtime. It is safe for concurrent use and holds
// nothing that needs closing; the engine client belongs to its maker.
type Runtime struct {
	cfg    Config
	remote bool

	noQuota atomic.Bool // the engine has told that its volumes have none
	noEntry atomic.Bool // its containers cannot be entered from here

	mu     sync.Mutex
	volume *agentVolume // that the agent is in; nil before it is needed
}

var _ runtimes.Runtime = (*Runtime)(nil)

// New checks a Config. It does not connect. Errors: Invalid.
func New(cfg Config) (*Runtime, error) {
	if cfg.Engine == nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "docker runtime: no engine client")
	}
	if !filepath.IsAbs(cfg.Agent) {
		return nil, sandbox.Errorf(sandbox.Invalid, "docker runtime: agent path %q is not absolute", cfg.Agent)
	}
	if !filepath.IsAbs(cfg.Base) || len(cfg.Base) > MaxBase {
		return nil, sandbox.Errorf(sandbox.Invalid, "the folder for sockets, %q, must be an absolute path of at most %d bytes", cfg.Base, MaxBase).
			WithHint("set CAISSON_RUNTIME_DIR to a short path of your own")
	}
	return &Runtime{cfg: cfg, remote: cfg.Remote || !cfg.Engine.Local()}, nil
}

// Capabilities asks the engine what it enforces. Errors: those of
// [dockerclient.Client.API].
func (r *Runtime) Capabilities(ctx context.Context) (runtimes.Capabilities, error) {
	api, err := r.cfg.Engine.API(ctx)
	if err != nil {
		return runtimes.Capabilities{}, err
	}
	info, err := api.Info(ctx)
	if err != nil {
		return runtimes.Capabilities{}, dockerclient.Wrap(err, "ask the engine what it can do")
	}
	level := func(ok bool) runtimes.Level {
		if ok {
			return runtimes.Enforced
		}
		return runtimes.NotEnforced
	}
	has := func(name string) bool {
		return slices.ContainsFunc(info.SecurityOptions, func(o string) bool { return strings.Contains(o, "name="+name) })
	}
	workspaces := []string{string(sandbox.WorkspaceTmpfs), string(sandbox.WorkspaceVolume), string(sandbox.WorkspaceHost)}
	if r.remote || mapsUsers(info) {
		workspaces = workspaces[:2]
	}
	return runtimes.Capabilities{
		Runtime: Name, Engine: "Docker Engine " + info.ServerVersion, Isolation: "container",
		Memory: level(info.MemoryLimit), CPU: level(info.CPUCfsQuota), PIDs: level(info.PidsLimit),
		Tmpfs: runtimes.Enforced, Volumes: runtimes.Watched, NoNetwork: runtimes.Enforced, Egress: true, ReadOnly: runtimes.Enforced,
		Seccomp: level(has("seccomp")), AppArmor: level(has("apparmor")), Users: runtimes.Enforced,
		Starts:    level(dockerclient.Facts{Arch: info.Architecture, Kernel: info.KernelVersion, DefaultRuntime: info.DefaultRuntime, Security: info.SecurityOptions}.SeesStarts() == nil),
		Hardening: level(r.hardens(sandbox.Spec{OCIRuntime: info.DefaultRuntime}) == nil),
		Pause:     true, Sample: true, Branch: true, Claim: !r.remote, LocalStreams: !r.remote, OCIRuntimes: slices.Sorted(maps.Keys(info.Runtimes)),
		Workspaces: workspaces,
	}, nil
}

// mapsUsers reports whether the numbers of users in a container are others outside
// of it: whose a file is, the engine alone can say then.
func mapsUsers(info system.Info) bool {
	return slices.ContainsFunc(info.SecurityOptions, func(o string) bool { return strings.Contains(o, "name=userns") || strings.Contains(o, "name=rootless") })
}

// asksMapped asks the engine for [mapsUsers].
func asksMapped(ctx context.Context, api *client.Client) (bool, error) {
	info, err := api.Info(ctx)
	return mapsUsers(info), dockerclient.Wrap(err, "ask the engine whether it maps users")
}

// folder is the host's side of a sandbox's private folder.
func (r *Runtime) folder(id sandbox.ID) string { return filepath.Join(r.cfg.Base, string(id)) }

// note tells who holds a private folder: a link to nowhere, since one is made
// whole or not at all. It is there before the folder and after it.
func (r *Runtime) note(id sandbox.ID) string { return r.folder(id) + noteSuffix }

// noteSuffix is an older word for a holder, which what is left of then has too.
const noteSuffix = ".owner"

// makeFolder makes a sandbox's private folder, with a note of who holds it.
func (r *Runtime) makeFolder(id sandbox.ID, holder string) (string, error) {
	if err := os.MkdirAll(r.cfg.Base, 0o700); err != nil {
		return "", sandbox.Errorf(sandbox.Denied, "make the folder for sockets: %w", err).
			WithHint("set CAISSON_RUNTIME_DIR to a short path of your own")
	}
	if err := os.Chmod(r.cfg.Base, 0o700); err != nil {
		return "", sandbox.Errorf(sandbox.Denied, "close the folder for sockets: %w", err).
			WithHint("set CAISSON_RUNTIME_DIR to a short path of your own")
	}
	if holder != "" {
		if err := os.Symlink(holder, r.note(id)); err != nil {
			return "", fmt.Errorf("note the holder of a private folder: %w", err)
		}
	}
	dir := r.folder(id)
	err := os.Mkdir(dir, 0o700)
	if err == nil {
		// 0777 behind the base's 0700: the container's root may be another user.
		err = os.Chmod(dir, 0o777)
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("make private folder: %w", err), r.removeFolder(id))
	}
	return dir, nil
}

func (r *Runtime) removeFolder(id sandbox.ID) error {
	if err := errors.Join(os.RemoveAll(r.folder(id)), os.RemoveAll(r.claimFile(id)), os.RemoveAll(r.claimFile(id)+".new")); err != nil {
		return err
	}
	if err := os.Remove(r.note(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

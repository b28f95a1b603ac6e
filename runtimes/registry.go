package runtimes

import (
	"slices"
	"strings"
	"sync"

	"github.com/caisson-dev/caisson/sandbox"
)

// Host is what a runtime is opened with: what caisson has on this host.
type Host struct {
	// Agent is the path of the caisson-agent binary.
	Agent string
	// Base is the folder for the sockets of sandboxes, which all runtimes share:
	// what one puts there is named after a sandbox, or lies in a folder that is
	// named after the runtime. It may not be there yet.
	Base string
	// State is the folder for what outlives sandboxes. It may not be there yet, and
	// each runtime has a folder of its name in it.
	State string
	// Images is the folder of what is kept of images, unpacked ones among it. It may
	// not be there yet.
	Images string
	// Holder names this process on what is made for a moment.
	Holder string
}

// Opener makes a runtime. It starts nothing and asks no engine: whether the
// runtime can be used here, its Capabilities tell.
type Opener func(Host) (Runtime, error)

// Registry has runtimes by name, and opens each at its first use. The first that
// is registered is the one that is meant where none is named. Who uses one gets
// the runtime itself, never something around it, so that what it can do beyond
// the contract ([Pauser], [Brancher], …) is asked of it by a type assertion. It is
// safe for concurrent use.
type Registry struct {
	host Host

	mu  sync.Mutex
	all []*registered
}

// registered is one runtime.
type registered struct {
	name string
	open func() (Runtime, error) // the same each time
}

// NewRegistry returns a registry without a runtime, which opens them with host.
func NewRegistry(host Host) *Registry { return &Registry{host: host} }

// Only returns a registry with one runtime.
func Only(name string, rt Runtime) *Registry {
	return &Registry{all: []*registered{{name, func() (Runtime, error) { return rt, nil }}}}
}

// Auto is no runtime's name: it asks for the best there is.
const Auto = "auto"

// Register adds a runtime. Errors: Invalid for a name that is none, Conflict for
// one that is taken.
func (r *Registry) Register(name string, open Opener) error {
	if !validName(name) || open == nil {
		return sandbox.Errorf(sandbox.Invalid, "%q is not a runtime's name, or comes without the runtime", name).
			WithHint("begin with a letter; lower case letters, digits and - may follow, 32 in all; %s is taken", Auto)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.ContainsFunc(r.all, func(o *registered) bool { return o.name == name }) {
		return sandbox.Errorf(sandbox.Conflict, "there are two runtimes %s", name).WithHint("register one under another name")
	}
	r.all = append(r.all, &registered{name, sync.OnceValues(func() (Runtime, error) { return open(r.host) })})
	return nil
}

// validName reports whether a runtime can have that name, which becomes part of
// paths and of records.
func validName(name string) bool {
	const letters, more = "abcdefghijklmnopqrstuvwxyz", "0123456789-"
	return name != "" && len(name) <= 32 && name != Auto && strings.ContainsRune(letters, rune(name[0])) && strings.Trim(name, letters+more) == ""
}

// Names are those of all runtimes, in the order of their registration.
func (r *Registry) Names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	names := make([]string, len(r.all))
	for i, o := range r.all {
		names[i] = o.name
	}
	return names
}

// Runtime returns a runtime; "" is the first. Errors: Invalid, with the names
// that there are, and those of opening it.
func (r *Registry) Runtime(name string) (Runtime, error) {
	r.mu.Lock()
	all := r.all
	r.mu.Unlock()
	for _, o := range all {
		if o.name == name || name == "" {
			return o.open()
		}
	}
	return nil, sandbox.Errorf(sandbox.Invalid, "there is no runtime %q", name).
		WithHint("--runtime takes one of: %s", strings.Join(r.Names(), ", "))
}

package sandbox

// SessionOptions ask for a session. A zero field is its default.
type SessionOptions struct {
	Name     string   `json:"name,omitempty"` // "" makes one up
	Language string   `json:"language,omitempty"`
	Image    string   `json:"image,omitempty"`
	Idle     Duration `json:"idle_ms,omitempty"` // 0 is never
	TTL      Duration `json:"ttl_ms,omitempty"`  // 0 is never
	Limits   Limits   `json:"limits,omitzero"`
	Network  Network  `json:"network,omitzero"`
	// Workspace is a volume where its kind is unset. Where that is the host, its
	// source is the name of a folder that is configured; volumes are not chosen.
	Workspace Workspace `json:"workspace,omitzero"`
	// Runtime names what makes its sandboxes. "" is the default.
	Runtime string `json:"runtime,omitempty"`
	// OCIRuntime names the engine's runtime, such as "runsc". "" is its default.
	OCIRuntime string `json:"oci_runtime,omitempty"`
	// Env is added to the environment of each exec, KEY=VALUE, below its own, and
	// judged with it.
	Env    []string `json:"env,omitempty"`
	Labels Labels   `json:"labels,omitempty"`
	// Temporary has it go, with all that runs in it, once the process that makes it has
	// died; on a server, also once a connection is lost that something in it was run by, or that
	// it was made over, as those of its clients in Go are.
	Temporary bool `json:"temporary,omitempty"`
}

// ForkOptions say what a fork is. The zero value makes up a name and forks the
// workspace as it is, for which the origin's sandboxes end.
type ForkOptions struct {
	Name     string `json:"name,omitempty"`
	Snapshot string `json:"snapshot,omitempty"` // of the origin: its id, the beginning of it, or its name
	// Live freezes the origin's sandboxes in place of ending them: its files are copied
	// as they are at one moment, and what runs goes on.
	Live bool `json:"live,omitempty"`
	// Labels are the fork's in place of the origin's; nil leaves those.
	Labels Labels `json:"labels,omitempty"`
	// Env is KEY=VALUE, over the origin's.
	Env []string `json:"env,omitempty"`
	// Idle, TTL and Network are the fork's in place of the origin's; nil leaves those.
	Idle    *Duration `json:"idle_ms,omitempty"`
	TTL     *Duration `json:"ttl_ms,omitempty"`
	Network *Network  `json:"network,omitempty"`
}

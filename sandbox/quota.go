package sandbox

// Quota bounds what one owner may have and use at once. A zero field is no bound.
type Quota struct {
	Sandboxes int     `json:"sandboxes,omitempty"`
	Execs     int     `json:"execs,omitempty"`        // that run
	Memory    Bytes   `json:"memory_bytes,omitempty"` // of the limits of all sandboxes
	CPUs      float64 `json:"cpus,omitempty"`         // likewise
	Disk      Bytes   `json:"disk_bytes,omitempty"`   // of the sizes of all sessions' workspaces
	Requests  float64 `json:"requests,omitempty"`     // to a server, in a second
	// By lists of hosts, of all execs together: see [NetworkLimits].
	Connections int   `json:"connections,omitempty"`
	Traffic     Bytes `json:"traffic_bytes,omitempty"` // in a day
	TrafficRate Bytes `json:"traffic_rate_bytes,omitempty"`
}

// Quotas are those of all owners.
type Quotas struct {
	Default Quota            `json:"default,omitzero"`
	Owners  map[string]Quota `json:"owners,omitempty"` // in place of Default
}

// Of is the quota of an owner. The local user has none.
func (q Quotas) Of(owner string) Quota {
	if own, ok := q.Owners[owner]; ok {
		return own
	}
	if owner == "" {
		return Quota{}
	}
	return q.Default
}

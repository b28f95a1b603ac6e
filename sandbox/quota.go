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

// Plus is what both have at once of sandboxes, execs, memory and processors.
func (q Quota) Plus(o Quota) Quota {
	return Quota{Sandboxes: q.Sandboxes + o.Sandboxes, Execs: q.Execs + o.Execs, Memory: q.Memory + o.Memory, CPUs: q.CPUs + o.CPUs}
}

// Quotas are those of all owners.
type Quotas struct {
	Default Quota            `json:"default,omitzero"`
	Owners  map[string]Quota `json:"owners,omitempty"` // in place of Default
	// Total is of all owners together, the local user among them: see
	// [Quota.CheckTotal].
	Total Quota `json:"total,omitzero"`
	// Wait is how long a request waits for room before it is refused. 0 refuses at
	// once.
	Wait Duration `json:"wait_ms,omitempty"`
}

// Bind reports whether there is any bound for what an owner has at once.
func (q Quotas) Bind(owner string) bool {
	own := q.Of(owner)
	return own.atOnce() != (Quota{}) || q.Total != (Quota{})
}

// atOnce has the bounds alone that a request can wait for.
func (q Quota) atOnce() Quota {
	return Quota{Sandboxes: q.Sandboxes, Execs: q.Execs, Memory: q.Memory, CPUs: q.CPUs}
}

// CheckTotal reports whether the quota can be that of all owners together. Errors:
// Invalid.
func (q Quota) CheckTotal() error {
	if q != q.atOnce() {
		return Errorf(Invalid, "of all together there are sandboxes, execs, memory and cpus")
	}
	return nil
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

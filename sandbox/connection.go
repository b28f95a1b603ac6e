package sandbox

import "time"

// Connection is one that an exec asked for where its network is [NetworkAllow].
type Connection struct {
	Host string `json:"host"` // as it was asked for: a name or an address
	Port int    `json:"port"`
	// Address is what was dialled. "" is that nothing was.
	Address string `json:"address,omitempty"`
	// Verdict is [Allow] where the way was open to it, although nobody may have
	// answered, and else [Deny]. Why says what was wrong; it begins with [NotListed]
	// where a list with the host would have let it pass.
	Verdict Verdict `json:"verdict"`
	Why     string  `json:"why,omitempty"`
	// Approval says who let it pass although no list has it. nil is nobody.
	Approval *ApprovedBy `json:"approval,omitempty"`
	// Sent and Received count what passed between this host and the address.
	Sent     Bytes     `json:"sent_bytes"`
	Received Bytes     `json:"received_bytes"`
	Began    time.Time `json:"began"`
	Duration Duration  `json:"duration_ms"`
}

// NotListed begins the Why of a connection to a host that no list has.
const NotListed = "it is not on the list"

// MaxConnections is how many connections of an exec are told one by one. Those
// beyond are counted.
const MaxConnections = 256

package sandbox

// Wall is a limit of a sandbox that stops, whatever a program does, what rules
// find in it. A [Decision] counts those that are enforced.
type Wall string

// The walls. A runtime says of each sandbox which of them it has; whether
// [WallEnvironment] stands is up to each exec.
const (
	WallNetwork     Wall = "network none"      // it can reach nothing but itself
	WallEgress      Wall = "network allow"     // it can reach the hosts of its list and no others, by the proxy alone
	WallEnvironment Wall = "environment empty" // no variable is the caller's
	WallRoot        Wall = "root read-only"    // outside the workspace nothing lasts, and all is the image's
	WallPrivileges  Wall = "no privileges"     // no capabilities, and no way to get any
	WallLimits      Wall = "limits"            // memory, processors, processes and time
)

// Walls are all of them. Nobody alters it.
var Walls = []Wall{WallNetwork, WallEgress, WallEnvironment, WallRoot, WallPrivileges, WallLimits}

// Surroundings say what a text is to run in, for those who judge it. The zero value
// is a sandbox of which nothing is known to hold.
type Surroundings struct {
	Network Network `json:"network"`
	Walls   []Wall  `json:"walls"` // those that are enforced, for this run
	// Writable are the folders in which programs can write.
	Writable  []string      `json:"writable"`
	Workspace WorkspaceKind `json:"workspace"`
	// Session is whose workspace it is, "" where the run has one of its own.
	Session string `json:"session"`
	Limits  Limits `json:"limits"`
}

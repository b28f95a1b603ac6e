// Package api is what caisson does for its users, in roles: the command line
// and every server speak them, in process or over a wire. Who calls caisson
// takes the roles that it needs. The package holds no logic and knows no
// implementation.
package api

// Service is caisson: the sum of the roles. Its methods are safe for concurrent
// use. Errors are of the kinds of package sandbox.
type Service interface {
	Runner

	Sessions
	Pauser
	Networks
	Ports
	Insight
	Snapshots
	Execs
	ExecControl
	Terminals
	Shells
	Workspaces
	Changes
	Functions

	Executions
	DeadLetters

	Policy
	Approvals

	Languages
	Images
	ImageLock
	ImageRoots

	Audit
	Housekeeping
	Monitoring
	Doctor
	Tokens
}

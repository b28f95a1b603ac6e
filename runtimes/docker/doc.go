// Package docker makes sandboxes of containers of a Docker Engine, from API 1.41
// (Docker 20.10) on.
//
// A container starts with the agent as its first process and never sees an
// exec of the engine's. The agent's binary is a read-only bind mount, so that
// any image works as it is. The agent's socket lies in a folder of the host
// that is bound into the container behind a directory that only the
// container's root can pass:
//
//	host                       container
//	BASE/                0700
//	BASE/ID/             0777  /run/caisson/private/     tmpfs, 0700
//	BASE/ID/ready.sock         /run/caisson/private/io/  bind of BASE/ID
//	BASE/ID/agent.sock         /run/caisson/exec/        staged files
//
// The modes let host and container root meet without either having power over
// the other's files: the engine may run as another user than caisson, and the
// agent has no capability to override permissions.
//
// An engine that is not on this host, or is taken for one by
// [Config].Remote, shares nothing with us but its API. There the agent's binary
// comes in a read-only volume, filled once through the engine; its socket is in
// a tmpfs; and each stream to it is an exec of the engine's that runs
// "caisson-agent connect", the relay. A volume is given to the sandbox's user by
// a container that is never started. There is no host folder as a workspace.
//
// It does not speak with the agent, judge a plan, or decide when a sandbox
// ends.
package docker
